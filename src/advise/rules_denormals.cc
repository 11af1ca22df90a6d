// Arithmetic on a CPU that takes many times as long as it should: denormal numbers.
//
// A CPU handles a sum or product with a denormal number (below 1.2e-38 in fp32) in microcode, at about 150 cycles per
// vector. No trace has the values themselves; it only shows that adding takes far longer per element than copying in
// the same program.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/op_facts.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/ops/flops.h"
#include "analyze/ops/op_tensors.h"

namespace firelane::advise {

namespace {

constexpr int64_t kLeastElements = 16'384;  // of a tensor: below, calls take longer than their work
constexpr double kSlowNs = 3.5;             // for each number, on one core
constexpr double kUsualNs = 1;              // copying one, where the program shows no copy
constexpr double kTimesSlower = 6;          // than copying
constexpr size_t kLeastCalls = 3;
constexpr double kGrain = 32'768;       // numbers that torch gives one thread
constexpr double kInCache = 1'000'000;  // numbers of a tensor; with more, cores that compute together wait for memory
constexpr double kMemoryNs = 1;         // so long for each number, however many they are

// One number of the result takes one sum, product or both.
bool is_plain_arithmetic(std::string_view name) {
  for (const std::string_view each : {"aten::add", "aten::add_", "aten::sub", "aten::sub_", "aten::mul", "aten::mul_",
                                      "aten::addcmul", "aten::addcmul_", "aten::lerp", "aten::lerp_"}) {
    if (name == each) return true;
  }
  return false;
}
bool moves_numbers(std::string_view name) {
  return name == "aten::copy_" || name == "aten::clone" || name == "aten::zeros_like" || name == "aten::zero_" ||
         name == "aten::fill_" || name == "aten::cat" || name == "aten::ones_like";
}

double lower_quartile(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

class DenormalFinder {
 public:
  explicit DenormalFinder(const Context& context) : context_(context), model_(context.model), tensors_(model_) {
    see_all();
    if (!moved_ns_.empty()) usual_ns_ = lower_quartile(std::move(moved_ns_));
    for (auto& [what, calls] : by_shapes_) {
      if (calls.ns.size() < kLeastCalls) continue;
      const double least_ns = std::max({kSlowNs, kTimesSlower * usual_ns_, memory_ns(calls.ops.front())});
      if (lower_quartile(calls.ns) >= least_ns) slow_.insert(slow_.end(), calls.ops.begin(), calls.ops.end());
    }
  }

  const std::vector<Row>& slow() const { return slow_; }
  // Time to copy one number.
  double usual_ns() const { return usual_ns_; }
  // Time of an arithmetic operator per number of its result.
  double number_ns(Row op) {
    double elements = 0;
    for (const analyze::OpTensor& each : tensors_.of(op)) {
      if (each.dims.empty()) continue;  // a number
      // What a broadcast makes is larger than any input.
      const auto here = static_cast<double>(each.elements);
      if (!is_plain(each) || (elements != 0 && here != elements)) return -1;
      elements = here;
    }
    if (elements < kLeastElements) return -1;
    return static_cast<double>(context_.took_ns(op)) * cores_for(elements) / elements;
  }

 private:
  struct Calls {
    std::vector<Row> ops;
    std::vector<double> ns;  // for each number
  };

  double cores_for(double elements) const {
    const auto threads = static_cast<double>(std::max<int64_t>(1, model_.info.environment.torch_threads));
    return std::min(threads, std::ceil(elements / kGrain));
  }
  // What many cores wait for the memory that they share, for each number of tensors that no cache holds: two are read
  // and one is written, new pages among them.
  double memory_ns(Row op) {
    const std::vector<analyze::OpTensor>& inputs = tensors_.of(op);
    const auto elements = inputs.empty() ? 0 : static_cast<double>(inputs[0].elements);
    return elements < kInCache ? 0 : cores_for(elements) * kMemoryNs;
  }

  static bool is_plain(const analyze::OpTensor& each) {
    const bool is_wide = each.precision == analyze::Precision::kFp32 || each.precision == analyze::Precision::kFp64;
    return is_wide && each.dense;
  }

  void see_all() {
    const HostSlices& host = model_.host_slices;
    for (Row row = 0; row < host.size(); ++row) {
      if (host.kind[row] != HostKind::kOp || !context_.in_window(host.start_ns[row])) continue;
      const std::string_view name = name_of_op(model_, row);
      const bool computes = is_plain_arithmetic(name);
      if (!computes && !moves_numbers(name)) continue;
      const double ns = number_ns(row);
      if (ns < 0) continue;
      if (!computes) {
        moved_ns_.push_back(ns);
        continue;
      }
      Calls& calls = by_shapes_[{host.name[row], input_dims_text(model_, row)}];
      calls.ops.push_back(row);
      calls.ns.push_back(ns);
    }
  }

  const Context& context_;
  const Model& model_;
  analyze::InputTensors tensors_;
  std::map<std::pair<StringId, std::string_view>, Calls> by_shapes_;
  std::vector<double> moved_ns_;
  double usual_ns_ = kUsualNs;
  std::vector<Row> slow_;
};

// Products and convolutions that compute as slowly as with denormal numbers: their own speed varies too much to tell by
// it alone.
std::vector<Row> slow_products(const Context& context) {
  constexpr double kLeastFlops = 1e6;
  constexpr double kSlowFlopsPerNs = 3;
  const HostSlices& host = context.model.host_slices;
  analyze::FlopsTable flops(context.model);
  std::vector<Row> ops;
  for (Row row = 0; row < host.size(); ++row) {
    if (!is_outermost_op(host, row) || !context.in_window(host.start_ns[row])) continue;
    const auto count = static_cast<double>(flops.of(row).op_flops);
    if (count >= kLeastFlops && count < kSlowFlopsPerNs * static_cast<double>(context.took_ns(row))) ops.push_back(row);
  }
  return ops;
}

std::vector<Finding> find_denormals(const Context& context) {
  if (context.study == nullptr || context.has_device_work) return {};
  DenormalFinder finder(context);
  if (finder.slow().empty()) return {};
  const Model& model = context.model;
  Evidence evidence(context);
  Row longest = kNoRow;
  for (const Row op : finder.slow()) {
    const double ns = finder.number_ns(op);
    evidence.add_call(op, std::min(1.0, 3 * finder.usual_ns() / ns), std::min(1.0, finder.usual_ns() / ns / 2));
    if (longest == kNoRow || context.took_ns(op) > context.took_ns(longest)) longest = op;
  }
  for (const Row op : slow_products(context)) evidence.add_call(op, 0.4, 0.05);
  constexpr double kDigits = 10;
  const double longest_ns = std::round(kDigits * finder.number_ns(longest)) / kDigits;
  std::string took = std::to_string(longest_ns);
  took = took.substr(0, took.find('.') + 2);
  Finding finding{.id = "denormals",
                  .try_text =
                      "they look like sums and products with denormal numbers (below 1.2e-38 in fp32): let the "
                      "CPU flush them to zero, or zero out what is below a threshold",
                  .try_code = "torch.set_flush_denormal(True)  # before the loop, in each thread that computes",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "time some steps with it, or count: (x.abs() < 1.2e-38).logical_and(x != 0).sum()",
                  .cause = "denormals"};
  evidence.fill(finding);
  finding.events = static_cast<int64_t>(finder.slow().size());
  finding.title = std::string(name_of_op(model, longest)) + " of " + shapes_text_of_op(model, longest) + " takes " +
                  took + " ns of core time per element, " +
                  std::to_string(std::llround(finder.number_ns(longest) / std::max(0.01, finder.usual_ns()))) +
                  " times what copying one takes: " + short_percent(finding.share_of_step) + " of a step";
  add_longest(finding, model, finder.slow());
  return {finding};
}

}  // namespace

std::vector<Rule> denormals_rules() {
  return {
      {"denormals", "host", 0.1, true,
       "Numbers closer to zero than 1.2e-38 (fp32; 2.2e-308 in fp64) are stored as denormals. CPUs compute with\n"
       "them in microcode, about 150 cycles per vector instead of one. Typical sources: decaying activations and\n"
       "traces, silent audio, filters with feedback, decaying averages. GPUs are not affected.\n\n"
       "A trace does not contain the values themselves. This finding covers additions and multiplications of\n"
       "tensors with 16384 elements and more that take at least 3.5 ns of a core per element, and six times what\n"
       "copying an element takes in the same program, in three of four calls; for a million elements and more also\n"
       "1 ns for each core, as cores that compute together wait for memory. Together with them, matmuls and\n"
       "convolutions below 3 GFLOP/s count. Needs shapes. The gain is a replay in which arithmetic takes about as\n"
       "long as copying.\n\n"
       "What to do: torch.set_flush_denormal(True), where CPU and build support it; it applies to the thread that\n"
       "calls it. Or a threshold: x[x.abs() < 1e-30] = 0; noise of 1e-20 keeps filters away from them.\n\n"
       "When not: the machine was busy, or memory was swapped: then everything is slow, including copies.",
       find_denormals},
  };
}

}  // namespace firelane::advise
