// The panes besides the timeline: tables by mouse and keyboard, copying, flame graph, memory, steps, modules, SQL.

import { check, equal, hashOf, until } from "./harness.mjs";
import { forEachPane } from "./page_tests.mjs";

const kRows = ".table tbody tr[data-row]";

export function panesTests(suite, url, traces) {
  const open = async (page, trace, keys) => {
    const id = String(traces.indexOf(`tests/data/${trace}`));
    await page.goto(`${url}#${new URLSearchParams({ trace: id, ...keys })}`);
  };

  suite.test("lines of the program stand beside findings, and have a table of their own", async ({ page, shot }) => {
    await open(page, "lines.lane", {});
    await page.getByText("Without the profiler 6.11 ms to 6.49 ms").waitFor(); // the range of the 6.30 ms beside it
    const lines = page.locator("section.card").filter({ hasText: "Lines of the program" });
    await lines.getByText("make_lines_lane.py(25): smoothness").waitFor();
    const loop = page.locator("article.finding").filter({ hasText: "127 times in a row" });
    equal(await loop.locator(".finding-lines code").innerText(), "make_lines_lane.py(25): smoothness", "the loop's line");
    await shot("lines");
    await lines.getByRole("button", { name: "Show all" }).click();
    await page.locator(kRows).filter({ hasText: "make_lines_lane.py(40): main" }).waitFor();
    equal((await hashOf(page)).get("more.report"), "lines", "the report");
  });

  suite.test("a table is filtered by words and by comparisons, and the link keeps it", async ({ page }) => {
    await page.goto(`${url}#pane=ops`);
    await page.waitForSelector(kRows);
    await page.getByRole("searchbox", { name: /^Filter/ }).fill("norm calls>20");
    await page.waitForFunction(
      (rows) => [...document.querySelectorAll(rows)].every((row) => row.innerText.toLowerCase().includes("norm")),
      kRows,
    );
    check((await page.locator(kRows).count()) > 0, "some rows are left");
    await page.reload();
    await page.waitForSelector(kRows);
    equal(
      await page.getByRole("searchbox", { name: /^Filter/ }).inputValue(),
      "norm calls>20",
      "the filter after a reload",
    );
  });

  suite.test("a table works with the keyboard alone", async ({ page }) => {
    await page.goto(`${url}#pane=ops`);
    await page.waitForSelector(kRows);
    await page.locator("table.table").focus();
    for (let i = 0; i < 40; ++i) await page.keyboard.press("ArrowDown");
    await page.waitForSelector('tr.active[data-row="40"]');
    await page.keyboard.press("Home");
    await page.waitForSelector('tr.active[data-row="0"]');
    const name = await page.locator("tr.active .cell-link").innerText();
    await page.keyboard.press("Enter");
    await page.waitForSelector(".lanes-canvas");
    await page.waitForFunction(() => location.hash.includes("timeline.search"));
    equal((await hashOf(page)).get("timeline.search"), name, "the search");
  });

  suite.test("a table is copied as CSV", async ({ page }) => {
    await page.addInitScript(() => {
      Object.defineProperty(navigator, "clipboard", {
        value: { writeText: async (text) => void (window.copied = text) },
      });
    });
    await page.goto(`${url}#pane=kernels`);
    await page.getByRole("button", { name: "Copy CSV" }).first().click();
    await page.waitForFunction(() => window.copied !== undefined);
    const lines = (await page.evaluate(() => window.copied)).trim().split("\r\n");
    check(lines[0].startsWith("kind,name,"), `the header: ${lines[0]}`);
    check(lines.length > 50, `${lines.length} lines`);
  });

  suite.test("a flame graph zooms in with a click and out with Escape", async ({ page }) => {
    await page.goto(`${url}#pane=stacks`);
    await page.locator("canvas.flame").click({ position: { x: 700, y: 60 } });
    await page.getByRole("button", { name: "Zoom out" }).waitFor();
    check((await page.locator(".flame-status").innerText()).includes("self"), "the frame is described");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Zoom out" }).waitFor({ state: "detached" });
    for (const order of ["Time-ordered", "Inverted"]) {
      await page.getByRole("button", { name: order }).click();
      await page.waitForFunction(() => document.querySelector("canvas.flame") && !document.querySelector(".stale"));
    }
  });

  suite.test("memory shows what is alive at the peak, and at a point that is clicked", async ({ page }) => {
    await page.goto(`${url}#pane=memory`);
    await page.getByRole("heading", { name: "Alive at the peak" }).waitFor();
    await page
      .locator(".u-over")
      .first()
      .click({ position: { x: 500, y: 100 } });
    await page.waitForFunction(() => location.hash.includes("memory.at="));
    await page.getByRole("heading", { name: /^Alive at \d/ }).waitFor();
    await page.locator(".segment-box canvas").waitFor();
  });

  suite.test("what only our recorder knows about a GPU is shown", async ({ page, shot }) => {
    await open(page, "h200_gpt_all.lane", { pane: "memory" });
    await page.getByRole("heading", { name: "Free memory held by the allocator" }).waitFor();
    await shot("memory");
    await open(page, "h200_gpt_all.lane", { pane: "timeline", "timeline.sel": "d5", "timeline.filter": "GPU" });
    await page.getByText("34 °C (1 sample)").waitFor();
    const selection = page.getByRole("complementary", { name: "Selection" });
    await selection.getByText("9.1%, limited by the grid (too few blocks)").waitFor();
  });

  suite.test("a pane with nothing to show says what is missing and how to get it", async ({ page }) => {
    for (const [keys, title, code] of [
      [{ pane: "kernels" }, "No device work in this trace", "ProfilerActivity.CUDA"],
      [{ pane: "more", "more.report": "launches" }, "No device work in this trace", "ProfilerActivity.CUDA"],
      [{ pane: "memory" }, "No memory events in this trace", "profile_memory=True"],
      [{ pane: "input" }, "No DataLoader in this trace", "for batch in loader"],
    ]) {
      await open(page, "decoder_slow.lane", keys);
      await page.getByRole("heading", { name: title }).waitFor();
      await page.locator("pre.code", { hasText: code }).waitFor();
      equal(await page.getByText("No rows.").count(), 0, "tables that only say that they are empty");
    }
  });

  suite.test("two steps are compared part by part and name by name", async ({ page }) => {
    await page.goto(`${url}#pane=steps`);
    await page.getByRole("table", { name: "Parts of both steps" }).waitFor();
    await page.getByLabel("First step").selectOption("2");
    await page.waitForFunction(() => location.hash.includes("steps.first=2"));
    await page.getByRole("columnheader", { name: "Difference" }).nth(1).waitFor();
    check((await page.locator(kRows).count()) > 5, "rows of names that differ");
  });

  suite.test(
    "on a phone every pane fits the screen, and its tab scrolls into view",
    async ({ page, shot }) => {
      await page.goto(url);
      await forEachPane(page, async (name, tab) => {
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        check(width <= 390, `${name} is ${width} px wide`);
        await until(async () => {
          const box = await tab.boundingBox();
          return box.x >= 0 && box.x + box.width <= 390;
        }, `the tab of ${name} is in view`);
        if (name === "Overview") await shot(name);
      });
      await page.goto(`${url}#pane=timeline&timeline.sel=d5`);
      const selection = page.getByRole("complementary", { name: "Selection" });
      await selection.getByText("Occupancy", { exact: true }).waitFor();
      const { y, height } = await selection.boundingBox();
      check(y > 300 && y + height <= 844, `the selection reaches from ${y} to ${y + height}`);
    },
    { viewport: { width: 390, height: 844 } },
  );

  suite.test("modules expand and collapse with the keyboard", async ({ page }) => {
    await page.goto(`${url}#pane=modules`);
    await page.getByRole("button", { name: "Collapse all" }).click();
    await page.waitForSelector("tr[aria-expanded=true]", { state: "detached" });
    const all = await page.locator(kRows).count();
    await page.locator("table.table").first().focus();
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector("tr[aria-expanded=true]");
    check((await page.locator(kRows).count()) > all, "children are shown");
    await page.keyboard.press("ArrowLeft");
    await page.waitForSelector("tr[aria-expanded=true]", { state: "detached" });
  });

  suite.test(
    "SQL results are a table and a plot, and a wrong query gets an error",
    async ({ page }) => {
      await page.goto(`${url}#pane=sql`);
      await page.getByLabel("SQL query").fill("select id, duration_ns from ops limit 100");
      await page.keyboard.press("Control+Enter");
      await page.waitForSelector(kRows);
      await page.getByLabel("Plot").selectOption("line");
      await page.locator(".plot .u-over").waitFor();
      await page.getByLabel("SQL query").fill("select nothing from ops");
      await page.getByRole("button", { name: "Run" }).click();
      await page.getByRole("alert").waitFor();
      check((await page.getByRole("alert").innerText()).includes("nothing"), "the error names the column");
    },
    { expectErrors: /status of 400/ },
  );
}
