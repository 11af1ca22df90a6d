// How a large trace feels in the page: first picture, memory over a long walk, frames while panning. Called by bench/view.py:
//
//   node bench/view_browser.mjs TRACE [STEPS]
//
// Prints one JSON object (`skipped` says why there is nothing). Headless Chromium without a GPU, started before the clock:
// the first picture is counted from starting `firelane view` to the frame after the one that drew slices on the canvas.
// Memory is read after a forced collection: the heap of JavaScript, and the array buffers outside it, where tiles lie.

import { resolve } from "node:path";
import { launchBrowser, startServer, whyNot } from "../viewer/e2e/harness.mjs";

const kViewport = { width: 1600, height: 900 };
const kCanvasMiddle = { x: 900, y: 450 };
const kOpenings = 3;
const kAnimationMs = 300; // and to spare
const kTourZooms = [9, 11, 13, 10];
const kTourStops = 120;
const kPanMs = 5000;
const kLongFrameMs = 33.4;

const wallMs = () => performance.timeOrigin + performance.now();

// In the page, before its own scripts: notes when the lanes' canvas first gets a picture of several colours below the
// ruler. Looks at the picture that is put, not at the canvas: reading that back would cost more than drawing it.
function watchFirstPicture() {
  const put = CanvasRenderingContext2D.prototype.putImageData;
  CanvasRenderingContext2D.prototype.putImageData = function (image, ...rest) {
    put.call(this, image, ...rest);
    if (!this.canvas.classList.contains("lanes-canvas")) return;
    const pixels = new Uint32Array(image.data.buffer);
    const seen = new Set();
    for (let i = 60 * image.width; i < pixels.length && seen.size < 6; i += 97) seen.add(pixels[i]);
    if (seen.size < 6) return;
    CanvasRenderingContext2D.prototype.putImageData = put;
    requestAnimationFrame(() => (window.firstPictureMs = performance.timeOrigin + performance.now()));
  };
}

// The same walk every time (mulberry32).
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function wheel(page, modifier, deltaY) {
  await page.keyboard.down(modifier);
  await page.mouse.wheel(0, deltaY);
  await page.keyboard.up(modifier);
}

async function hold(page, key, ms) {
  await page.keyboard.down(key);
  await page.waitForTimeout(ms);
  await page.keyboard.up(key);
}

// Nothing asked for and not answered, over two frames: what is on the screen is complete.
async function settled(page, asked) {
  for (let quiet = 0; quiet < 2; quiet = asked.size === 0 ? quiet + 1 : 0) {
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  }
}

// Zooms and pans by wheel and keys, at a random place of the lanes; now and then the whole trace again.
async function walk(page, asked, steps, random) {
  for (let i = 0; i < steps; ++i) {
    await page.mouse.move(300 + random() * 1200, kCanvasMiddle.y);
    const kind = random();
    if (kind < 0.03) await page.keyboard.press("f");
    else if (kind < 0.35) await wheel(page, "Control", -120);
    else if (kind < 0.5) await wheel(page, "Control", 120);
    else if (kind < 0.65) await wheel(page, "Shift", (random() - 0.5) * 1600);
    else await hold(page, "wwsad"[Math.floor(random() * 5)], 50 + random() * 150);
    await settled(page, asked);
  }
}

// Stops all over the trace, by clicks into its strip: more tiles than the page keeps.
async function tour(page, asked, zooms, stops) {
  await zoomed(page, asked, zooms);
  const strip = await page.locator(".timeline-minimap canvas").boundingBox();
  for (let i = 0; i < stops; ++i) {
    await page.mouse.click(strip.x + ((i + 0.5) / stops) * strip.width, strip.y + strip.height / 2);
    await settled(page, asked);
  }
}

async function zoomed(page, asked, zooms) {
  await page.keyboard.press("f");
  await page.waitForTimeout(kAnimationMs);
  await page.mouse.move(kCanvasMiddle.x, kCanvasMiddle.y);
  for (let i = 0; i < zooms; ++i) await wheel(page, "Control", -120);
  await settled(page, asked);
}

