// Traces of a job that nobody ran, small and in Kineto's form: ranks compute, meet in an all_reduce, and the last one is slow.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const kSteps = 6;
const kStepUs = 10_000;

function events(rank, ranks) {
  const slow = rank === ranks - 1;
  const shiftUs = rank * 350; // their clocks differ
  const group = { "Process Group Name": "0", "Process Group Description": "default_pg", "Group size": ranks };
  const out = [];
  for (let step = 0; step < kSteps; ++step) {
    const begin = shiftUs + step * kStepUs;
    const jitter = ((step * 7 + rank * 3) % 5) * 11;
    const computeUs = 5000 + jitter + (slow ? 2500 : 0);
    const endUs = begin - shiftUs + 8600 + step * 13 + rank; // of the collective, nearly the same everywhere
    out.push({ ph: "X", cat: "user_annotation", name: `ProfilerStep#${step + 3}`, pid: 1, tid: 1, ts: begin, dur: kStepUs - 10 });
    out.push({ ph: "X", cat: "cpu_op", name: "aten::mm", pid: 1, tid: 1, ts: begin + 20, dur: 50, args: { "External id": step * 2 + 1 } });
    out.push({ ph: "X", cat: "cuda_runtime", name: "cudaLaunchKernel", pid: 1, tid: 1, ts: begin + 30, dur: 10, args: { correlation: step * 2 + 1, "External id": step * 2 + 1 } });
    out.push({ ph: "X", cat: "kernel", name: "gemm", pid: 0, tid: 7, ts: begin + 100, dur: computeUs, args: { stream: 7, device: 0, correlation: step * 2 + 1, "External id": step * 2 + 1, grid: [64, 1, 1], block: [256, 1, 1] } });
    const start = begin + 110 + computeUs;
    const ranksText = `[${Array.from({ length: ranks }, (_, i) => i).join(", ")}]`;
    out.push({ ph: "X", cat: "kernel", name: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", pid: 0, tid: 20, ts: start, dur: endUs + shiftUs - start,
      args: { stream: 20, device: 0, correlation: step * 2 + 2, "Collective name": "allreduce", "In msg nelems": 1048576, "Out msg nelems": 1048576, dtype: "Float", ...group, "Process Group Ranks": ranksText, Seq: step } });
  }
  return out;
}

// rank0.json to rankN.json in `folder`.
export function writeRankTraces(folder, ranks) {
  mkdirSync(folder, { recursive: true });
  for (let rank = 0; rank < ranks; ++rank) {
    const trace = {
      schemaVersion: 1,
      distributedInfo: { backend: "nccl", rank, world_size: ranks },
      deviceProperties: [{ id: 0, name: "NVIDIA H200" }],
      baseTimeNanoseconds: 1_700_000_000_000_000_000,
      traceEvents: events(rank, ranks),
    };
    writeFileSync(join(folder, `rank${rank}.json`), JSON.stringify(trace));
  }
}
