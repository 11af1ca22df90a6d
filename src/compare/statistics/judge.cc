#include "compare/statistics/judge.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "compare/statistics/permutation.h"
#include "compare/statistics/student.h"

namespace firelane::compare {

std::string_view name_of(Outcome outcome) {
  static constexpr std::array<std::string_view, 4> kNames = {"same", "more", "less", "inconclusive"};
  return kNames[static_cast<size_t>(outcome)];
}

std::string_view name_of(Method method) {
  static constexpr std::array<std::string_view, 3> kNames = {"permutation", "earlier noise", "none"};
  return kNames[static_cast<size_t>(method)];
}

std::optional<Noise> noise_of(std::span<const std::vector<double>> groups) {
  double squares = 0;
  double degrees = 0;
  for (const std::vector<double>& runs : groups) {
    const double middle = mean(runs);
    if (runs.size() < 2 || middle <= 0) continue;
    for (const double run : runs) squares += (run / middle - 1) * (run / middle - 1);
    degrees += static_cast<double>(runs.size() - 1);
  }
  if (degrees == 0) return std::nullopt;
  return Noise{std::sqrt(squares / degrees), degrees};
}

namespace {

// Noise that fewer degrees of freedom vouch for is no base for a verdict.
constexpr double kFewestDegrees = 3;
constexpr int64_t kMostRuns = 1000;

double error_of(const Noise& noise, size_t before, size_t after) {
  return noise.relative * std::sqrt(1 / static_cast<double>(before) + 1 / static_cast<double>(after));
}

// Two-sided p of a permutation test of so many runs a side at best.
double best_p(size_t runs) {
  double ways = 1;
  for (size_t i = 0; i < runs; ++i) ways *= static_cast<double>(2 * runs - i) / static_cast<double>(i + 1);
  return 2 / ways;
}

Outcome outcome_of(const Judgement& j, const JudgeOptions& options) {
  const bool large = std::abs(j.ratio - 1) >= options.threshold;
  if (!large) return Outcome::kSame;
  // It looks different, and the runs cannot tell whether it is.
  if (j.p > options.alpha) return Outcome::kInconclusive;
  return j.ratio > 1 ? Outcome::kMore : Outcome::kLess;
}

void by_permutation(const PermutationTest& test, const JudgeOptions& options, Judgement& j) {
  j.method = Method::kPermutation;
  j.p = test.p();
  j.exact = test.exact();
  if (!options.with_range) return;
  j.range = test.ratios(options.alpha);
  j.has_range = true;
}

void by_noise(const Noise& noise, size_t before, size_t after, const JudgeOptions& options, Judgement& j) {
  j.method = Method::kKnownNoise;
  const double error = error_of(noise, before, after);
  const double distance = std::abs(j.ratio - 1);
  j.p = error > 0 ? 2 * student_cdf(-distance / error, noise.degrees) : distance > 0 ? 0 : 1;
  const double half = student_quantile(1 - options.alpha / 2, noise.degrees) * error;
  j.range = {std::max(0.0, j.ratio - half), j.ratio + half};
  j.has_range = true;
}

}  // namespace

double smallest_change(const Noise& noise, size_t before, size_t after, const JudgeOptions& options) {
  const double needed =
      student_quantile(1 - options.alpha / 2, noise.degrees) + student_quantile(options.power, noise.degrees);
  return std::max(options.threshold, needed * error_of(noise, before, after));
}

int64_t runs_for(double change, const Noise& noise, const JudgeOptions& options) {
  JudgeOptions without_threshold = options;
  without_threshold.threshold = 0;
  for (int64_t runs = 2; runs <= kMostRuns; ++runs) {
    const auto count = static_cast<size_t>(runs);
    if (best_p(count) > options.alpha) continue;
    const Noise better{noise.relative, std::max(noise.degrees, static_cast<double>(2 * runs - 2))};
    if (smallest_change(better, count, count, without_threshold) <= change) return runs;
  }
  return 0;
}

Judgement judge(std::span<const double> before, std::span<const double> after, const JudgeOptions& options) {
  FL_CHECK(!before.empty() && !after.empty(), "judge: a side without runs");
  Judgement j{.before = mean(before), .after = mean(after)};
  j.ratio = j.before > 0 ? j.after / j.before : j.after > 0 ? INFINITY : 1;
  const std::array<std::vector<double>, 2> sides = {std::vector<double>(before.begin(), before.end()),
                                                    std::vector<double>(after.begin(), after.end())};
  const std::optional<Noise> own = noise_of(sides);
  // Many runs of their own say more than what was stored.
  std::optional<Noise> noise = own;
  if (options.noise && (!own || own->degrees < options.noise->degrees)) noise = options.noise;
  if (noise && noise->degrees < kFewestDegrees) noise.reset();

  const PermutationTest test(before, after);
  if (std::isinf(j.ratio)) {
    // From nothing to something: no noise explains that.
    j.p = 0;
    j.outcome = Outcome::kMore;
    return j;
  }
  if (test.smallest_p() <= options.alpha) {
    by_permutation(test, options, j);
  } else if (noise) {
    by_noise(*noise, before.size(), after.size(), options, j);
  }
  if (own) j.noise = own->relative;
  if (noise) {
    j.noise = noise->relative;
    j.runs_needed = runs_for(std::max(options.threshold, 1e-6), *noise, options);
  }
  j.smallest_change =
      j.method == Method::kNone || !noise ? INFINITY : smallest_change(*noise, before.size(), after.size(), options);
  if (noise && j.smallest_change > 0 && !std::isinf(j.smallest_change)) {
    j.runs_for_half = runs_for(j.smallest_change / 2, *noise, options);
  }
  j.outcome = j.method == Method::kNone ? Outcome::kInconclusive : outcome_of(j, options);
  return j;
}

}  // namespace firelane::compare
