// Small files of other tools, made here: what JAX, Nsight Systems, rocprofv3, Ascend's and MTIA's profilers, Perfetto and
// samplers write. Real ones are beside the checkout on some machines (shared/traces/other, or FIRELANE_SAMPLES).

import { execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { kFirelane, kRoot } from "./harness.mjs";

const kSteps = 5;

// ---- protobuf

function varint(number) {
  const out = [];
  for (let rest = BigInt(number); ; rest >>= 7n) {
    const byte = Number(rest & 127n);
    if (rest < 128n) return Buffer.from([...out, byte]);
    out.push(byte | 128);
  }
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const piece = (field, value) => {
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(value);
  return Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);
};
const entry = (field, id, parts) => piece(field, Buffer.concat([number(1, id), piece(2, Buffer.concat([number(1, id), ...parts]))]));

// A TPU with two ops a step, and the host that starts them.
function xplane() {
  const event = (name, us, durationUs) =>
    piece(4, Buffer.concat([number(1, name), number(2, us * 1_000_000), number(3, durationUs * 1_000_000)]));
  const line = (id, name, events) => piece(3, Buffer.concat([number(1, id), piece(2, name), number(3, 1000), ...events]));
  const steps = Array.from({ length: kSteps }, (_, i) => i);
  const stat = (id, value) => piece(5, Buffer.concat([number(1, id), value]));
  const op = (id, name, category, flops) =>
    entry(4, id, [piece(2, `%${name} = f32[8]{0}`), piece(4, name), stat(1, piece(5, category)), stat(2, number(4, flops)), stat(3, number(4, 4096))]);
  const device = [
    number(1, 1),
    piece(2, "/device:TPU:0"),
    line(1, "XLA Modules", steps.map((i) => event(3, i * 1000, 900))),
    line(2, "XLA Ops", steps.flatMap((i) => [event(1, i * 1000 + 10, 500), event(2, i * 1000 + 520, 300)])),
    op(1, "fusion.1", "convolution fusion", 1_000_000),
    op(2, "all-reduce.2", "all-reduce", 10),
    entry(4, 3, [piece(2, "jit_train(77)")]),
    ...["hlo_category", "flops", "bytes_accessed", "device_type_string"].map((name, i) => entry(5, i + 1, [piece(2, name)])),
    piece(6, Buffer.concat([number(1, 4), piece(5, "TPU v5 lite")])),
  ];
  const host = [
    piece(2, "/host:CPU"),
    line(41, "main/41", steps.map((i) => event(1, i * 1000, 200))),
    entry(4, 1, [piece(2, "PjitFunction(train)")]),
  ];
  return Buffer.concat([piece(1, Buffer.concat(device)), piece(1, Buffer.concat(host)), piece(4, "worker-0")]);
}

// ---- SQLite

const kNsight = `
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.executescript("""
CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT);
INSERT INTO META_DATA_EXPORT VALUES('EXPORT_SCHEMA_VERSION', '3.25.0');
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES(1, 'ampere_sgemm_128x64_tn'), (2, 'cudaLaunchKernel_v7000');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT,
  globalPid INT, demangledName INT, shortName INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT, correlationId INT, nameId INT);
CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, globalTid INT, text TEXT, textId INT, domainId INT);
CREATE TABLE TARGET_INFO_GPU_METRICS(typeId INT, metricId INT, metricName TEXT);
INSERT INTO TARGET_INFO_GPU_METRICS VALUES(0, 1, 'SMs Active [Throughput %]');
CREATE TABLE GPU_METRICS(timestamp INT, typeId INT, metricId INT, value INT);
""")
pid = 1 << 48 | 10 << 24
for i in range(${kSteps}):
    t = (i + 1) * 1_000_000
    db.execute("INSERT INTO NVTX_EVENTS VALUES(?,?,59,?,?,NULL,0)", (t, t + 900_000, pid | 11, f"step {i}"))
    db.execute("INSERT INTO NVTX_EVENTS VALUES(?,?,59,?,?,NULL,0)", (t + 1000, t + 90_000, pid | 11, f"aten::mm, op_id = {i}"))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?,?,?,?,2)", (t + 2000, t + 9000, pid | 11, i))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?,?,0,1,7,?,?,1,1,64,1,1,128,1,1)", (t + 20_000, t + 700_000, i, pid))
    for k in range(10):
        db.execute("INSERT INTO GPU_METRICS VALUES(?,0,1,?)", (t + k * 100_000, 40 + 5 * k))
db.commit()
`;

// ---- JSON

function rocprof() {
  const steps = Array.from({ length: kSteps }, (_, i) => i);
  const at = (i) => (i + 1) * 1_000_000;
  const dispatch = (i) => ({
    thread_id: 1, correlation_id: { internal: i + 1 }, start_timestamp: at(i) + 20_000, end_timestamp: at(i) + 700_000, stream_id: { handle: 3 },
    dispatch_info: { agent_id: { handle: 9 }, queue_id: { handle: 1 }, kernel_id: 5, workgroup_size: { x: 256, y: 1, z: 1 }, grid_size: { x: 65536, y: 1, z: 1 } },
  });
  const region = (kind, id, from, to) => ({ kind, operation: 1, thread_id: 1, correlation_id: { internal: id }, start_timestamp: from, end_timestamp: to });
  return JSON.stringify({
    "rocprofiler-sdk-tool": [{
      metadata: { pid: 42 },
      agents: [{ id: { handle: 9 }, type: 2, cu_count: 304, wave_front_size: 64, max_waves_per_simd: 8, simd_per_cu: 4, lds_size_in_kb: 64, name: "gfx942", product_name: "AMD Instinct MI300X" }],
      strings: {
        buffer_records: [{ kind: "NONE", operations: [] }, { kind: "HIP", operations: ["?", "hipLaunchKernel"] }],
        marker_api: steps.map((i) => ({ key: 100 + i, value: `step ${i}` })),
      },
      kernel_symbols: [{ kernel_id: 5, formatted_kernel_name: "Cijk_Ailk_Bljk_HHS_BH", arch_vgpr_count: 64 }],
      buffer_records: {
        kernel_dispatch: steps.map(dispatch),
        hip_api: steps.map((i) => region(1, i + 1, at(i) + 2000, at(i) + 9000)),
        marker_api: steps.map((i) => region(0, 100 + i, at(i), at(i) + 900_000)),
      },
    }],
  });
}

function ascend() {
  const names = { 1: "Python", 2: "CANN", 8: "Ascend Hardware" };
  const events = Object.entries(names).map(([pid, name]) => ({ ph: "M", name: "process_name", pid: Number(pid), tid: 0, args: { name } }));
  for (let i = 0; i < kSteps; ++i) {
    const ts = (us) => (100_000 + i * 1000 + us).toFixed(3);
    events.push({ ph: "X", cat: "cpu_op", name: "aten::mm", pid: 1, tid: 5, ts: ts(1), dur: 90, args: {} });
    events.push({ ph: "X", name: "AscendCL@aclnnMm", pid: 2, tid: 5, ts: ts(20), dur: 5, args: { level: "acl", connection_id: i } });
    events.push({ ph: "X", name: "MatMulV2", pid: 8, tid: 3, ts: ts(100), dur: 800, args: { "Task Type": "AI_CORE", connection_id: i } });
    events.push({ ph: "s", name: "HostToDevice", cat: "HostToDevice", id: String(i), pid: 2, tid: 5, ts: ts(20) });
    events.push({ ph: "f", bp: "e", name: "HostToDevice", cat: "HostToDevice", id: String(i), pid: 8, tid: 3, ts: ts(100) });
  }
  return JSON.stringify(events);
}

function mtia() {
  const traceEvents = [{ ph: "M", name: "process_name", pid: 0, tid: 0, ts: 0, args: { name: "MTIA 0" } }];
  for (let i = 0; i < kSteps; ++i) {
    const at = i * 1000;
    traceEvents.push({ ph: "X", cat: "cpu_op", name: "aten::mm", pid: 9, tid: 9, ts: at, dur: 90, args: { "External id": i + 1 } });
    traceEvents.push({ ph: "X", cat: "mtia_runtime", name: "runFunction", pid: 9, tid: 9, ts: at + 20, dur: 10, args: { correlation: i + 1 } });
    traceEvents.push({ ph: "X", cat: "mtia_ccp_events", name: "mm", pid: 0, tid: 1, ts: at + 100, dur: 700, args: { correlation: i + 1, device: 0 } });
  }
  return JSON.stringify({ schemaVersion: 1, traceEvents });
}

function speedscope() {
  const events = [];
  for (let i = 0; i < kSteps; ++i) {
    events.push({ type: "O", frame: 0, at: i * 10 }, { type: "O", frame: 1, at: i * 10 + 1 }, { type: "C", frame: 1, at: i * 10 + 7 }, { type: "C", frame: 0, at: i * 10 + 9 });
  }
  return JSON.stringify({
    $schema: "https://www.speedscope.app/file-format-schema.json",
    shared: { frames: [{ name: "main", file: "train.py", line: 3 }, { name: "step", file: "train.py", line: 12 }] },
    profiles: [{ type: "evented", name: "MainThread", unit: "milliseconds", startValue: 0, endValue: 50, events }],
  });
}

const kCollapsed = "main;train;forward 40\nmain;train;backward 70\nmain;load 10\n";

// Writes one of each into `folder`. What to look for: the format's name in `firelane info`, a lane, and panes that must be there.
export function writeFormatFiles(folder) {
  const write = (name, bytes) => {
    writeFileSync(join(folder, name), bytes);
    return join(folder, name);
  };
  const sqlite = join(folder, "nsight.sqlite");
  execFileSync(join(kRoot, ".venv/bin/python"), ["-c", kNsight, sqlite]);
  const perfetto = join(folder, "run.pftrace");
  execFileSync(kFirelane, ["export", "tests/data/two_streams.json.gz", "--to", "perfetto", "-o", perfetto], { cwd: kRoot });
  return [
    { path: write("tpu.xplane.pb", xplane()), format: "XPlane", lane: "XLA Ops" },
    { path: sqlite, format: "Nsight Systems SQLite", lane: "stream 7" },
    { path: write("rocprof.json", rocprof()), format: "rocprofv3 JSON", lane: "stream 3" },
    { path: write("rocprof_cut.json", rocprof().slice(0, -400)), format: "rocprofv3 JSON", lane: "stream 3" },
    { path: write("trace_view.json", ascend()), format: "Ascend JSON", lane: "stream 3" },
    { path: write("mtia.json", mtia()), format: "JSON", lane: "stream 1" },
    { path: perfetto, format: "Perfetto", lane: "stream" },
    { path: join(kRoot, "tests/data/snapshot.pickle"), format: "memory snapshot", isDump: true },
    { path: join(kRoot, "tests/data/flight_recorder/rank_0.json"), format: "flight recorder", isDump: true, card: "Collectives" },
    { path: write("stacks.speedscope.json", speedscope()), format: "speedscope", lane: "MainThread" },
    { path: write("stacks.txt", kCollapsed), format: "collapsed" },
  ];
}

// The real ones, where they are.
export function samples() {
  const folders = [process.env.FIRELANE_SAMPLES ?? ""];
  for (let up = kRoot, level = 0; level < 4; ++level, up = dirname(up)) folders.push(join(up, "shared/traces/other"));
  const folder = folders.find((each) => each && existsSync(each));
  if (!folder) return [];
  return [
    { path: "tpu_v6e_inference.xplane.pb", format: "XPlane", card: "xla:0" },
    { path: "jax_mi300_conv.xplane.pb", format: "XPlane", card: "Overhead-bound" },
    { path: "nsys_h100_2gpu.sqlite", format: "Nsight Systems SQLite" },
    { path: "rocprofv3_mi350.json.gz", format: "rocprofv3 JSON" },
    { path: "ascend_trace_view.json.gz", format: "Ascend JSON", lane: "Stream 3", card: "CANN compiles operators" },
    { path: "kineto_mtia_inference.json.gz", format: "JSON" },
    { path: "kineto_mi300_qwen.json.gz", format: "JSON" },
    { path: "memory_snapshot_h200.pickle", format: "memory snapshot", isDump: true },
    { path: "nccl_flight_recorder_h200.pickle", format: "flight recorder", isDump: true, card: "Collectives" },
  ]
    .map((sample) => ({ ...sample, path: join(folder, sample.path) }))
    .filter((sample) => existsSync(sample.path));
}
