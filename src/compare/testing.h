// Small programs for tests of comparisons: steps of a few ops with a kernel each, built by hand.
#pragma once

#include <string>
#include <vector>

#include "compare/run/run.h"
#include "model/trace_builder.h"
#include "traces/studied_trace.h"

namespace firelane::compare {

struct TestOp {
  std::string op = "aten::mm";
  std::string kernel = "gemm_bf16";
  double kernel_us = 100;
  std::string dims = "[[64, 64], [64, 64]]";
  std::string types = "[\"c10::BFloat16\", \"c10::BFloat16\"]";
  std::string module{};  // "model.layers.0 (Linear)"
};

struct TestProgram {
  std::vector<TestOp> ops;
  double host_us = 20;   // of each op
  double input_us = 10;  // before each step
  int steps = 5;
};

// The device does one kernel after another; the host launches ahead of it and waits at the end of each step.
inline Run run_of(const TestProgram& program) {
  TraceBuilder builder;
  double now = 0;
  int64_t id = 1;
  for (int step = 0; step < program.steps; ++step) {
    const double begin = now;
    builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                       {.start_us = now, .end_us = now + program.input_us});
    now += program.input_us;
    double device = now;
    for (const TestOp& op : program.ops) {
      if (!op.module.empty()) {
        builder.python("nn.Module: " + op.module, {.start_us = now, .end_us = now + program.host_us});
      }
      builder.op(op.op, {.start_us = now + 1,
                         .end_us = now + program.host_us - 1,
                         .external_id = id,
                         .dims = op.dims,
                         .types = op.types});
      builder.call("cudaLaunchKernel", {.start_us = now + 2, .end_us = now + 6, .correlation = id, .external_id = id});
      const double start = std::max(device, now + 8);
      builder.kernel(op.kernel,
                     {.start_us = start, .end_us = start + op.kernel_us, .correlation = id, .external_id = id});
      device = start + op.kernel_us;
      now += program.host_us;
      ++id;
    }
    const double end = std::max(now + 5, device + 5);
    builder.call("cudaDeviceSynchronize", {.start_us = now, .end_us = end - 1});
    now = end;
    builder.step(step + 1, {.start_us = begin, .end_us = now});
  }
  const StudiedTrace trace(builder.build());
  return summarize(trace);
}

inline TestProgram layers(int count, const TestOp& like = {}) {
  TestProgram program;
  for (int i = 0; i < count; ++i) {
    program.ops.push_back(like);
    program.ops.back().module = "Linear_" + std::to_string(i);
  }
  return program;
}

}  // namespace firelane::compare
