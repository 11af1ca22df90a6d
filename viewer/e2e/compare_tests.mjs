// The Compare pane: two traces of a program with a planted fault and without it, their one-file report, and runs over a variable.

import { execFileSync } from "node:child_process";
import { pathToFileURL } from "node:url";
import { check, equal, hashOf, kFirelane, kRoot, until } from "./harness.mjs";

const kFaults = "tests/data/h200_faults";
export const kCompared = [
  `${kFaults}/fp32-matmul.fixed.lane`,
  `${kFaults}/fp32-matmul.faulty.lane`,
  `${kFaults}/launch-overhead.fixed.lane`,
];

// What is drawn: a canvas that has more than one color.
function isPainted(canvas) {
  return canvas.evaluate((element) => {
    const { data } = element.getContext("2d").getImageData(0, 0, element.width, element.height);
    const pixels = new Uint32Array(data.buffer);
    return pixels.some((pixel) => pixel !== pixels[0]);
  });
}

async function seeComparison(page) {
  await page.getByRole("heading", { name: /slower/ }).waitFor();
  await page.getByRole("table", { name: "Parts of a step on both sides" }).waitFor();
  const timelines = page.locator(".aligned-timeline .lanes-canvas");
  for (const canvas of [page.locator("canvas.flame"), timelines.nth(0), timelines.nth(1)]) {
    await canvas.waitFor();
    await until(() => isPainted(canvas), "the flame graph and both timelines are drawn");
  }
}

export function compareTests(suite, url) {
  suite.test("two traces are compared: verdict, parts that add up, tables of both sides", async ({ page, shot }) => {
    await page.goto(url);
    await seeComparison(page);
    const text = await page.locator("main").innerText();
    for (const part of ["one run per side cannot tell", "matmul kernels", "Kernels and copies that changed", "By speed"])
      check(text.includes(part), `the page has "${part}"`);
    await page.getByLabel("all parts").check();
    await page.waitForFunction(() => location.hash.includes("compare.parts=all"));
    await shot();
  });

  suite.test("sides are swapped and chosen, and the link keeps them", async ({ page }) => {
    await page.goto(url);
    await seeComparison(page);
    await page.getByRole("button", { name: "Swap" }).click();
    await page.getByRole("heading", { name: /faster/ }).waitFor();
    equal((await hashOf(page)).get("compare.before"), "1", "the link's first side");
    await page.reload();
    await page.getByRole("heading", { name: /faster/ }).waitFor();
    await page.getByText("Choose traces").click();
    await page.getByLabel("Side of launch-overhead.fixed.lane").selectOption("after");
    await page.getByText("fp32-matmul.fixed.lane and 1 more").first().waitFor();
    equal((await hashOf(page)).get("compare.after"), "0,2", "the link's second side");
  });

  suite.test("the timelines stay aligned: keys in one move the other, and a step goes to it in both", async ({ page }) => {
    await page.goto(url);
    await seeComparison(page);
    const spans = () => page.locator(".aligned-lanes").evaluateAll((boxes) => boxes.map((box) => box.dataset.view));
    const before = await spans();
    const [first, second] = before.map((span) => span.split(":").reduce((from, to) => to - from));
    check(Math.abs(first - second) <= 1, `both show as much time: ${before.join(" and ")}`);
    await page.locator(".aligned-timeline canvas").nth(1).focus();
    await page.keyboard.press("w");
    await until(async () => (await spans())[0] !== before[0], "the other one moves");
    const chosen = () => Promise.all(["before", "after"].map((side) => page.getByRole("combobox", { name: side }).inputValue()));
    const steps = await chosen();
    await page.getByRole("group", { name: "Step" }).locator("button:enabled").first().click();
    await until(async () => (await chosen()).every((step, i) => step !== steps[i]), "both go to another step");
  });

  suite.test("a differential flame graph works with the keyboard alone", async ({ page }) => {
    await page.goto(`${url}&compare.flame=op`);
    await seeComparison(page);
    await page.locator("canvas.flame").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.getByText(/before, .* after: /).first().waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Zoom out" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Zoom out" }).waitFor({ state: "detached" });
  });

  suite.test("many runs are a table and charts over the variable", async ({ page, shot }) => {
    await page.goto(url);
    await page.getByRole("button", { name: "All runs" }).click();
    await page.getByRole("heading", { name: /Figures over/ }).waitFor();
    check((await page.locator(".table").first().locator("tbody tr[data-row]").count()) === 3, "a row for each file");
    await page.getByRole("img", { name: /^Step\. fp32-matmul\.fixed\.lane: / }).waitFor();
    await shot("files");
    await page.getByLabel("A row for each").selectOption("model");
    await page.waitForFunction(() => location.hash.includes("compare.by=model"));
  });

  suite.test(
    "on a phone a comparison fits the screen",
    async ({ page, shot }) => {
      await page.goto(url);
      await seeComparison(page);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      check(width <= 390, `the pane is ${width} px wide`);
      await shot();
    },
    { viewport: { width: 390, height: 844 }, dark: true },
  );

  suite.test("a comparison in one file opens from disk, without a server", async ({ page, shot }) => {
    const report = `${kRoot}/viewer/e2e/artefacts/comparison.html`;
    execFileSync(kFirelane, ["report", kCompared[0], kCompared[1], "-o", report, "--force"], { cwd: kRoot });
    const asked = [];
    page.on("request", (request) => {
      if (!/^(file|data|blob):/.test(request.url())) asked.push(request.url());
    });
    await page.goto(pathToFileURL(report).href);
    await page.locator(".tab[aria-current=page]", { hasText: "Compare" }).waitFor();
    await seeComparison(page);
    await page.getByRole("button", { name: "Swap" }).click();
    await page.getByRole("heading", { name: /faster/ }).waitFor();
    equal(await page.locator(".error").count(), 0, "answers that are missing");
    await shot();
    equal(asked.join(), "", "requests of a report");
  });
}
