// The viewer against the built program, in headless Chromium:
//
//   node viewer/e2e/run.mjs [--pictures] [--repeat N] [--busy N] [PART OF A TEST'S NAME]
//
// Pictures land in viewer/e2e/artefacts: those of failed tests, with --pictures of all. Exit code 1 when a test failed. Without
// Chromium, or where it does not start (some containers), the tests are skipped with a line that says why.
//
// --repeat runs everything N times, each time with a new server and browser, and ends with how often each test failed; --busy
// keeps N more processes busy meanwhile. Flaky tests show with: --repeat 50 --busy 4.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { kRoot, launchBrowser, start, startServer, Suite, whyNoPython, whyNot } from "./harness.mjs";
import { writeHostileTrace } from "./hostile.mjs";
import { samples, writeFormatFiles } from "./format_files.mjs";
import { formatsTests } from "./formats_tests.mjs";
import { compareTests, kCompared } from "./compare_tests.mjs";
import { lightTests, samplesTests } from "./light_tests.mjs";
import { notebookTests } from "./notebook_tests.mjs";
import { pageTests } from "./page_tests.mjs";
import { panesTests } from "./panes_tests.mjs";
import { writeRankTraces } from "./rank_traces.mjs";
import { ranksTests } from "./ranks_tests.mjs";
import { startTensorBoard, tensorBoardTests, whyNoTensorBoard } from "./tensorboard_tests.mjs";
import { timelineTests } from "./timeline_tests.mjs";

const { values: options, positionals } = parseArgs({
  options: { pictures: { type: "boolean", default: false }, repeat: { type: "string", default: "1" }, busy: { type: "string", default: "0" } },
  allowPositionals: true,
});

function skip(reason) {
  console.log(`e2e: skipped: ${reason}`);
  process.exit(0);
}

const reason = whyNot();
if (reason) skip(reason);
await launchBrowser().then(
  (browser) => browser.close(),
  (error) => skip(`Chromium does not start here: ${error.message.split("\n")[0]}`),
);
const noBoard = whyNoTensorBoard();
if (noBoard) console.log(`e2e: TensorBoard is skipped: ${noBoard}`);

const noRecording = whyNoPython();
if (noRecording) console.log(`e2e: stack samples are skipped: ${noRecording}`);

const realFiles = samples();
if (realFiles.length === 0) console.log("e2e: real files of other tools are skipped: not here; FIRELANE_SAMPLES names their folder");

// The names of the tests that failed.
async function runOnce() {
  const folder = mkdtempSync(join(tmpdir(), "firelane-e2e-"));
  const hostile = join(folder, "hostile.json");
  writeHostileTrace(hostile);
  const data = readdirSync(join(kRoot, "tests/data"))
    .filter((name) => /\.(json\.gz|lane)$/.test(name) && name !== "gpt_full.json.gz")
    .map((name) => `tests/data/${name}`);
  const traces = ["tests/data/gpt_full.json.gz", ...data, hostile];

  const stops = [() => rmSync(folder, { recursive: true, force: true })];
  try {
    const server = await startServer(traces);
    stops.push(server.stop);
    if (!(await (await fetch(server.url)).text()).includes('id="app"'))
      throw new Error("e2e: the program holds no page: make build");
    const suite = new Suite({ pictures: options.pictures });
    pageTests(suite, server.url, traces);
    panesTests(suite, server.url, traces);
    timelineTests(suite, server.url);
    lightTests(suite, server.url, traces);
    if (!noRecording) samplesTests(suite, folder);
    const job = join(folder, "job");
    writeRankTraces(job, 4);
    const [ranks, parts] = [await startServer([job]), await startServer(["tests/data/ranks"])];
    stops.push(ranks.stop, parts.stop);
    ranksTests(suite, { url: ranks.url, partsUrl: parts.url, folder, traces: job });
    const files = [...writeFormatFiles(folder), ...realFiles];
    const formats = await startServer(files.map((file) => file.path));
    stops.push(formats.stop);
    formatsTests(suite, formats.url, files);
    const comparison = await startServer(kCompared);
    stops.push(comparison.stop);
    compareTests(suite, `${comparison.url}#pane=compare`);
    notebookTests(suite, hostile);
    if (!noBoard) {
      const board = await startTensorBoard();
      stops.push(board.stop);
      tensorBoardTests(suite, board);
    }
    const browser = await launchBrowser();
    stops.push(() => browser.close());
    return await suite.run(browser, positionals[0]);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

// Ends by itself even if this process is killed.
const kBusyLoop =
  "const parent = process.ppid; while (process.ppid === parent) { const end = Date.now() + 500; while (Date.now() < end); }";
for (let i = 0; i < Number(options.busy); ++i) start(process.execPath, ["-e", kBusyLoop]);

const repeat = Number(options.repeat);
const failures = new Map();
const startMs = performance.now();
for (let round = 1; round <= repeat; ++round) {
  if (repeat > 1) console.log(`e2e: round ${round} of ${repeat}`);
  for (const name of await runOnce()) failures.set(name, (failures.get(name) ?? 0) + 1);
}
if (repeat > 1) for (const [name, count] of failures) console.log(`e2e: failed ${count} of ${repeat} times: ${name}`);
const seconds = ((performance.now() - startMs) / 1000).toFixed(0);
console.log(`e2e: ${failures.size === 0 ? "all passed" : `${failures.size} failed`} in ${seconds} s`);
process.exit(failures.size === 0 ? 0 : 1);
