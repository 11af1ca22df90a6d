// Specific to torch_npu's traces: operators that CANN compiles, or looks up, while the program runs.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/common/median.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

constexpr double kLowGain = 0.5;  // of what the calls take beyond other launches

struct Calls {
  std::vector<Row> compiling;      // host slices
  std::vector<int64_t> others_ns;  // how long calls take that launch operators of the operator package
  int64_t total_ns = 0;            // of those that compile
};

Calls find_calls(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  Calls found;
  std::vector<bool> is_seen(host.size(), false);
  for (const Row launch : model.device_slices.launch) {
    if (launch == kNoRow || is_seen[launch] || !context.in_window(host.start_ns[launch])) continue;
    is_seen[launch] = true;
    const std::string_view name = model.text(host.name[launch]);
    if (contains(name, "aclopCompileAndExecute")) {
      found.compiling.push_back(launch);
      found.total_ns += host.duration_ns[launch];
    } else if (contains(name, "aclnn")) {
      found.others_ns.push_back(host.duration_ns[launch]);
    }
  }
  return found;
}

std::vector<Finding> find_compiled_operators(const Context& context) {
  if (context.model.info.accelerator != Accelerator::kNpu) return {};
  Calls calls = find_calls(context);
  if (calls.compiling.empty()) return {};
  const HostSlices& host = context.model.host_slices;
  const int64_t usual_ns = calls.others_ns.empty() ? 0 : analyze::median(std::move(calls.others_ns));
  const auto without = [&](double part) {
    analyze::WhatIf change;
    for (const Row call : calls.compiling) {
      const int64_t excess_ns = std::max<int64_t>(0, host.duration_ns[call] - usual_ns);
      const double keep =
          1 - part * static_cast<double>(excess_ns) / static_cast<double>(std::max<int64_t>(1, host.duration_ns[call]));
      change.host.push_back({host.lane[call], host.start_ns[call], host.end_ns(call), keep});
    }
    return change;
  };
  Finding finding{.id = "npu-compiled-operators"};
  finding.cost_ns = context.study->per_step(calls.total_ns);
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.gain = {context.gain_ns(without(kLowGain)), context.gain_ns(without(1))};
  finding.events = static_cast<int64_t>(calls.compiling.size());
  const int64_t per_step = context.study->per_step(finding.events);
  finding.title = "CANN compiles operators, or looks them up, at each call: aclopCompileAndExecute takes " +
                  short_time(finding.cost_ns) + " of each step (" + short_percent(finding.share_of_step) + ")" +
                  (per_step > 0 ? " in " + counted(per_step, "call", "calls") : "");
  finding.try_text =
      "use the operators of CANN's operator package instead, and plain tensor formats; set both at the start of the "
      "program";
  finding.try_code =
      "torch_npu.npu.set_compile_mode(jit_compile=False); torch_npu.npu.config.allow_internal_format = False";
  finding.confirm_by = "time some steps with the change; without the operator package it has no effect";
  finding.part_of = "overhead";
  add_longest(finding, context.model, std::move(calls.compiling));
  return {finding};
}

}  // namespace

std::vector<Rule> npu_rules() {
  return {
      {"npu-compiled-operators", "host", 0.03, true,
       "torch_npu runs an operator in one of two ways. aclnn... calls launch kernels of CANN's operator package,\n"
       "which takes tens of microseconds. aclopCompileAndExecute compiles the operator for the shapes it is called\n"
       "with, or looks up an earlier result, and takes about a millisecond even then; conversions to formats of the\n"
       "device (TransData) come with it.\n\n"
       "The expected gain is a replay of the trace in which these calls are as short as the aclnn... calls (upper\n"
       "end), or halfway there (lower end).\n\n"
       "What to do: torch_npu.npu.set_compile_mode(jit_compile=False) at the start of the program, before the first\n"
       "operator; torch_npu.npu.config.allow_internal_format = False with it.\n\n"
       "When not: without the operator package for this device nothing changes. Some kernels that are compiled for "
       "one\n"
       "shape are faster on the device: compare the times of long kernels, too.",
       find_compiled_operators},
  };
}

}  // namespace firelane::advise
