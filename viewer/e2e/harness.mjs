// A browser, a running `firelane view`, and tests whose names are sentences. No framework: a test needs a page and a check.
//
// Tests wait for conditions, never for time, and there are no retries: one that fails under load is fixed. The address is read
// in the page (`hashOf`): Playwright's page.url() follows it with a delay.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const kRoot = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const kFirelane = process.env.FIRELANE_BINARY ?? join(kRoot, "build/release/firelane");
// FIRELANE_PAGE=viewer/dist tests this page instead of the one inside the program, which may be older.
const kPage = process.env.FIRELANE_PAGE;
const kArtefacts = join(kRoot, "viewer/e2e/artefacts");
// The headless shell takes half of the whole browser's CPU time.
const kChromium = process.env.CHROMIUM ?? ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"].find(existsSync);
const kTimeoutMs = 300_000; // nothing takes this long; it ends a test that hangs, on a busy machine as well
const kStartMs = 300_000;

// Why the tests cannot run here, or null.
export function whyNot() {
  if (!kChromium || !existsSync(kChromium))
    return `${kChromium ?? "Chromium"} is missing: apt-get install chromium-headless-shell, or set CHROMIUM`;
  if (!existsSync(kFirelane)) return `${kFirelane} is missing: make build`;
  return null;
}

export const kPython = join(kRoot, ".venv/bin/python");

// Why the Python package cannot be used here, or null.
export function whyNoPython() {
  if (!existsSync(kPython)) return "no .venv: make setup";
  const isBuilt = readdirSync(join(kRoot, "python/firelane")).some((name) => /^_trace\..*so$/.test(name));
  return isBuilt ? null : "the Python module is not built: make build";
}

export function check(condition, what) {
  if (!condition) throw new Error(`not true: ${what}`);
}

export function equal(actual, expected, what) {
  if (actual !== expected) throw new Error(`${what}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
}

// Polls until the condition is true.
export async function until(condition, what) {
  const end = performance.now() + kTimeoutMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`never became true: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

// The keys of the page's link, as they are now.
export async function hashOf(page) {
  return new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));
}

// The URL that a server prints once it listens. Fails when it exits before that, or stays silent.
export function printedUrl(child, stream, pattern, name) {
  return new Promise((resolve, reject) => {
    let text = "";
    const fail = (what) => reject(new Error(`${name} ${what}: ${text.trim()}`));
    const timer = setTimeout(() => {
      child.kill();
      fail("printed no URL");
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
      fail(`exited with ${code}`);
    });
  });
}

// A child process that ends with this one, however that ends.
export function start(command, args, options) {
  const child = spawn(command, args, options);
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}
const children = new Set();
process.once("exit", () => children.forEach((child) => child.kill()));
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

// `firelane view FILES`: resolves to its URL and a function that stops it.
export async function startServer(files) {
  const child = start(kFirelane, ["view", "--no-open", ...files], { cwd: kRoot, stdio: ["ignore", "pipe", "ignore"] });
  const url = await printedUrl(child, child.stdout, /http:\S+(?=\s)/, "firelane view");
  if (kPage) policies.set(url, (await fetch(url)).headers.get("content-security-policy"));
  return { url, stop: () => child.kill("SIGINT") };
}

const policies = new Map(); // of the pages that servers sent, by URL
const kTypes = { html: "text/html", js: "text/javascript", css: "text/css" };

// Answers requests for a server's page and its assets from `folder`, with the server's policy. Not through route.fetch(): that
// reuses connections which the server may just be closing.
function servePage(context, folder) {
  const policyOf = (url) => policies.get(`${url.origin}${url.pathname}${url.search}`);
  const isServed = (url) => url.pathname.startsWith("/assets/") || policyOf(url) !== undefined;
  return context.route(isServed, (route) => {
    const url = new URL(route.request().url());
    const policy = policyOf(url);
    const path = policy ? "index.html" : url.pathname.slice(1);
    const headers = { "content-type": kTypes[path.split(".").pop()], ...(policy && { "content-security-policy": policy }) };
    return route.fulfill({ headers, body: readFileSync(join(folder, path)) });
  });
}

// Without a GPU, so that pictures are the same on every machine; without /dev/shm, which containers have little of.
export function launchBrowser() {
  return chromium.launch({
    executablePath: kChromium,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    timeout: kStartMs,
  });
}

export class Suite {
  // `pictures`: of each test's last screen, and where a test asks for one. Those of failed tests are always taken.
  constructor({ pictures }) {
    this.tests = [];
    this.pictures = pictures;
  }

  // Options: `expectErrors`, a regular expression for console errors that belong to the test; `viewport`; `dark`; `touch`.
  test(name, run, options = {}) {
    this.tests.push({ name, run, ...options });
  }

  // The names of the tests that failed, of those whose name contains `only`.
  async run(browser, only = "") {
    mkdirSync(kArtefacts, { recursive: true });
    const failed = [];
    for (const item of this.tests) {
      if (item.name.includes(only) && !(await runOne(browser, item, this.pictures))) failed.push(item.name);
    }
    return failed;
  }
}

// A page in a context of its own, and the errors that it reports.
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
  const errors = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !expectErrors?.test(message.text())) errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("dialog", (dialog) => {
    errors.push(`a dialog opened: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return { context, page, errors };
}

async function runOne(browser, item, pictures) {
  const start = performance.now();
  let opened = null;
  let error = null;
  const picture = (suffix) =>
    opened.page.screenshot({
      path: join(kArtefacts, `${fileName(item.name)}${suffix && `-${fileName(suffix)}`}.png`),
    });
  const shot = async (suffix = "") => {
    if (pictures) await picture(suffix);
  };
  try {
    opened = await openPage(browser, item);
    await item.run({ page: opened.page, shot });
    if (opened.errors.length > 0) throw new Error(`the page reported: ${opened.errors.join("; ")}`);
    await shot();
  } catch (reason) {
    error = reason;
    if (opened) await picture("failed").catch(() => {});
  }
  await opened?.context.close().catch(() => {});
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
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
