// Files of other tools in a browser: each opens with a first screen, lanes where the format has times, and no error.

import { basename } from "node:path";
import { check } from "./harness.mjs";
import { openTimeline } from "./timeline_tests.mjs";

// REQUIRES: the server at `url` shows `files` in their order.
export function formatsTests(suite, url, files) {
  files.forEach(({ path, format, lane, isDump, card }, id) => {
    const name = basename(path);
    suite.test(`${name} opens (${format})`, async ({ page, shot }) => {
      await page.goto(`${url}#trace=${id}`);
      await page.waitForFunction((title) => document.title.startsWith(title), name);
      await page.waitForSelector("main .card");
      await page.waitForFunction(() => !document.querySelector("main .loading"));
      const text = await page.locator("main").innerText();
      check(text.includes(format), `the first screen names the format: ${format}`);
      check(!/\bNaN\b|undefined|\[object /.test(text), `the first screen has values: ${text}`);
      check((await page.locator(".error").count()) === 0, "no error");
      check(!card || text.includes(card), `the first screen has a card: ${card}`);
      await shot("overview");
      if (isDump) return;
      await openTimeline(page, url, { trace: id });
      const lanes = await page.locator(".lane-header.lane").allInnerTexts();
      check(!lane || lanes.some((header) => header.includes(lane)), `a lane called ${lane}: ${lanes.join(", ")}`);
      check((await page.locator(".error").count()) === 0, "no error in the timeline");
    });
  });
}
