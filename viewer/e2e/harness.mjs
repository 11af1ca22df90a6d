// A browser, a running `firelane view`, and tests that are sentences. No framework: what a test needs is a page and a check.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const kRoot = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const kFirelane = process.env.FIRELANE_BINARY ?? join(kRoot, "build/release/firelane");
// A built page to test instead of the program's own (its server may be of an older build): FIRELANE_PAGE=viewer/dist.
const kPage = process.env.FIRELANE_PAGE;
const kArtefacts = join(kRoot, "viewer/e2e/artefacts");
const kChromium = process.env.CHROMIUM ?? "/usr/bin/chromium";
const kTimeoutMs = 30_000; // for machines that are busy with something else, too
const kStartMs = 120_000;

// Why the tests cannot run here, or null.
export function whyNot() {
  if (!existsSync(kChromium)) return `${kChromium} is missing: apt-get install chromium, or set CHROMIUM`;
  if (!existsSync(kFirelane)) return `${kFirelane} is missing: make build`;
  return null;
}

export function check(condition, what) {
  if (!condition) throw new Error(`does not hold: ${what}`);
}

export function equal(actual, expected, what) {
  if (actual !== expected) throw new Error(`${what}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
}

// Asks again until the answer is true.
export async function until(holds, what) {
  const end = performance.now() + kTimeoutMs;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`did not come true: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

// The address that a server prints once it listens; fails when it ends before, or says nothing for long.
export function printedUrl(child, stream, pattern, name) {
  return new Promise((resolve, reject) => {
    let text = "";
    const fail = (what) => reject(new Error(`${name} ${what}: ${text.trim()}`));
    const timer = setTimeout(() => {
      child.kill();
      fail("printed no address");
    }, kStartMs);
    stream.on("data", (data) => {
      text += data;
      const url = pattern.exec(text)?.[0];
      if (!url) return;
      clearTimeout(timer);
      resolve(url);
    });
    child.on("error", (error) => fail(`did not start (${error.message})`));
    child.on("exit", (code) => {
      clearTimeout(timer);
      fail(`ended with ${code}`);
    });
  });
}

// `firelane view FILES`; resolves to its URL and a way to end it.
export async function startServer(files) {
  const child = spawn(kFirelane, ["view", "--no-open", ...files], { cwd: kRoot, stdio: ["ignore", "pipe", "ignore"] });
  const url = await printedUrl(child, child.stdout, /http:\S+(?=\s)/, "firelane view");
  return { url, stop: () => child.kill("SIGINT") };
}

// Without a GPU, whether the machine has one or not: pictures and figures are of the same browser everywhere. Containers
// have little or no /dev/shm.
export function launchBrowser() {
  return chromium.launch({
    executablePath: kChromium,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    timeout: kStartMs,
  });
}

export class Suite {
  constructor() {
    this.tests = [];
  }

  // Options: `expectErrors`, console messages that belong to the test, as a regular expression; `viewport`; `dark`; `touch`.
  test(name, run, options = {}) {
    this.tests.push({ name, run, ...options });
  }

  // How many tests failed twice. A first failure gets a second try, in a fresh context, and is named in the end: what passes
  // only then is worth a look, and no reason to stop.
  async run(browser, only) {
    mkdirSync(kArtefacts, { recursive: true });
    let failed = 0;
    try {
      for (const item of this.tests) {
        if (only && !item.name.includes(only)) continue;
        if (await runOne(browser, item)) continue;
        if (!browser.isConnected()) browser = await launchBrowser();
        const passed = await runOne(browser, item);
        console.log(passed ? `        passed at the second try: ${item.name}` : `        failed twice: ${item.name}`);
        if (!passed) failed += 1;
      }
    } finally {
      await browser.close();
    }
    return failed;
  }
}

// A page of its own, and what it complains about.
async function openPage(browser, { expectErrors, viewport, dark, touch }) {
  const context = await browser.newContext({
    viewport: viewport ?? { width: 1280, height: 800 },
    colorScheme: dark ? "dark" : "light",
    reducedMotion: "reduce",
    hasTouch: touch ?? false,
  });
  context.setDefaultTimeout(kTimeoutMs);
  if (kPage) await servePage(context, kPage);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !expectErrors?.test(message.text())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("dialog", (dialog) => {
    complaints.push(`a dialog opened: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return { context, page, complaints };
}

function servePage(context, folder) {
  const isPage = (url) => url.searchParams.has("token") || url.pathname.startsWith("/assets/");
  return context.route(isPage, async (route) => {
    const response = await route.fetch();
    const path = new URL(route.request().url()).pathname.slice(1) || "index.html";
    await route.fulfill(response.ok() ? { response, body: readFileSync(join(folder, path)) } : { response });
  });
}

async function runOne(browser, item) {
  const began = performance.now();
  let opened = null;
  let error = null;
  const shot = (suffix = "") =>
    opened.page.screenshot({
      path: join(kArtefacts, `${fileName(item.name)}${suffix && `-${fileName(suffix)}`}.png`),
    });
  try {
    opened = await openPage(browser, item);
    await item.run({ page: opened.page, shot });
    const { complaints } = opened;
    if (complaints.length > 0) throw new Error(`the page complained: ${complaints.join("; ")}`);
    await shot();
  } catch (reason) {
    error = reason;
    if (opened) await shot("failed").catch(() => {});
  }
  await opened?.context.close().catch(() => {});
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`${error ? "FAILED" : "ok    "} ${seconds.padStart(5)} s  ${item.name}`);
  if (error) console.log(`        ${error.message.split("\n").slice(0, 6).join("\n        ")}`);
  return error === null;
}

function fileName(text) {
  return text
    .replace(/[^a-z0-9]+/gi, "-")
    .replace(/^-|-$/g, "")
    .toLowerCase();
}
