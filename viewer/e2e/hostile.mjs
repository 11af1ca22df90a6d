// A trace in which every name looks like markup.

import { writeFileSync } from "node:fs";

export const kHostile = `<img src=x onerror="alert('owned')">`;
const kScript = "</script><script>alert('script')</script>";

export function writeHostileTrace(path) {
  const us = (ms) => ms * 1000;
  const host = (name, ts, dur, extra = {}) => ({ ph: "X", cat: "cpu_op", name, pid: 1, tid: 1, ts, dur, args: extra });
  const events = [
    { ph: "M", name: "process_name", pid: 1, tid: 0, args: { name: `${kHostile} process` } },
    { ph: "M", name: "thread_name", pid: 1, tid: 1, args: { name: `${kHostile} thread` } },
    { ph: "M", name: "process_labels", pid: 0, tid: 0, args: { labels: "GPU 0" } },
    { ph: "X", cat: "user_annotation", name: "ProfilerStep#1", pid: 1, tid: 1, ts: 0, dur: us(10), args: {} },
    { ph: "X", cat: "user_annotation", name: "ProfilerStep#2", pid: 1, tid: 1, ts: us(10), dur: us(10), args: {} },
  ];
  for (let i = 0; i < 20; ++i) {
    const ts = us(i) + 100;
    events.push(
      host(`${kHostile} op`, ts, 300, {
        "External id": i + 1,
        [kHostile]: kScript,
        "Call stack": `${kScript};${kHostile}`,
      }),
    );
    events.push({
      ph: "X",
      cat: "cuda_runtime",
      name: "cudaLaunchKernel",
      pid: 1,
      tid: 1,
      ts: ts + 50,
      dur: 20,
      args: { correlation: i + 1, "External id": i + 1 },
    });
    events.push({
      ph: "X",
      cat: "kernel",
      name: i % 2 ? kHostile : kScript,
      pid: 0,
      tid: 7,
      ts: ts + 200,
      dur: 400,
      args: { correlation: i + 1, device: 0, stream: 7, "External id": i + 1 },
    });
  }
  writeFileSync(
    path,
    JSON.stringify({ schemaVersion: 1, deviceProperties: [{ id: 0, name: kHostile }], traceEvents: events }),
  );
}
