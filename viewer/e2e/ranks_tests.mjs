// The Ranks pane: a folder is opened by its parts, pictures are drawn, a rank's trace is loaded when it is opened.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { check, equal, hashOf, kFirelane, kRoot, until } from "./harness.mjs";

const kTimeline = "canvas.rank-lanes-canvas";

// `url` serves a folder with the traces of four ranks, `partsUrl` one with parts alone; `folder` is for files.
export function ranksTests(suite, { url, partsUrl, folder, traces }) {
  suite.test("a folder opens with the ranks, before any trace is loaded", async ({ page }) => {
    await page.goto(url);
    await page.getByText(/Rank 3.* held up all others/).first().waitFor();
    await page.waitForSelector("canvas.ranks-heat");
    await page.waitForSelector(kTimeline);
    equal(await page.locator(".rank-name").count(), 4, "lanes");
    const states = await page.evaluate(async () => {
      const token = new URL(location.href).searchParams.get("token");
      const list = await (await fetch("/api/traces", { headers: { "X-Firelane-Token": token } })).json();
      return list.traces.map((trace) => trace.state).join();
    });
    equal(states, "unloaded,unloaded,unloaded,unloaded", "states of the traces");
  });

  suite.test("a rank's trace is loaded when it is opened, and Back returns to the ranks", async ({ page }) => {
    await page.goto(url);
    await page.getByRole("button", { name: "rank 3", exact: true }).click();
    await page.waitForSelector(".lanes-canvas");
    equal((await hashOf(page)).get("trace"), "3", "the trace");
    check((await page.title()).startsWith("rank3.json"), "the title names the trace");
    await page.goBack();
    await page.waitForSelector(kTimeline);
  });

  suite.test("a collective shows when each rank arrived, and the link keeps it", async ({ page }) => {
    await page.goto(url);
    await page.locator(".collective-table .link").first().click();
    await page.getByText(/waited .* in total for rank 3/).waitFor();
    const chosen = (await hashOf(page)).get("ranks.collective");
    check(chosen !== null, "the link has the collective");
    check((await hashOf(page)).get("ranks.from") !== null, "the link has the window");
    await page.reload();
    await page.getByText(/waited .* in total for rank 3/).waitFor();
  });

  suite.test("the timeline of ranks zooms with keys, and shows the ranks that are typed", async ({ page }) => {
    await page.goto(url);
    await page.locator(kTimeline).focus();
    await page.keyboard.press("w");
    await until(async () => (await hashOf(page)).get("ranks.from") !== null, "zoomed in");
    await page.keyboard.press("f");
    await until(async () => (await hashOf(page)).get("ranks.from") === null, "the whole job");
    const field = page.getByLabel(/^Ranks to show/);
    await field.fill("0,2-3");
    await field.press("Enter");
    await page.waitForFunction(() => document.querySelectorAll(".rank-name").length === 3);
  });

  suite.test("a click on the heat map shows that step in the timeline", async ({ page }) => {
    await page.goto(url);
    await page.locator("canvas.ranks-heat").click({ position: { x: 400, y: 10 } });
    await until(async () => (await hashOf(page)).get("ranks.to") !== null, "a window of a step");
    await page.getByLabel("Show", { exact: false }).first().selectOption("wait");
    await page.waitForFunction(() => document.querySelector("canvas.ranks-heat")?.getAttribute("aria-label")?.startsWith("Waiting"));
  });

  suite.test("parts without their traces are a job as well", async ({ page }) => {
    await page.goto(partsUrl);
    await page.getByText(/Rank 2 \(host1\) held up all others/).first().waitFor();
    equal(await page.getByRole("button", { name: "rank 2", exact: true }).count(), 0, "links to traces that are not here");
  });

  suite.test("the report of a job opens from disk and asks nobody", async ({ page }) => {
    const file = join(folder, "job.html");
    const made = spawnSync(kFirelane, ["report", traces, "-o", file, "--force"], { cwd: kRoot, encoding: "utf8" });
    equal(made.status, 0, `firelane report: ${made.stderr}`);
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(pathToFileURL(file).href);
    await page.getByText(/Rank 3.* held up all others/).first().waitFor();
    await page.waitForSelector(kTimeline);
    await page.locator(".collective-table .link").first().click();
    await page.getByText(/waited .* in total for rank 3/).waitFor();
    equal(await page.locator("nav.tabs .tab").count(), 1, "tabs: a report of a job has no traces");
    equal(asked.filter((each) => !each.startsWith("file:") && !each.startsWith("data:")).join(), "", "requests");
  });
}
