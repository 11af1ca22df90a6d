// What trace.view() puts into a notebook: a frame with a page that has no URL, no storage and no server.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { check, equal, kRoot } from "./harness.mjs";

function viewOf(trace) {
  const program = "import sys, firelane; print(firelane.open(sys.argv[1]).view(height=700)._repr_html_())";
  return execFileSync(join(kRoot, ".venv/bin/python"), ["-c", program, trace], {
    cwd: kRoot,
    env: { ...process.env, PYTHONPATH: join(kRoot, "python") },
    maxBuffer: 1 << 25,
    encoding: "utf8",
  });
}

export function notebookTests(suite, hostile) {
  suite.test("a notebook shows findings and timeline in a sandboxed frame", async ({ page }) => {
    await page.setContent(`<p>In [1]: trace.view()</p>${viewOf("tests/data/gpt_full.json.gz")}`);
    const frame = page.frameLocator("iframe");
    await frame.locator("article.finding").first().waitFor();
    await frame.locator(".tab", { hasText: "Timeline" }).click();
    await frame.locator(".lanes-canvas").waitFor();
    await frame.locator(".tab", { hasText: "Kernels" }).click();
    await frame.locator(".table tbody tr").first().waitFor();
    check(!(await frame.locator(".error").count()), "no error");
  });

  suite.test("hostile names stay text in a notebook", async ({ page }) => {
    await page.setContent(viewOf(hostile));
    await page.frameLocator("iframe").locator("main .card").first().waitFor();
    equal(await page.frameLocator("iframe").locator("img").count(), 0, "pictures in the page");
    equal(await page.locator("body > *").count(), 1, "elements beside the frame");
  });
}