async function memory(session, after) {
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  const { backingStorageSize } = await session.send("Runtime.getHeapUsage");
  return { after, heap: metrics.find((metric) => metric.name === "JSHeapUsedSize").value, buffers: backingStorageSize };
}

// Time between frames while a pan key is down, first to the right, then back.
async function panFrames(page, asked, zooms) {
  await zoomed(page, asked, zooms);
  const shown = await page.locator(".timeline-shown").innerText();
  await page.evaluate(() => {
    window.frameTimes = [];
    const next = (now) => {
      window.frameTimes?.push(now);
      if (window.frameTimes) requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  await hold(page, "d", kPanMs / 2);
  await hold(page, "a", kPanMs / 2);
  const times = await page.evaluate(() => {
    const out = window.frameTimes;
    window.frameTimes = null;
    return out;
  });
  const intervals = times
    .slice(1)
    .map((time, i) => time - times[i])
    .sort((a, b) => a - b);
  const at = (share) => intervals[Math.min(intervals.length - 1, Math.floor(share * intervals.length))];
  return {
    shown: shown.replace(/ shown.*/s, ""),
    frames: intervals.length,
    seconds: (times.at(-1) - times[0]) / 1000,
    medianMs: at(0.5),
    p95Ms: at(0.95),
    longShare: intervals.filter((ms) => ms > kLongFrameMs).length / intervals.length,
  };
}

// A server of its own, and a page on it with its first picture.
async function open(browser, trace) {
  const page = await browser.newPage({ viewport: kViewport });
  const asked = new Set();
  page.on("request", (request) => asked.add(request));
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => asked.delete(request));
  await page.addInitScript(watchFirstPicture);
  const began = wallMs();
  const server = await startServer([trace]);
  const close = async () => {
    server.stop();
    await page.close();
  };
  try {
    await page.goto(`${server.url}#pane=timeline`);
    await page.waitForFunction(() => window.firstPictureMs, null, { timeout: 60_000 });
    const firstPictureS = ((await page.evaluate(() => window.firstPictureMs)) - began) / 1000;
    await settled(page, asked);
    return { page, asked, firstPictureS, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function walkAndPan({ page, asked }, steps) {
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  await session.send("HeapProfiler.enable");
  const random = randomNumbers(7);
  const memories = [await memory(session, "first picture")];
  for (let done = steps; done <= 2 * steps; done += steps) {
    await walk(page, asked, steps, random);
    memories.push(await memory(session, `${done} zooms and pans`));
  }
  for (const [i, zooms] of kTourZooms.entries()) {
    await tour(page, asked, zooms, kTourStops);
    memories.push(await memory(session, `these and ${(i + 1) * kTourStops} stops all over the trace`));
  }
  const pans = [await panFrames(page, asked, 6), await panFrames(page, asked, 24)];
  if (complaints.length > 0) throw new Error(`the page complained: ${complaints.join("; ")}`);
  return { memories, pans };
}

async function measure(trace, steps) {
  const browser = await launchBrowser();
  try {
    const firstPicturesS = [];
    for (let i = 1; ; ++i) {
      const opened = await open(browser, trace);
      firstPicturesS.push(opened.firstPictureS);
      try {
        if (i < kOpenings) continue;
        return { browser: `Chromium ${browser.version()}`, firstPicturesS, ...(await walkAndPan(opened, steps)) };
      } finally {
        await opened.close();
      }
    }
  } finally {
    await browser.close();
  }
}

const [trace, steps = "200"] = process.argv.slice(2);
if (!trace) {
  console.error("usage: node bench/view_browser.mjs TRACE [STEPS]");
  process.exit(2);
}
const reason = whyNot();
console.log(JSON.stringify(reason ? { skipped: reason } : await measure(resolve(trace), Number(steps))));
