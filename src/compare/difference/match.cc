#include "compare/difference/match.h"

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <unordered_map>

#include "analyze/device/kernel_traits.h"
#include "analyze/ops/op_inputs.h"

namespace firelane::compare {

namespace {

struct Agreement {
  bool module, op, dims, types, kernel;
};
// From everything to the op alone. Work without an op is matched by its kernel.
constexpr Agreement kPasses[] = {
    {true, true, true, true, true},      // the same
    {true, true, true, false, true},     // other types
    {true, true, true, false, false},    // another kernel for the same task
    {true, true, false, false, true},    // other shapes
    {false, true, true, true, true},     // in another module
    {false, true, true, false, false},   //
    {false, true, false, false, true},   //
    {true, true, false, false, false},   // other shapes and another kernel
    {false, false, false, false, true},  // called by another op
    {false, true, false, false, false},
};

std::string key_of(const WorkGroup& group, const Agreement& on) {
  std::string key;
  const auto add = [&](bool wanted, const std::string& text) {
    if (wanted) key += text;
    key += '\x1f';
  };
  // A copy is never the successor of a kernel.
  key += group.part == Part::kCopies ? 'c' : group.part == Part::kCommunication ? 'n' : 'k';
  add(on.module, group.module);
  add(on.op, group.op);
  add(on.dims, group.dims);
  add(on.types, group.types);
  add(on.kernel, group.kernel);
  return key;
}

// A pass that could match anything with anything: nothing of what it goes by is known.
bool says_nothing(const WorkGroup& group, const Agreement& on) {
  return (!on.op || group.op.empty()) && (!on.kernel || group.kernel.empty());
}

}  // namespace

std::string_view name_of(Change change) {
  static constexpr std::array<std::string_view, 6> kNames = {"same",         "other shapes", "other precision",
                                                             "other kernel", "new",          "gone"};
  return kNames[static_cast<size_t>(change)];
}

std::vector<WorkMatch> match_work(std::span<const WorkGroup> before, std::span<const WorkGroup> after) {
  std::vector<size_t> partner(after.size(), kNone);
  std::vector<bool> taken(before.size(), false);
  for (const Agreement& on : kPasses) {
    std::unordered_map<std::string, std::vector<size_t>> waiting;
    for (size_t i = before.size(); i-- > 0;) {  // the last first: taken from the back
      if (!taken[i] && !says_nothing(before[i], on)) waiting[key_of(before[i], on)].push_back(i);
    }
    if (waiting.empty()) continue;
    for (size_t i = 0; i < after.size(); ++i) {
      if (partner[i] != kNone || says_nothing(after[i], on)) continue;
      const auto found = waiting.find(key_of(after[i], on));
      if (found == waiting.end() || found->second.empty()) continue;
      partner[i] = found->second.back();
      taken[partner[i]] = true;
      found->second.pop_back();
    }
  }
  std::vector<WorkMatch> out;
  for (size_t i = 0; i < after.size(); ++i) out.push_back({partner[i], i});
  for (size_t i = 0; i < before.size(); ++i) {
    if (!taken[i]) out.push_back({i, kNone});
  }
  return out;
}

namespace {

using analyze::Precision;

Precision by_types(const WorkGroup& group) {
  for (const std::string& type : analyze::parse_input_strings(group.types)) {
    const Precision precision = analyze::precision_of_type(type);
    if (precision != Precision::kUnknown) return precision;
  }
  return Precision::kUnknown;
}

Precision by_kernel(const WorkGroup& group) { return analyze::kernel_traits(group.kernel).precision; }

}  // namespace

std::string_view precision_of(const WorkGroup& group) {
  const Precision precision = by_kernel(group) != Precision::kUnknown ? by_kernel(group) : by_types(group);
  return precision == Precision::kUnknown ? "" : analyze::name_of(precision);
}

Change change_of(const WorkGroup* before, const WorkGroup* after) {
  if (before == nullptr) return Change::kNew;
  if (after == nullptr) return Change::kGone;
  // Names and types are not compared with each other: a kernel that computes in TF32 has inputs of fp32.
  const auto differs = [](Precision was, Precision is) {
    return was != Precision::kUnknown && is != Precision::kUnknown && was != is;
  };
  if (differs(by_kernel(*before), by_kernel(*after)) || differs(by_types(*before), by_types(*after))) {
    return Change::kPrecision;
  }
  const bool has_shapes = !before->dims.empty() && !after->dims.empty();
  if (has_shapes && before->dims != after->dims) return Change::kShapes;
  if (before->kernel != after->kernel) return Change::kAlgorithm;
  return Change::kNone;
}

double batch_ratio(std::span<const WorkGroup> before, std::span<const WorkGroup> after,
                   std::span<const WorkMatch> matches) {
  std::map<double, double> votes;  // by ratio, weighed by time
  double all = 0;
  for (const WorkMatch& match : matches) {
    if (match.before == kNone || match.after == kNone) continue;
    const std::vector<analyze::Dims> was = analyze::parse_input_dims(before[match.before].dims);
    const std::vector<analyze::Dims> is = analyze::parse_input_dims(after[match.after].dims);
    if (was.size() != is.size()) continue;
    // The input whose first dimension alone differs; weights keep their shapes.
    double ratio = 1;
    for (size_t i = 0; i < was.size(); ++i) {
      if (was[i].empty() || was[i].size() != is[i].size() || was[i][0] <= 0) continue;
      if (was[i] != is[i]) ratio = static_cast<double>(is[i][0]) / static_cast<double>(was[i][0]);
      if (ratio != 1) break;
    }
    votes[ratio] += before[match.before].total_ns;
    all += before[match.before].total_ns;
  }
  // Weight gradients and optimizers do not grow with the batch: a third of the time is enough.
  for (const auto& [ratio, ns] : votes) {
    if (ratio != 1 && ratio > 0 && ns > all / 3) return ratio;
  }
  return 1;
}

}  // namespace firelane::compare
