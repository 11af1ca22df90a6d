// The whole page: every trace opens, findings link to their evidence, tables sort, nothing leaves the machine.

import { execFileSync } from "node:child_process";
import { pathToFileURL } from "node:url";
import { check, equal, hashOf, kFirelane, kRoot } from "./harness.mjs";
import { kHostile } from "./hostile.mjs";
import { openTimeline } from "./timeline_tests.mjs";

// Opens every pane by its tab, and visits it once it has loaded.
export async function forEachPane(page, visit) {
  const tabs = page.getByRole("navigation", { name: "Panes" }).getByRole("button");
  const count = await tabs.count();
  check(count > 1, `${count} tabs`);
  for (let i = 0; i < count; ++i) {
    const tab = tabs.nth(i);
    await tab.click();
    await page.locator(".tab[aria-current=page]").and(tab).waitFor();
    await page.waitForFunction(() => !document.querySelector("main .loading"));
    await visit(await tab.innerText(), tab);
  }
}

export function pageTests(suite, url, traces) {
  suite.test("the first screen says what is wrong and what to fix", async ({ page }) => {
    await page.goto(url);
    await page.waitForSelector("article.finding");
    check((await page.locator("article.finding").count()) >= 1, "there are findings");
    check((await page.locator("main").innerText()).includes("Overhead-bound"), "the verdict is there");
  });

  suite.test("a finding's evidence opens in the timeline", async ({ page }) => {
    await page.goto(url);
    await page.locator(".evidence .link").first().click();
    await page.waitForSelector(".lanes-canvas");
    await page.waitForFunction(() => /timeline\.(range|sel)=/.test(location.hash));
    equal((await hashOf(page)).get("pane"), "timeline", "the pane");
  });

  suite.test("a table sorts by its columns, and a row links to the timeline", async ({ page }) => {
    await page.goto(`${url}#pane=ops`);
    const firstCell = () => page.locator(".table tbody tr:not(.spacer) .cell-link").first();
    await firstCell().waitFor();
    const name = page.locator("th button.sort").first();
    await name.click();
    await page.waitForFunction(() =>
      /ascending|descending/.test(document.querySelector("th:has(button.sort)").getAttribute("aria-sort")),
    );
    const before = await firstCell().innerText();
    await name.click();
    await page.waitForFunction(
      (text) => document.querySelector(".table tbody tr:not(.spacer) .cell-link").innerText !== text,
      before,
    );
    await firstCell().click();
    await page.waitForSelector(".lanes-canvas");
  });

  suite.test(
    "the page follows the system's dark theme, and a choice is remembered",
    async ({ page }) => {
      await openTimeline(page, url);
      const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
      equal(await theme(), "dark", "the system's theme");
      await page.getByRole("button", { name: "Switch to the light theme" }).click();
      equal(await theme(), "light", "the chosen theme");
      await page.reload();
      await page.waitForSelector(".lanes-canvas");
      equal(await theme(), "light", "after the reload");
    },
    { dark: true },
  );

  suite.test("every trace opens: overview and timeline", async ({ page, shot }) => {
    await page.goto(url);
    for (let id = 0; id < traces.length; ++id) {
      await page.goto(`${url}#trace=${id}`);
      await page.waitForFunction((name) => document.title.startsWith(name), traces[id].replace(/.*\//, ""));
      await page.waitForSelector("main .card");
      await openTimeline(page, url, { trace: id });
      check(!(await page.locator(".error").count()), `${traces[id]}: no error`);
      await shot(traces[id].replace(/.*\//, ""));
    }
  });

  suite.test(
    "every control of every pane has a name, and no other machine gets a request",
    async ({ page, shot }) => {
      const hosts = new Set();
      page.on("request", (request) => hosts.add(new URL(request.url()).host));
      await page.goto(url);
      await page.waitForSelector("main > *");
      await forEachPane(page, async (title) => {
        const nameless = await page.evaluate(() =>
          [...document.querySelectorAll("button, input, select, textarea, canvas[tabindex]")]
            .filter(
              (e) =>
                !(
                  e.textContent.trim() ||
                  e.getAttribute("aria-label") ||
                  e.labels?.length ||
                  e.getAttribute("aria-labelledby")
                ),
            )
            .map((e) => e.outerHTML.slice(0, 120)),
        );
        equal(nameless.join("\n"), "", `${title}: controls without a name`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        check(wide <= 0, `${title}: fits into 1280 px (${wide} px too wide)`);
        await shot(title);
      });
      equal([...hosts].join(), new URL(url).host, "hosts that got requests");
    },
    { expectErrors: /status of 40[04]/ },
  );

  suite.test(
    "names that look like markup stay text in every pane",
    async ({ page, shot }) => {
      const id = traces.findIndex((trace) => trace.endsWith("hostile.json"));
      await page.goto(`${url}#trace=${id}&pane=kernels&compare.before=0&compare.after=${id}`);
      await page.waitForFunction((text) => document.body.innerText.includes(text), kHostile.slice(0, 12));
      await forEachPane(page, async (title) => {
        const intruders = await page.evaluate(
          () => document.querySelectorAll("img, [onerror], body script:not([src])").length,
        );
        equal(intruders, 0, `${title}: elements from names`);
      });
      await openTimeline(page, url, { trace: id });
      await page.keyboard.press("/");
      await page.keyboard.type(kHostile);
      await page.waitForSelector(".match-count >> text=match");
      await page.keyboard.press("Enter");
      await page.waitForSelector("h3 >> text=Args");
      check((await page.locator(".slice-name").innerText()).startsWith(kHostile), "the name is shown as it is");
      equal(
        await page.evaluate(() => document.querySelectorAll("img, [onerror]").length),
        0,
        "elements from names in the panel",
      );
      await shot("panel");
    },
    { expectErrors: /status of 40[04]/ },
  );

  suite.test("a one-file report opens from disk, without a server", async ({ page, shot }) => {
    const report = `${kRoot}/viewer/e2e/artefacts/report.html`;
    execFileSync(kFirelane, ["report", "tests/data/gpt_full.json.gz", "-o", report, "--force"], { cwd: kRoot });
    const asked = [];
    page.on("request", (request) => {
      if (!/^(file|data|blob):/.test(request.url())) asked.push(request.url());
    });
    const link = pathToFileURL(report).href;
    await page.goto(link);
    await page.waitForSelector("article.finding");
    await shot("overview");
    await openTimeline(page, link);
    equal(await page.locator("text=no finer detail").count(), 0, "notices of missing detail");
    await shot("timeline");
    await openTimeline(page, `${link}?closer`, { "timeline.view": "60000000:60100000" });
    await page.waitForSelector("text=no finer detail");
    equal(asked.join(), "", "requests of a report");
  });

  suite.test(
    "a link with the wrong token says what to do",
    async ({ page }) => {
      const wrong = url.replace(/token=\w{4}/, "token=0000");
      equal((await page.goto(wrong)).status(), 403, "the page with a wrong token");
      // A page that stayed open while the program was restarted.
      await page.route("**/api/traces*", (route) => route.fulfill({ status: 403, body: '{"error": "wrong token"}' }));
      await page.goto(url);
      await page.waitForSelector("text=open the URL that `firelane view` printed");
    },
    { expectErrors: /status of 40[34]/ },
  );
}
