// The timeline in a browser: moving, searching, selecting, arrows, ranges, lanes, links.

import { check, equal, hashOf, until } from "./harness.mjs";

const kRuler = 36;
const kHeader = 210;

// Waits until lanes and their tiles are drawn.
export async function openTimeline(page, url, keys = {}) {
  await page.goto(`${url}#${new URLSearchParams({ pane: "timeline", ...keys })}`);
  await page.waitForSelector(".lanes-canvas");
  await page.waitForSelector(".lane-header.lane");
  await painted(page);
}

// Waits for several colors on the canvas, below the ruler.
async function painted(page) {
  await page.waitForFunction(() => {
    const canvas = document.querySelector(".lanes-canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 60, canvas.width, Math.max(1, canvas.height - 60));
    const seen = new Set();
    for (let i = 0; i < data.length && seen.size < 6; i += 4 * 97)
      seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    return seen.size >= 6;
  });
}

const shownText = (page) => page.locator(".timeline-shown").innerText();

const shownNs = async (page) => {
  const [, number, unit] = /([\d.]+) (\w+) shown/.exec(await shownText(page));
  return Number(number) * { ns: 1, us: 1e3, ms: 1e6, s: 1e9 }[unit];
};

const shownChanged = (page, text) =>
  page.waitForFunction((before) => document.querySelector(".timeline-shown").textContent !== before, text);

// Waits until the link has caught up with the view.
// Stays so for some frames: a jump scrolls the lanes a frame later.
const settled = (page) =>
  page.waitForFunction(
    (frames) => {
      const isCurrent = document.querySelector(".timeline")?.dataset.link === "current";
      frames.count = isCurrent ? frames.count + 1 : 0;
      return frames.count > 4;
    },
    { count: 0 },
    { polling: "raf" },
  );

// The link's value of a key, once it is set and differs from `before`.
async function linked(page, key, before = null) {
  const value = await page.waitForFunction(
    ([name, old]) => {
      const now = new URLSearchParams(location.hash.slice(1)).get(name);
      return now !== old && now;
    },
    [key, before],
  );
  return value.jsonValue();
}

// Moves the mouse at a place until the tooltip names what is there: tiles may still be loading.
async function hoverUntil(page, [x, y], name) {
  let moves = 0;
  await until(async () => {
    await page.mouse.move(x + (++moves % 2), y);
    return page.locator(".timeline-tip", { hasText: name }).isVisible();
  }, `${name} lies under the mouse`);
}

const ask = (page, request) =>
  page.evaluate(async (path) => {
    const token = new URL(document.baseURI).searchParams.get("token");
    return (await fetch(`api/${path}`, { headers: { "X-Firelane-Token": token } })).json();
  }, request);

// Several fingers at once, which Playwright has no call for: `touch("Move", [x, y], [x, y])`.
async function fingers(page) {
  const session = await page.context().newCDPSession(page);
  return (type, ...places) =>
    session.send("Input.dispatchTouchEvent", {
      type: `touch${type}`,
      touchPoints: places.map(([x, y], id) => ({ x, y, id })),
    });
}

const panelName = (page) => page.locator(".slice-name").innerText();

export function timelineTests(suite, url) {
  suite.test("wheel and keys zoom and pan, and F shows everything again", async ({ page }) => {
    await openTimeline(page, url);
    const whole = await shownNs(page);
    const wholeText = await shownText(page);
    await page.mouse.move(700, 400);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -240);
    await page.mouse.wheel(0, -240);
    await page.keyboard.up("Control");
    await shownChanged(page, wholeText);
    await settled(page);
    const closer = await shownNs(page);
    check(closer < whole * 0.8, `ctrl and wheel zoom in: ${closer} of ${whole}`);
    const closerText = await shownText(page);
    await page.keyboard.down("w");
    await shownChanged(page, closerText);
    await page.keyboard.up("w");
    await settled(page);
    const closest = await shownNs(page);
    check(closest < closer, `W zooms in: ${closest} of ${closer}`);
    const viewBefore = (await hashOf(page)).get("timeline.view");
    await page.keyboard.press("d");
    await linked(page, "timeline.view", viewBefore);
    const panned = await shownNs(page);
    check(Math.abs(panned / closest - 1) < 0.01, `panning keeps the zoom: ${panned}, not ${closest}`);
    await page.keyboard.press("f");
    await page.waitForFunction((text) => document.querySelector(".timeline-shown").textContent === text, wholeText);
  });

  suite.test("a search counts its matches, and Enter goes from one to the next", async ({ page }) => {
    await openTimeline(page, url);
    await page.keyboard.press("/");
    await page.keyboard.type("aten::addmm");
    await page.waitForFunction(() => /^\d[\d,]* matches$/.test(document.querySelector(".match-count")?.textContent ?? ""));
    await page.keyboard.press("Enter");
    await page.waitForSelector(".slice-name");
    check((await panelName(page)).includes("addmm"), "the match is selected");
    const first = await linked(page, "timeline.sel");
    await page.keyboard.press("Enter");
    const second = await linked(page, "timeline.sel", first);
    await page.keyboard.press("Shift+Enter");
    equal(await linked(page, "timeline.sel", second), first, "the match before the next");
  });

  suite.test("a click selects the slice under the mouse, and screen readers announce it", async ({ page }) => {
    await page.goto(url);
    await page.waitForSelector("main > *");
    const { slice } = await ask(page, "t/0/find?text=backward&exact=1&from_ns=0&direction=0");
    const view = `${slice.start_ns}:${slice.start_ns + slice.duration_ns}`;
    await openTimeline(page, url, {
      "timeline.pin": `l${slice.lane}`,
      "timeline.rows": "tall",
      "timeline.view": view,
    });
    const box = await page.locator(".lanes-canvas").boundingBox();
    const place = [box.x + box.width / 2, box.y + kRuler + slice.row * 18 + 9];
    await hoverUntil(page, place, "backward");
    await page.mouse.click(...place);
    await page.waitForSelector(".slice-facts >> text=Kind");
    equal(await panelName(page), "backward", "the name in the panel");
    await page.waitForFunction(() =>
      [...document.querySelectorAll("[aria-live]")].some((region) =>
        region.textContent.startsWith("backward, annotation"),
      ),
    );
  });

  suite.test(
    "a panel opened by a click leaves the slice under the mouse; a double-click fits it",
    async ({ page }) => {
      await page.goto(url);
      await page.waitForSelector("main > *");
      const { slice } = await ask(page, "t/0/find?text=backward&exact=1&from_ns=0&direction=0");
      const view = `${slice.start_ns - slice.duration_ns}:${slice.start_ns + 3 * slice.duration_ns}`;
      await openTimeline(page, url, {
        "timeline.pin": `l${slice.lane}`,
        "timeline.rows": "tall",
        "timeline.view": view,
      });
      const box = await page.locator(".lanes-canvas").boundingBox();
      const place = [box.x + box.width * 0.3, box.y + kRuler + slice.row * 18 + 9];
      await hoverUntil(page, place, "backward");
      await page.mouse.click(...place);
      await page.waitForSelector("h3 >> text=Same name");
      await settled(page);
      await hoverUntil(page, place, "backward");
      await page.keyboard.press("Escape");
      await page.waitForSelector(".timeline-panel", { state: "detached" });
      await page.mouse.dblclick(...place);
      await until(
        async () => Math.abs((await shownNs(page)) / slice.duration_ns - 1.3) < 0.05,
        `the screen shows 1.3 times ${slice.duration_ns} ns`,
      );
    },
  );

  suite.test("hovering shows a slice's name", async ({ page }) => {
    await page.goto(url);
    await page.waitForSelector("main > *");
    const { slice } = await ask(page, "t/0/find?text=backward&exact=1&from_ns=0&direction=0");
    await openTimeline(page, url, {
      "timeline.pin": `l${slice.lane}`,
      "timeline.rows": "tall",
      "timeline.view": `${slice.start_ns}:${slice.start_ns + slice.duration_ns}`,
    });
    const box = await page.locator(".lanes-canvas").boundingBox();
    await hoverUntil(page, [box.x + box.width / 2, box.y + kRuler + slice.row * 18 + 9], "backward");
  });

  suite.test("arrows link a kernel to its launch and back", async ({ page }) => {
    await openTimeline(page, url);
    await page.keyboard.press("/");
    await page.keyboard.type("layer_norm_kernel");
    await page.waitForSelector(".match-count >> text=match");
    await page.keyboard.press("Enter");
    await page.waitForSelector("h3 >> text=Arrows");
    const kernel = await panelName(page);
    await page.waitForFunction(() => location.hash.includes("timeline.sel=d"));
    await page.locator(".arrow-ends .link", { hasText: "cudaLaunchKernel" }).first().click();
    await page.waitForFunction(() => document.querySelector(".slice-name").textContent.startsWith("cudaLaunchKernel"));
    await page.waitForSelector(".arrow-ends .link");
    await page.locator(".arrow-ends .link", { hasText: "layer_norm_kernel" }).first().click();
    await page.waitForFunction((name) => document.querySelector(".slice-name").textContent === name, kernel);
  });

  suite.test("dragging marks a range and sums it up, Esc clears it", async ({ page }) => {
    await openTimeline(page, url);
    await page.keyboard.down("Shift");
    await page.mouse.move(kHeader + 200, 400);
    await page.mouse.down();
    await page.mouse.move(kHeader + 350, 405, { steps: 4 });
    await page.mouse.move(kHeader + 500, 405);
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await page.waitForSelector(".range-table tbody tr");
    await page.waitForFunction(() => location.hash.includes("timeline.range="));
    await page.keyboard.press("Escape");
    await page.waitForSelector(".timeline-panel", { state: "detached" });
  });

  suite.test("dragging an edge of a range updates its sums", async ({ page }) => {
    await openTimeline(page, url);
    const { end_ns: whole } = await ask(page, "t/0/lanes");
    const range = [0.3 * whole, 0.6 * whole].map(Math.round);
    await openTimeline(page, url, { "timeline.range": range.join(":") });
    await page.waitForSelector(".range-table tbody tr");
    await settled(page);
    const box = await page.locator(".lanes-canvas").boundingBox();
    const sums = await page.locator(".range-table").first().innerText();
    const edgeX = box.x + 0.6 * box.width;
    await page.mouse.move(edgeX, box.y + 200);
    await page.waitForSelector(".lanes-canvas.on-edge");
    await page.mouse.down();
    await page.mouse.move(box.x + 0.5 * box.width, box.y + 205, { steps: 3 });
    await page.mouse.move(box.x + 0.4 * box.width, box.y + 205);
    await page.mouse.up();
    // On a slow machine the link and the sums also have ranges from the middle of the drag.
    const marked = async () => (await hashOf(page)).get("timeline.range").split(":").map(Number);
    await until(async () => {
      const [begin, end] = await marked();
      return Math.abs((end - begin) / whole - 0.1) < 0.02;
    }, "a tenth of the trace is marked");
    equal((await marked())[0], range[0], "the edge that was not dragged");
    await until(async () => {
      const table = page.locator(".range-table").first();
      return (await table.count()) > 0 && (await table.innerText()) !== sums;
    }, "the sums of the shorter range are shown");
  });

  suite.test(
    "two fingers zoom, one finger pans, a tap selects",
    async ({ page }) => {
      await openTimeline(page, url);
      const box = await page.locator(".lanes-canvas").boundingBox();
      const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
      const touch = await fingers(page);
      const whole = await shownNs(page);
      await touch("Start", [middle.x - 50, middle.y], [middle.x + 50, middle.y]);
      for (const distance of [80, 120, 160, 200])
        await touch("Move", [middle.x - distance, middle.y], [middle.x + distance, middle.y]);
      await touch("End");
      await until(async () => (await shownNs(page)) < whole / 3, "the pinch zoomed in by four");
      await settled(page);
      const zoomed = await shownNs(page);
      const before = (await hashOf(page)).get("timeline.view");
      await touch("Start", [middle.x, middle.y]);
      for (const x of [20, 60, 120]) await touch("Move", [middle.x - x, middle.y]);
      await touch("End");
      const [oldFrom, newFrom] = [before, await linked(page, "timeline.view", before)].map((view) => parseFloat(view));
      check(newFrom > oldFrom, `the view moved on: ${newFrom} after ${oldFrom}`);
      check(Math.abs((await shownNs(page)) / zoomed - 1) < 0.01, "panning keeps the zoom");
      equal(await page.locator(".timeline-panel").count(), 0, "panels after pinch and drag");
      const { slice } = await ask(page, "t/0/find?text=backward&exact=1&from_ns=0&direction=0");
      await openTimeline(page, url, {
        "timeline.pin": `l${slice.lane}`,
        "timeline.rows": "tall",
        "timeline.view": `${slice.start_ns}:${slice.start_ns + slice.duration_ns}`,
      });
      await until(async () => {
        await page.touchscreen.tap(box.x + box.width / 3, box.y + kRuler + slice.row * 18 + 9);
        return page.locator(".slice-name", { hasText: "backward" }).isVisible();
      }, "the slice that is tapped is shown");
    },
    { touch: true },
  );

  suite.test("keys go to gaps and steps", async ({ page }) => {
    await openTimeline(page, url);
    await page.keyboard.press("g");
    await page.waitForSelector(".timeline-section >> text=Cause");
    await page.keyboard.press("Escape");
    await settled(page);
    const viewBefore = (await hashOf(page)).get("timeline.view");
    const step = page.getByLabel("Step", { exact: true });
    await step.selectOption({ index: 1 });
    await linked(page, "timeline.view", viewBefore);
    const first = await step.inputValue();
    await page.keyboard.press(".");
    await page.waitForFunction(
      (value) => document.querySelector("select[aria-label=Step]").value === String(Number(value) + 1),
      first,
    );
  });

  suite.test("lanes are pinned, collapsed, hidden and filtered", async ({ page }) => {
    await openTimeline(page, url);
    const lanes = () => page.locator(".lane-header.lane").count();
    const all = await lanes();
    const name = await page.locator(".lane-header.lane .lane-name").first().innerText();
    await page.getByRole("button", { name: `Collapse ${name}` }).click();
    await page.waitForSelector(`button[aria-label="Expand ${name}"]`);
    await page.getByRole("button", { name: `Pin ${name}` }).focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector(".lanes-corner .lane-header");
    await page.getByRole("button", { name: `Hide ${name}` }).focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("text=Show 1 hidden");
    equal(await lanes(), all - 1, "lanes after hiding one");
    await page.getByRole("button", { name: "Show 1 hidden" }).click();
    await page.getByLabel("Filter lanes by name").fill("stream");
    await page.waitForFunction(
      () => document.querySelectorAll(".lanes-content > .lane-headers .lane-header.lane").length === 1,
    );
  });

  suite.test("a link opens the same view after a reload and in another tab", async ({ page }) => {
    await openTimeline(page, url);
    await page.keyboard.press("/");
    await page.keyboard.type("aten::mm");
    await page.waitForSelector(".match-count >> text=match");
    await page.keyboard.press("Enter");
    await page.waitForSelector("h3 >> text=Same name");
    await page.keyboard.press("Escape");
    await settled(page);
    const link = await page.evaluate(() => location.href);
    const name = await panelName(page);
    const shown = await shownNs(page);
    await page.reload();
    await page.waitForSelector("h3 >> text=Same name");
    equal(await panelName(page), name, "selected after the reload");
    equal(await shownNs(page), shown, "shown after the reload");
    const other = await page.context().newPage();
    await other.goto(link);
    await other.waitForSelector("h3 >> text=Same name");
    equal(await panelName(other), name, "selected in another tab");
    await other.close();
    await settled(page);
    equal(await page.evaluate(() => location.href), link, "the link after the reload");
  });

  suite.test("the question mark opens the help, Esc closes it", async ({ page }) => {
    await openTimeline(page, url);
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[open] >> text=zoom in and out");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog[open]", { state: "detached" });
  });
}
