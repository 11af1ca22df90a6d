// A recording with light and full steps: what is shown first, which steps each number is of, and where links lead. And one with
// stack samples.

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { check, equal, hashOf, kFirelane, kPython, kRoot, startServer } from "./harness.mjs";
import { openTimeline } from "./timeline_tests.mjs";

const kRecording = "tests/data/h200_gpt_light.lane";
const kLight = "Step 17,Step 18,Step 19,Step 20,Step 21";
const kFull = "Step 22,Step 23,Step 24,Step 25,Step 26";

// The steps that the shown timeline has, and what the chooser above it says.
async function timelineOf(page) {
  await page.waitForSelector(".lanes-canvas");
  const steps = (await page.getByLabel("Step", { exact: true }).locator("option").allInnerTexts()).slice(1);
  const chosen = await page.getByRole("group", { name: "Steps" }).locator("[aria-pressed=true]").innerText();
  return { steps: steps.join(), chosen };
}

async function isOf(page, steps) {
  const shown = await timelineOf(page);
  equal(shown.steps, steps === "Light steps" ? kLight : kFull, "the steps of the timeline");
  equal(shown.chosen, steps, "the steps that the chooser names");
}

// The label of the card, or of the introduction, that contains this text.
const labelOf = (page, text) =>
  page.locator("h2, p.intro").filter({ hasText: text }).first().locator(".steps-label").innerText();

export function lightTests(suite, url, traces) {
  const id = String(traces.indexOf(kRecording));
  const open = (page, keys) => page.goto(`${url}#${new URLSearchParams({ trace: id, ...keys })}`);

  suite.test("a recording with light steps shows their timeline first, and the full ones by a click", async ({ page, shot }) => {
    await openTimeline(page, url, { trace: id });
    await isOf(page, "Light steps");
    await page.getByText("times are those of 5 light steps").waitFor();
    await shot("light");
    await page.getByRole("button", { name: "Full steps" }).click();
    await page.locator("option", { hasText: "Step 22" }).waitFor({ state: "attached" });
    await isOf(page, "Full steps");
    equal((await hashOf(page)).get("steps"), "full", "the link's steps");
    await page.goBack();
    await page.locator("option", { hasText: "Step 17" }).waitFor({ state: "attached" });
    await isOf(page, "Light steps");
  });

  suite.test("a row opens in the timeline of the steps that it is from", async ({ page }) => {
    await open(page, { pane: "steps" });
    await page.getByRole("grid", { name: "steps" }).getByRole("button", { name: "18", exact: true }).click();
    await isOf(page, "Light steps");
    await page.waitForFunction(() => /timeline\.(range|view)=/.test(location.hash));
    await open(page, { pane: "more", "more.report": "idle" });
    equal(await labelOf(page, "Why the device was idle"), "light steps", "the label of idle time");
    await page.locator("main .cell-link").first().click();
    await isOf(page, "Light steps");
    await open(page, { pane: "ops" });
    await page.locator("main .cell-link").first().click();
    await isOf(page, "Full steps");
    // From the other timeline no selection comes along.
    await page.waitForFunction(() => /timeline\.sel=/.test(location.hash));
    await page.getByRole("button", { name: "More", exact: true }).click();
    await page.getByRole("button", { name: "Launches" }).click();
    await page.locator("main .cell-link").first().click();
    await isOf(page, "Light steps");
  });

  suite.test("the overview says which steps its times are of", async ({ page }) => {
    await open(page, {});
    await page.locator(".steps-label").first().waitFor();
    await page.getByText("5 light steps analyzed").waitFor();
    equal(await labelOf(page, "Device utilization"), "light steps", "the label of the utilization");
    equal(await labelOf(page, "Where the time of each step goes"), "light steps, as recorded", "the label of the bars");
    equal(await labelOf(page, "Top operators"), "full steps", "the label of the operators");
    await page.goto(`${url}#trace=0`);
    await page.getByRole("heading", { name: "Top operators" }).waitFor();
    await page.waitForFunction(() => !document.querySelector("main .loading"));
    equal(await page.locator(".steps-label").count(), 0, "labels where all steps are the same");
  });

  suite.test("a one-file report of light and full steps has both timelines", async ({ page }) => {
    const report = `${kRoot}/viewer/e2e/artefacts/light.html`;
    execFileSync(kFirelane, ["report", kRecording, "-o", report, "--force"], { cwd: kRoot });
    const link = pathToFileURL(report).href;
    await openTimeline(page, link);
    await isOf(page, "Light steps");
    await openTimeline(page, `${link}?full`, { steps: "full" });
    await isOf(page, "Full steps");
    check(!(await page.locator(".error").count()), "no error");
  });
}

// All of a step's time is spent in one function: wherever a sample falls, it is in it.
const kProgram = `
import time
import quick_torch, torch

def prepare_a_batch():
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    return torch.ones(2, 4)

net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(16):
    net(prepare_a_batch()).sum().backward()
    optimizer.step()
`;

// The recording of a program with stack samples.
function recordSamples(folder) {
  const program = join(folder, "sampled.py");
  const recording = join(folder, "sampled.lane");
  writeFileSync(program, kProgram);
  execFileSync(kFirelane, ["record", "--sample", "--sample-rate", "1000", "-o", recording, "--", kPython, program], {
    cwd: folder,
    env: { ...process.env, PYTHONPATH: [join(kRoot, "python"), join(kRoot, "tests/python")].join(delimiter) },
    stdio: ["ignore", "ignore", "pipe"], // an error has what was printed
  });
  return recording;
}

export function samplesTests(suite, folder) {
  suite.test("stack samples are a flame graph of the sampled functions", async ({ page, shot }) => {
    const server = await startServer([recordSamples(folder)]);
    try {
      await showSamples(page, server.url);
      await shot("found");
      await selectSample(page);
    } finally {
      server.stop();
    }
  });
}

async function showSamples(page, url) {
  await page.goto(`${url}#pane=stacks`);
  await page.getByRole("button", { name: "Samples" }).click();
  await page.getByLabel("Search frames").fill("prepare_a_batch");
  await page.getByText(/^[1-9]\d* frames? match/).waitFor();
  check(!(await page.getByText("the trace has no samples").count()), "samples are shown, not operators");
  check(await page.getByRole("button", { name: "Time-ordered" }).isDisabled(), "an order that samples do not have is not offered");
}

async function selectSample(page) {
  await page.getByLabel("Search frames").fill("");
  await page.locator("canvas.flame").click({ position: { x: 300, y: 10 } });
  await page.locator(".flame-status", { hasText: "samples." }).waitFor();
  equal(await page.getByRole("button", { name: "Show in the timeline" }).count(), 0, "links to slices that are not there");
}
