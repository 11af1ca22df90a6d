// A browser, a running `firelane view`, and tests that are sentences. No framework: what a test needs is a page and a check.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const kRoot = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const kFirelane = process.env.FIRELANE_BINARY ?? join(kRoot, "build/release/firelane");
const kArtefacts = join(kRoot, "viewer/e2e/artefacts");
const kChromium = process.env.CHROMIUM ?? "/usr/bin/chromium";

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

// `firelane view FILES`; resolves to its URL and a way to end it.
export function startServer(files) {
  const child = spawn(kFirelane, ["view", "--no-open", ...files], { cwd: kRoot, stdio: ["ignore", "pipe", "pipe"] });
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (data) => {
      text += data;
      const url = /http:\S+/.exec(text)?.[0];
      if (url) resolve({ url, stop: () => child.kill("SIGINT") });
    });
    child.on("exit", (code) => reject(new Error(`firelane view ended with ${code}`)));
  });
}

// Without a GPU, whether the machine has one or not: pictures and figures are of the same browser everywhere.
export function launchBrowser() {
  return chromium.launch({ executablePath: kChromium, args: ["--no-sandbox", "--disable-gpu"] });
}

export class Suite {
  constructor() {
    this.tests = [];
  }

  // `expectErrors`: console messages that belong to the test, as a regular expression.
  test(name, run, options = {}) {
    this.tests.push({ name, run, ...options });
  }

  async run(only) {
    mkdirSync(kArtefacts, { recursive: true });
    const browser = await launchBrowser();
    let failed = 0;
    try {
      for (const item of this.tests) {
        if (only && !item.name.includes(only)) continue;
        if (!(await runOne(browser, item))) failed += 1;
      }
    } finally {
      await browser.close();
    }
    return failed;
  }
}

async function runOne(browser, { name, run, expectErrors, viewport, dark }) {
  const began = performance.now();
  const context = await browser.newContext({
    viewport: viewport ?? { width: 1280, height: 800 },
    colorScheme: dark ? "dark" : "light",
    reducedMotion: "reduce",
  });
  context.setDefaultTimeout(8000);
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
  const shot = (suffix = "") =>
    page.screenshot({ path: join(kArtefacts, `${fileName(name)}${suffix && `-${fileName(suffix)}`}.png`) });
  let error = null;
  try {
    await run({ page, shot });
    if (complaints.length > 0) throw new Error(`the page complained: ${complaints.join("; ")}`);
    await shot();
  } catch (reason) {
    error = reason;
    await shot("failed").catch(() => {});
  }
  await context.close();
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`${error ? "FAILED" : "ok    "} ${seconds.padStart(5)} s  ${name}`);
  if (error) console.log(`        ${error.message.split("\n").slice(0, 6).join("\n        ")}`);
  return error === null;
}

function fileName(text) {
  return text
    .replace(/[^a-z0-9]+/gi, "-")
    .replace(/^-|-$/g, "")
    .toLowerCase();
}
