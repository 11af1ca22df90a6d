// Is it more than noise? Two sides, one number a run: how much they differ, in what range that lies, and what could
// have been found at all.
//
//   const Judgement j = judge({20.1, 20.3, 20.0, 20.2}, {21.4, 21.2, 21.5, 21.3});
//   j.outcome == Outcome::kMore, j.ratio == 1.059, j.range, j.smallest_change
//
// Two things are asked of a difference: that chance would hardly give it (permutation of the runs), and that it is
// large enough to matter (`threshold`). Where there are too few runs for chance to be ruled out, the noise of earlier
// equal runs serves; without it the answer is kInconclusive, and says how many runs would do.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "compare/statistics/samples.h"

namespace firelane::compare {

// How much numbers of equal runs differ: a standard deviation relative to the mean, and how well it is known.
struct Noise {
  double relative = 0;
  double degrees = 0;  // of freedom: runs less groups of equal runs
};

// For all groups of equal runs together; empty if no group has two runs.
std::optional<Noise> noise_of(std::span<const std::vector<double>> groups);

struct JudgeOptions {
  double alpha = 0.05;           // a difference that chance gives less often than this is one
  double threshold = 0.03;       // and that is at least this large: 0.03 is 3%
  double power = 0.8;            // smallest_change would be found this often
  std::optional<Noise> noise{};  // of earlier equal runs
  bool with_range = true;        // which costs a hundred times what p does
};

enum class Outcome : uint8_t { kSame, kMore, kLess, kInconclusive };
std::string_view name_of(Outcome outcome);  // "same", "more", "less", "inconclusive"

enum class Method : uint8_t {
  kPermutation,  // of the runs
  kKnownNoise,   // too few runs for that; Student's t with the noise of earlier runs
  kNone,         // neither
};
std::string_view name_of(Method method);  // "permutation", "earlier noise", "none"

struct Judgement {
  Outcome outcome = Outcome::kInconclusive;
  Method method = Method::kNone;
  double before = 0;  // mean of the runs
  double after = 0;
  double ratio = 1;  // after / before
  bool has_range = false;
  Range range;  // of the ratio, at 1 - alpha
  double p = 1;
  bool exact = false;  // all ways to deal the runs out were tried
  double noise = -1;   // relative, between equal runs; -1 not known
  // The smallest relative change that would have been found, `power` of the time; infinite when none would.
  double smallest_change = 0;
  int64_t runs_needed = 0;    // a side, to find a change of `threshold`; 0 when that is not known
  int64_t runs_for_half = 0;  // a side, to find half of smallest_change; 0 when that is not known, or 1,000 do not
};

// One number a run. REQUIRES: at least one a side, none negative.
Judgement judge(std::span<const double> before, std::span<const double> after, const JudgeOptions& options = {});

// The smallest change that so many runs a side find with that noise.
double smallest_change(const Noise& noise, size_t before, size_t after, const JudgeOptions& options);
// The least runs a side that find a change of `change`; 0 when 1,000 do not.
int64_t runs_for(double change, const Noise& noise, const JudgeOptions& options);

}  // namespace firelane::compare
