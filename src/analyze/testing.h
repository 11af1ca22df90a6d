// What tests of analyses share: the study of a model, random small traces (threads, ops, launches, waits, two streams,
// steps) for property tests, what a replay of the graph says, and a row of the ops table by its name.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string_view>

#include "analyze/ops/ops.h"
#include "analyze/verdict/cost.h"
#include "analyze/verdict/study.h"
#include "model/trace_builder.h"
#include "traces/studied_trace.h"

namespace firelane::analyze {

// A trace of a model that the test keeps.
inline std::shared_ptr<const Model> borrowed(const Model& model) { return {std::shared_ptr<void>(), &model}; }
inline Study study(const Model& model) { return study(StudiedTrace(borrowed(model))); }
inline Cost cost_of(const Model& model, const CostOptions& options = {}) {
  return cost_of(StudiedTrace(borrowed(model)), options);
}

// The edge that decided when the device work `row` started.
inline const GraphEdge& binding(const Study& s, Row row) {
  return s.graph.edges[s.recorded.binding[s.graph.node_of_device[row]]];
}

// How long the window takes with the change, as recorded otherwise.
inline int64_t replayed_us(const Study& s, const WhatIf& change) {
  return replay(s.graph, change, {.recording_removed = 0}).total_ns() / 1000;
}

// The row of that name; the first one on that side.
inline OpsRow row_of(const OpsResult& result, std::string_view name, bool on_device = false) {
  for (const OpsRow& row : result.rows)
    if (row.name == name && row.on_device == on_device) return row;
  ADD_FAILURE() << "no row " << name;
  return {};
}

// The same seed gives the same trace. Times are whole microseconds; everything nests as torch writes it. In every third
// one devices were recorded for a part of the time only.
inline Model random_trace(uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  TraceBuilder builder;
  double now = 0;
  double stream_free[2] = {0, 0};
  int64_t correlation = 1;
  const int steps = pick(0, 4);
  for (int step = 0; step < std::max(1, steps); ++step) {
    const double step_start = now;
    for (int op = pick(1, 8); op > 0; --op) {
      now += pick(0, 20);
      const double op_start = now;
      const int64_t thread = pick(1, 4) == 1 ? 2 : 1;
      now += pick(1, 5);
      for (int launch = pick(0, 3); launch > 0; --launch) {
        const double call = now;
        now += pick(1, 6);
        const int stream = pick(0, 1);
        double start = std::max(stream_free[stream], call + pick(0, 8));
        if (pick(0, 5) == 0) start = std::max(start, stream_free[1 - stream]);
        const double end = start + pick(0, 40);
        stream_free[stream] = end;
        builder.call("cudaLaunchKernel",
                     {.start_us = call, .end_us = now, .thread = thread, .correlation = correlation});
        const bool is_copy = pick(0, 4) == 0;
        if (is_copy) {
          builder.copy("Memcpy HtoD (Pageable -> Device)",
                       {.start_us = start, .end_us = end, .stream = 7 + stream, .correlation = correlation});
        } else {
          builder.kernel(pick(0, 6) == 0 ? "ncclDevKernel_AllReduce" : "gemm",
                         {.start_us = start, .end_us = end, .stream = 7 + stream, .correlation = correlation});
        }
        ++correlation;
        now += pick(0, 3);
      }
      if (pick(0, 5) == 0) {
        const double call = now;
        now = std::max(now + 2, std::max(stream_free[0], stream_free[1]) + pick(0, 3));
        builder.call(pick(0, 1) == 0 ? "cudaStreamSynchronize" : "cudaDeviceSynchronize",
                     {.start_us = call, .end_us = now, .thread = thread, .correlation = correlation++});
      }
      now += pick(1, 4);
      builder.op("aten::op", {.start_us = op_start, .end_us = now, .thread = thread});
    }
    now += pick(0, 10);
    if (steps > 0) builder.step(step, {.start_us = step_start, .end_us = now});
  }
  if (seed % 3 == 2) builder.device_window(now * 0.2, now * 0.8);
  return builder.build();
}

}  // namespace firelane::analyze
