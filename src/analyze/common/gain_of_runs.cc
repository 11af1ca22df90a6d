#include "analyze/common/gain_of_runs.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace firelane::analyze {

namespace {

double mean(const std::vector<int64_t>& values) {
  double sum = 0;
  for (const int64_t value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

double squares(const std::vector<int64_t>& values, double around) {
  double sum = 0;
  for (const int64_t value : values) sum += std::pow(static_cast<double>(value) - around, 2);
  return sum;
}

// Two-sided, 95%, by degrees of freedom.
double student(size_t freedom) {
  static constexpr std::array<double, 20> kT = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                                2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
  return freedom == 0 ? INFINITY : freedom <= kT.size() ? kT[freedom - 1] : 2.0;
}

}  // namespace

RunGain gain_of_runs(const std::vector<int64_t>& before_ns, const std::vector<int64_t>& after_ns) {
  FL_CHECK(!before_ns.empty() && !after_ns.empty(), "gain_of_runs: both sides need a run");
  RunGain out{.before_ns = mean(before_ns), .after_ns = mean(after_ns)};
  out.saved_ns = out.before_ns - out.after_ns;
  const size_t freedom = before_ns.size() + after_ns.size() - 2;
  if (freedom == 0) return out;
  const double variance =
      (squares(before_ns, out.before_ns) + squares(after_ns, out.after_ns)) / static_cast<double>(freedom);
  const double weight = 1 / static_cast<double>(before_ns.size()) + 1 / static_cast<double>(after_ns.size());
  const double half = student(freedom) * std::sqrt(variance * weight);
  out.has_range = true;
  out.low_ns = out.saved_ns - half;
  out.high_ns = out.saved_ns + half;
  return out;
}

}  // namespace firelane::analyze
