// The work of both sides by operator and by module: what belongs together in one row, whatever became of its parts.
#include <algorithm>
#include <cmath>
#include <map>

#include "compare/difference/difference.h"

namespace firelane::compare {

namespace {

std::vector<SumChange> sums_by(const std::string WorkGroup::* name, const Run& before, const Run& after) {
  std::map<std::string, SumChange> all;
  for (const WorkGroup& group : before.work) {
    SumChange& sum = all[group.*name];
    sum.calls_before += group.calls;
    sum.before_ns += group.total_ns;
  }
  for (const WorkGroup& group : after.work) {
    SumChange& sum = all[group.*name];
    sum.calls_after += group.calls;
    sum.after_ns += group.total_ns;
  }
  std::vector<SumChange> out;
  for (auto& [key, sum] : all) {
    sum.name = key;
    out.push_back(std::move(sum));
  }
  // Without a single name there is nothing to sum up by: modules were not recorded.
  if (out.size() == 1 && out[0].name.empty()) return {};
  std::stable_sort(out.begin(), out.end(), [](const SumChange& a, const SumChange& b) {
    return std::abs(a.change_ns()) > std::abs(b.change_ns());
  });
  return out;
}

}  // namespace

std::vector<SumChange> sums_by_op(const Run& before, const Run& after) {
  return sums_by(&WorkGroup::op, before, after);
}

std::vector<SumChange> sums_by_module(const Run& before, const Run& after) {
  return sums_by(&WorkGroup::module, before, after);
}

}  // namespace firelane::compare
