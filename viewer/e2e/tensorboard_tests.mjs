// The page inside the real TensorBoard: below a path prefix, with runs, workers, and a trace that is written later.

import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { check, equal, kPython, kRoot, printedUrl, start, until, whyNoPython } from "./harness.mjs";
import { writeHostileTrace } from "./hostile.mjs";

const kTime = "1700000000000000000";

export function whyNoTensorBoard() {
  if (!existsSync(join(kRoot, ".venv/bin/tensorboard"))) return "no tensorboard in .venv: make setup";
  return whyNoPython();
}

// Resolves to its URL, its log folder and a function that stops it. The source tree has no installed entry point: it gets one.
export async function startTensorBoard() {
  const folder = mkdtempSync(join(tmpdir(), "firelane-tensorboard-"));
  const info = join(folder, "site/firelane-0.dist-info");
  mkdirSync(info, { recursive: true });
  writeFileSync(join(info, "METADATA"), "Metadata-Version: 2.1\nName: firelane\nVersion: 0\n");
  writeFileSync(join(info, "entry_points.txt"), "[tensorboard_plugins]\nfirelane = firelane._tensorboard:Plugin\n");
  const log = join(folder, "log");
  addTrace(log, "run1", "host_2", "gpt_full.json.gz");
  mkdirSync(join(log, "hostile"));
  writeHostileTrace(join(log, "hostile", `<img src=x onerror=alert(1)>.${kTime}.pt.trace.json`));
  const flags = ["--logdir", log, "--port", "0", "--path_prefix", "/some/prefix", "--reload_interval", "2"];
  const child = start(kPython, ["-m", "tensorboard.main", ...flags], {
    env: { ...process.env, PYTHONPATH: [join(kRoot, "python"), join(folder, "site")].join(delimiter) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const url = await printedUrl(child, child.stderr, /http:\/\/localhost:\S+(?=\s)/, "tensorboard");
  const stop = async () => {
    child.kill("SIGTERM");
    await once(child, "exit"); // it may still write into the folder
    rmSync(folder, { recursive: true, force: true });
  };
  return { url, log, stop };
}

function addTrace(log, run, worker, name) {
  mkdirSync(join(log, run), { recursive: true });
  const path = join(log, run, `${worker}.${kTime}.pt.trace.json.gz`);
  copyFileSync(join(kRoot, "tests/data", name), `${path}.part`);
  renameSync(`${path}.part`, path);
}

// Below a path prefix TensorBoard does not find some of its own fonts; all of our files must be found.
const kFonts = { expectErrors: /status of 404/ };

async function openTab(page, url) {
  const missing = [];
  page.on("response", (response) => {
    if (response.url().includes("/firelane/") && !response.ok()) missing.push(`${response.status()} ${response.url()}`);
  });
  await page.goto(`${url}#firelane`);
  const frame = page.frameLocator("iframe");
  await frame.locator(".shell").waitFor();
  return { frame, missing };
}

export function tensorBoardTests(suite, board) {
  suite.test("TensorBoard has a Firelane tab with the findings of the trace that is chosen", async ({ page, shot }) => {
    const { frame, missing } = await openTab(page, board.url);
    check(await page.getByText("Firelane", { exact: false }).first().isVisible(), "the tab is there");
    const chooser = frame.getByRole("combobox", { name: "Trace" });
    await chooser.selectOption({ label: "run1/host_2" });
    await frame.locator("article.finding").first().waitFor();
    await shot("overview");
    await frame.locator(".tab", { hasText: "Timeline" }).click();
    await frame.locator(".lanes-canvas").waitFor();
    equal(missing.join("\n"), "", "answers that are missing");
  }, kFonts);

  suite.test("TensorBoard's reload button reaches the tab", async ({ page }) => {
    const { frame } = await openTab(page, board.url);
    await frame.locator("main .card").first().waitFor();
    // The tab's own requests, every two seconds, name no trace.
    const asked = page.waitForRequest(/firelane\/api\/traces\?trace=/);
    await page.locator("button[title='Reload data'], .reload-button").first().click();
    await asked;
  }, kFonts);

  suite.test("TensorBoard's tab shows a trace that was written later, and hostile names as text", async ({ page }) => {
    const { frame, missing } = await openTab(page, board.url);
    const chooser = frame.getByRole("combobox", { name: "Trace" });
    await chooser.selectOption({ label: "hostile/<img src=x onerror=alert(1)>" });
    await frame.locator("main .card").first().waitFor();
    equal(await frame.locator("img").count(), 0, "pictures in the page");
    addTrace(board.log, "run2", "late", "mm64.json.gz");
    await frame.getByRole("button", { name: "New: run2/late" }).click();
    await until(
      async () => (await chooser.locator("option:checked").innerText()) === "run2/late",
      "the new trace is shown",
    );
    await frame.locator("main .card").first().waitFor();
    await frame.locator(".new-trace").waitFor({ state: "detached" });
    equal(missing.join("\n"), "", "answers that are missing");
  }, kFonts);
}
