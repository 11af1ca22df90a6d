// The viewer against the built program, in headless Chromium:
//
//   node viewer/e2e/run.mjs [PART OF A TEST'S NAME]
//
// Pictures land in viewer/e2e/artefacts. Exit code 1 when a test failed twice; without Chromium, or where Chromium
// cannot be started (some containers), it says so and does nothing.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kRoot, launchBrowser, startServer, Suite, whyNot } from "./harness.mjs";
import { writeHostileTrace } from "./hostile.mjs";
import { notebookTests } from "./notebook_tests.mjs";
import { pageTests } from "./page_tests.mjs";
import { panesTests } from "./panes_tests.mjs";
import { startTensorBoard, tensorBoardTests, whyNoTensorBoard } from "./tensorboard_tests.mjs";
import { timelineTests } from "./timeline_tests.mjs";

function skip(reason) {
  console.log(`e2e: skipped: ${reason}`);
  process.exit(0);
}

const reason = whyNot();
if (reason) skip(reason);
const browser = await launchBrowser().catch((error) =>
  skip(`Chromium does not start here: ${error.message.split("\n")[0]}`),
);

const folder = mkdtempSync(join(tmpdir(), "firelane-e2e-"));
const hostile = join(folder, "hostile.json");
writeHostileTrace(hostile);
const data = readdirSync(join(kRoot, "tests/data"))
  .filter((name) => /\.(json\.gz|lane)$/.test(name) && name !== "gpt_full.json.gz")
  .map((name) => `tests/data/${name}`);
const traces = ["tests/data/gpt_full.json.gz", ...data, hostile];

let failed = 1;
const noBoard = whyNoTensorBoard();
if (noBoard) console.log(`e2e: TensorBoard is skipped: ${noBoard}`);
const server = await startServer(traces);
let board = null;
try {
  if (!(await (await fetch(server.url)).text()).includes('id="app"'))
    throw new Error("e2e: the program holds no page: make build");
  const suite = new Suite();
  const url = () => server.url;
  pageTests(suite, url, traces);
  panesTests(suite, url, traces);
  timelineTests(suite, url);
  notebookTests(suite, hostile);
  if (!noBoard) {
    board = await startTensorBoard();
    tensorBoardTests(suite, () => board);
  }
  const began = performance.now();
  failed = await suite.run(browser, process.argv[2]);
  console.log(
    `e2e: ${failed === 0 ? "all passed" : `${failed} failed`} in ${((performance.now() - began) / 1000).toFixed(0)} s`,
  );
} finally {
  server.stop();
  board?.stop();
  if (board) rmSync(board.folder, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
}
process.exit(failed === 0 ? 0 : 1);
