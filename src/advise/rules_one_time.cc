// One-time costs inside the measured steps: loading kernels, compiling and tuning, first calls, first memory.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/common/intervals.h"
#include "analyze/common/median.h"

namespace firelane::advise {

namespace {

// A first call this much longer than the later ones, of at least this many, set something up.
constexpr int64_t kFirstCallFactor = 5;
constexpr int64_t kFirstCallLeastNs = 200'000;
constexpr size_t kLaterCalls = 4;

// What compilers and tuners are called in traces: torch.compile's timed regions, Inductor, Triton.
bool is_compiling(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kParts = {
      "(dynamo_timed)",        "torch/_dynamo/convert_frame.py(", "torch/_inductor/compile_fx.py(", "compile_fx_inner",
      "benchmark_all_configs", "triton/runtime/autotuner.py(",    "triton/compiler/compiler.py("};
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

struct OneTime {
  std::string_view what;
  std::vector<analyze::Interval> spent;  // may overlap
  std::vector<Row> rows;                 // host slices
  int64_t total_ns() const { return analyze::IntervalSet(spent).total_ns(); }
};

OneTime loading(const Context& context) {
  OneTime out{.what = "kernels were loaded"};
  for (const analyze::HostSegment& segment : context.study->host->chains[0].segments) {
    if (segment.activity != analyze::Activity::kLoading || !context.in_window(segment.start_ns)) continue;
    out.spent.push_back({segment.start_ns, segment.end_ns});
    if (out.rows.empty() || out.rows.back() != segment.slice) out.rows.push_back(segment.slice);
  }
  return out;
}

OneTime compiling(const Context& context) {
  OneTime out{.what = "code was compiled or tuned"};
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::vector<uint8_t> known(model.strings.size(), 2);  // by name; 2: not asked yet
  const auto compiles = [&](Row row) {
    if (is_call(host.kind[row]) || !context.in_window(host.start_ns[row])) return false;
    uint8_t& is = known[static_cast<uint32_t>(host.name[row])];
    if (is == 2) is = is_compiling(model.text(host.name[row])) ? 1 : 0;
    return is == 1;
  };
  analyze::each_outermost(model, context.study->host->chains[0], compiles, [&](Row row) {
    out.spent.push_back({host.start_ns[row], host.end_ns(row)});
    out.rows.push_back(row);
  });
  return out;
}

// What an op took itself: waiting for the device, and what other causes count, left out.
int64_t own_ns(const analyze::HostChain& chain, const HostSlices& host, Row row) {
  const analyze::ActivityTimes times = chain.times_in(host.start_ns[row], host.end_ns(row));
  int64_t own = host.duration_ns[row];
  for (const analyze::Activity other : {analyze::Activity::kSync, analyze::Activity::kLoading, analyze::Activity::kGc,
                                        analyze::Activity::kAllocation}) {
    own -= times[static_cast<size_t>(other)];
  }
  return own;
}

// The longest call in each step but the first, at the median; kNoNumber with fewer than three steps. Without shapes the
// calls of several layers have one name: what is as long in every step is a large layer, not a first call.
int64_t usual_longest(const Context& context, const std::vector<Row>& rows) {
  const HostSlices& host = context.model.host_slices;
  std::vector<int64_t> longest;
  auto row = rows.begin();
  for (const analyze::FoundStep& step : context.study->steps.steps) {
    if (step.warm_up) continue;
    int64_t in_step = 0;
    while (row != rows.end() && host.start_ns[*row] < step.start_ns) ++row;
    for (; row != rows.end() && host.start_ns[*row] < step.end_ns; ++row) {
      in_step = std::max(in_step, host.duration_ns[*row]);
    }
    longest.push_back(in_step);
  }
  if (longest.size() < 3) return kNoNumber;
  longest.erase(longest.begin());
  return analyze::median(std::move(longest));
}

// Steps that were timed before the judged ones: in them, operators have run before.
bool has_run_before(const Context& context) {
  constexpr int64_t kSteps = 2;
  const TimedSteps& timed = context.model.timed_steps;
  int64_t before = 0;
  for (size_t i = 0; i < timed.size(); ++i) {
    before += timed.start_ns[i] + timed.duration_ns[i] <= context.window.start_ns ? 1 : 0;
  }
  return before >= kSteps;
}

// Operators (with their shapes) whose first call is far longer than the later ones: cuDNN's search for an algorithm,
// workspaces, tables.
OneTime first_calls(const Context& context) {
  OneTime out{.what = "operators ran for the first time"};
  if (has_run_before(context)) return out;
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const analyze::HostChain& chain = context.study->host->chains[0];
  std::unordered_map<uint64_t, std::vector<Row>> calls;
  const auto is_op = [&](Row row) { return host.kind[row] == HostKind::kOp; };
  analyze::each_outermost(model, chain, is_op, [&](Row row) {
    if (!context.in_window(host.start_ns[row])) return;
    const Row detail = model.op_detail(row);
    const StringId dims = detail == kNoRow ? kNoString : model.op_details.input_dims[detail];
    calls[static_cast<uint64_t>(host.name[row]) << 32 | static_cast<uint64_t>(dims)].push_back(row);
  });
  for (const auto& [key, rows] : calls) {
    if (rows.size() <= kLaterCalls || host.duration_ns[rows[0]] < kFirstCallLeastNs) continue;
    std::vector<int64_t> later;
    for (size_t i = 1; i < rows.size(); ++i) later.push_back(host.duration_ns[rows[i]]);
    const auto middle = later.begin() + static_cast<std::ptrdiff_t>(later.size() / 2);
    std::nth_element(later.begin(), middle, later.end());
    const int64_t usual = std::max(*middle, usual_longest(context, rows));
    // In one or two steps the layers of a backward pass are not told apart.
    if (context.step_count < 3 && host.role[rows[0]] == HostRole::kBackwardNode) continue;
    const int64_t excess = own_ns(chain, host, rows[0]) - usual;
    if (host.duration_ns[rows[0]] / kFirstCallFactor < usual || excess < kFirstCallLeastNs) continue;
    out.spent.push_back({host.end_ns(rows[0]) - excess, host.end_ns(rows[0])});
    out.rows.push_back(rows[0]);
  }
  std::sort(out.rows.begin(), out.rows.end());
  return out;
}

// cudaMalloc and its like in the first judged step, when the later ones hardly do it: the pool was being filled.
OneTime first_memory(const Context& context) {
  OneTime out{.what = "memory was requested from the driver"};
  const analyze::Breakdown& breakdown = context.study->breakdown;
  constexpr auto kAllocation = static_cast<size_t>(analyze::Activity::kAllocation);
  if (breakdown.steps.size() < 3) return out;
  int64_t later = 0;
  for (size_t i = 1; i < breakdown.steps.size(); ++i) later += breakdown.steps[i].host[kAllocation];
  const analyze::BreakdownRow& first = breakdown.steps[0];
  if (first.host[kAllocation] / kFirstCallFactor < later / static_cast<int64_t>(breakdown.steps.size() - 1)) return out;
  for (const analyze::HostSegment& segment : context.study->host->chains[0].segments) {
    if (segment.activity != analyze::Activity::kAllocation || segment.start_ns < first.start_ns) continue;
    if (segment.start_ns >= first.start_ns + first.duration_ns) break;
    out.spent.push_back({segment.start_ns, segment.end_ns});
    if (out.rows.empty() || out.rows.back() != segment.slice) out.rows.push_back(segment.slice);
  }
  return out;
}

std::vector<Finding> find_one_time_costs(const Context& context) {
  if (context.study->host->chains.empty()) return {};
  std::vector<analyze::Interval> all;
  std::vector<Row> rows;
  std::string what;
  for (const OneTime& each : {loading(context), compiling(context), first_calls(context), first_memory(context)}) {
    const int64_t ns = each.total_ns();
    if (ns == 0) continue;
    all.insert(all.end(), each.spent.begin(), each.spent.end());
    rows.insert(rows.end(), each.rows.begin(), each.rows.end());
    what += (what.empty() ? "" : ", ") + std::string(each.what) + " (" + short_time(ns) + ")";
  }
  if (all.empty()) return {};
  const analyze::IntervalSet spent(std::move(all));  // what several say counts once
  const int64_t cost = context.study->per_step(spent.total_ns());
  Finding finding{.id = "one-time-costs", .cost_ns = cost, .share_of_step = context.share_of_step(cost)};
  analyze::WhatIf without;
  for (const analyze::Interval& each : spent.intervals()) {
    without.host.push_back({context.study->host->chains[0].lanes[0], each.start_ns, each.end_ns, 0});
  }
  finding.gain.high_ns = context.gain_ns(without);
  finding.events = static_cast<int64_t>(rows.size());
  finding.title = "inside the measured steps " + what + ": " + short_time(cost) + " a step (" +
                  short_percent(finding.share_of_step) + ") that later steps do not pay";
  add_longest(finding, context.model, std::move(rows));
  finding.try_text = "run a few more steps before recording";
  finding.try_code = plan_of(context.model.info.environment.front, 10, 3);
  finding.confidence = Confidence::kHigh;
  return {finding};
}

}  // namespace

std::vector<Rule> one_time_rules() {
  return {
      {"one-time-costs", "training", 0.02, false,
       "The first use of a kernel loads it from the library; torch.compile, Triton and cuDNN's benchmark mode\n"
       "compile or try variants; the first operators ask the driver for memory and workspaces. That is paid once\n"
       "and should not be part of a measurement.\n\n"
       "It counts calls and marked ranges that load kernels, the regions of torch.compile and Triton, the excess of\n"
       "an operator's first call over its later ones with the same shapes (if it takes five times as long and 0.2\n"
       "ms more than their median, and than the longest in each later step), and cudaMalloc calls in a first step\n"
       "that the later steps do not repeat.\n\n"
       "What to do: more warm-up before recording.\n\n"
       "When not: programs that run only a few steps pay this for real.",
       find_one_time_costs},
  };
}

}  // namespace firelane::advise
