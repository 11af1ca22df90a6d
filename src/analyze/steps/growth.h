// Whether something grows from step to step, and by which law.
//
// The slope is the median of the slopes between all pairs of steps (Theil and Sen), so that single slow steps do not
// make it. Growth counts when each quarter of the steps is above the one before (of few steps: when nearly all pairs
// rise), and the whole rise is a good part of the first step and far above the scatter around the line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

inline constexpr size_t kWarmUp = 2;  // steps of a program's start that are slow in every program

struct StepPoint {
  int64_t number = 0;
  int64_t value = 0;  // ns, or bytes
};

enum class GrowthLaw : uint8_t { kNone, kLinear, kQuadratic };
std::string_view name_of(GrowthLaw law);  // "none", "linear", "quadratic"

struct Growth {
  GrowthLaw law = GrowthLaw::kNone;
  int64_t steps = 0;  // that were looked at
  int64_t first_number = 0;
  int64_t last_number = 0;
  int64_t first = 0;  // of the fitted line, at the first and the last step
  int64_t last = 0;
  int64_t slope_per_step = 0;
};

// Points in order of their number. At least 8; more than 200 are thinned out.
Growth find_growth(const std::vector<StepPoint>& points);

// Growth of the step time: all timed steps, recorded or not, without warm-up, and without what they lost to other
// programs (core_waits.h).
Growth step_growth(const Model& model);

}  // namespace firelane::analyze
