// The viewer's protocol: the input's first line is an address, what follows a body. Every answer must have a status of
// ours, and JSON must parse.
#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/testing.h"
#include "base/check.h"
#include "model/trace_builder.h"
#include "ranks/testing/generate.h"
#include "serve/api.h"
#include "traces/trace_set.h"

namespace {

using firelane::TraceBuilder;
using firelane::serve::ServedJob;

firelane::Model make_trace() {
  TraceBuilder builder;
  builder.python("train.py(3): main", {.start_us = 0, .end_us = 300})
      .step(1, {.start_us = 1, .end_us = 290})
      .op("aten::mm",
          {.start_us = 2, .end_us = 20, .external_id = 1, .dims = "[[2, 2], [", .stack = "a.py(1): f;b.py(2): g"})
      .call("cudaLaunchKernel", {.start_us = 5, .end_us = 9, .correlation = 7, .external_id = 1})
      .kernel("</script><img src=x onerror=alert(1)>\xff",
              {.start_us = 30, .end_us = 60, .correlation = 7, .external_id = 1})
      .kernel("overlap", {.start_us = 40, .end_us = 70})
      .memory({.at_us = 6,
               .bytes = 4096,
               .device_type = 1,
               .device = 0,
               .address = 0x7f0000000000,
               .total_allocated = 5000})
      .memory({.at_us = 50,
               .bytes = -4096,
               .device_type = 1,
               .device = 0,
               .address = 0x7f0000000000,
               .total_allocated = 904})
      .counter("GPU 0 power", 20, 300);
  return builder.build();
}

// What a set is asked for too: comparisons.
std::shared_ptr<const firelane::TraceSet> two_traces() {
  const auto load = [](const std::string&, const firelane::LoadProgress&) -> firelane::Result<firelane::Model> {
    return make_trace();
  };
  const auto traces = std::make_shared<firelane::TraceSet>(std::vector<std::string>{"a.json", "b.json"}, load);
  traces->wait_until_loaded();
  return traces;
}

// A job of four ranks, of which one trace is not here.
ServedJob four_ranks() {
  return {.job = firelane::ranks::testing::studied({.ranks = 4,
                                                    .gpus_per_host = 2,
                                                    .tensor = 2,
                                                    .pipeline = 2,
                                                    .steps = 3,
                                                    .missing_arguments = 0.1,
                                                    .straggler = 1,
                                                    .cause = firelane::ranks::Cause::kGc,
                                                    .details = true}),
          .trace_of_rank = {0, 1, -1, 0}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace firelane::serve;
  static Api api(two_traces(), "fuzz");
  static const bool with_job = (api.serve_job(four_ranks()), true);
  FL_CHECK(with_job, "a job is served");
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = input.find('\n');
  auto request = parse_target(input.substr(0, line));
  if (!request.ok()) return 0;
  if (line != std::string_view::npos) {
    request.value().method = "POST";
    request.value().body = input.substr(line + 1);
  }
  const Answer answer = api.answer(request.value());
  FL_CHECK(answer.status >= 200 && answer.status < 600, "an answer must have a status");
  if (answer.type != kJsonType) return 0;
  static simdjson::dom::parser parser;
  FL_CHECK(parser.parse(answer.body).error() == simdjson::SUCCESS, "a JSON answer must parse");
  return 0;
}
