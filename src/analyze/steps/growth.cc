#include "analyze/steps/growth.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "analyze/host/core_waits.h"

namespace firelane::analyze {

namespace {

constexpr size_t kLeastPoints = 8;
constexpr size_t kMostPoints = 200;
constexpr double kRisingPairs = 0.85;
constexpr double kLeastRise = 0.2;     // of the first step
constexpr double kAboveScatter = 4;    // the rise, in median distances from the line
constexpr double kBetterByHalf = 0.5;  // of the linear fit's error: what the curve must get it down to

double middle(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

struct Point {
  double x = 0;
  double y = 0;
};

// Sum of squared errors of the polynomial of that degree (1 or 2) that fits best; its last coefficient in `curve`.
double squared_error(const std::vector<Point>& points, int degree, double& curve) {
  const size_t n = static_cast<size_t>(degree) + 1;
  std::array<std::array<double, 4>, 3> rows{};
  for (const Point& point : points) {
    const std::array<double, 3> powers = {1, point.x, point.x * point.x};
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) rows[i][j] += powers[i] * powers[j];
      rows[i][n] += powers[i] * point.y;
    }
  }
  for (size_t i = 0; i < n; ++i) {  // steps differ, so that no pivot is 0
    for (size_t j = 0; j < n; ++j) {
      if (i == j || rows[i][i] == 0) continue;
      const double factor = rows[j][i] / rows[i][i];
      for (size_t k = i; k <= n; ++k) rows[j][k] -= factor * rows[i][k];
    }
  }
  std::array<double, 3> solved{};
  for (size_t i = 0; i < n; ++i) solved[i] = rows[i][i] == 0 ? 0 : rows[i][n] / rows[i][i];
  curve = solved[n - 1];
  double error = 0;
  for (const Point& point : points) {
    const double off = solved[0] + solved[1] * point.x + solved[2] * point.x * point.x - point.y;
    error += off * off;
  }
  return error;
}

// Whether each quarter of the steps is, at its median, a good part of the rise above the one before: two levels, or a
// few long steps at the end, are no growth. Fewer steps than this have to rise pair by pair.
constexpr size_t kEnoughForQuarters = 12;
constexpr double kRisingPairsOfMany = 0.7;

bool rises_by_quarters(const std::vector<Point>& points, double rise) {
  double before = 0;
  for (size_t quarter = 0; quarter < 4; ++quarter) {
    std::vector<double> values;
    for (size_t i = quarter * points.size() / 4; i < (quarter + 1) * points.size() / 4; ++i)
      values.push_back(points[i].y);
    const double now = middle(std::move(values));
    if (quarter > 0 && now - before < rise / 16) return false;
    before = now;
  }
  return true;
}

}  // namespace

std::string_view name_of(GrowthLaw law) {
  static constexpr std::array<std::string_view, 3> kNames = {"none", "linear", "quadratic"};
  return kNames[static_cast<size_t>(law)];
}

Growth find_growth(const std::vector<StepPoint>& points) {
  Growth out;
  if (points.size() < kLeastPoints) return out;
  std::vector<Point> used;
  const size_t stride = (points.size() + kMostPoints - 1) / kMostPoints;
  for (size_t i = 0; i < points.size(); i += stride) {
    const double x = static_cast<double>(points[i].number) - static_cast<double>(points[0].number);
    used.push_back({x, static_cast<double>(points[i].value)});
  }
  std::vector<double> slopes;
  size_t rising = 0;
  for (size_t i = 0; i < used.size(); ++i) {
    for (size_t j = i + 1; j < used.size(); ++j) {
      if (used[j].x <= used[i].x) continue;
      slopes.push_back((used[j].y - used[i].y) / (used[j].x - used[i].x));
      rising += used[j].y > used[i].y;
    }
  }
  const bool many = used.size() >= kEnoughForQuarters;
  const double least_rising = many ? kRisingPairsOfMany : kRisingPairs;
  if (slopes.empty() || static_cast<double>(rising) < least_rising * static_cast<double>(slopes.size())) return out;
  const double slope = middle(std::move(slopes));
  std::vector<double> bases;
  for (const Point& point : used) bases.push_back(point.y - slope * point.x);
  const double base = middle(std::move(bases));
  const double rise = slope * (used.back().x - used.front().x);
  std::vector<double> distances;
  for (const Point& point : used) distances.push_back(std::abs(point.y - base - slope * point.x));
  if (rise < kLeastRise * std::max(base, 1.0) || rise < kAboveScatter * middle(std::move(distances))) return out;
  if (many && !rises_by_quarters(used, rise)) return out;
  // On 0..1, so that squares stay exact enough.
  const double span = used.back().x;
  std::vector<Point> scaled;
  for (const Point& point : used) scaled.push_back({point.x / span, point.y / rise});
  double curve = 0;
  const double straight = squared_error(scaled, 1, curve);
  const double curved = squared_error(scaled, 2, curve);
  // Below one part in ten thousand both fit.
  const bool quadratic = curve > 0 && curved < kBetterByHalf * straight && straight > 1e-4;
  out.law = quadratic ? GrowthLaw::kQuadratic : GrowthLaw::kLinear;
  out.steps = static_cast<int64_t>(points.size());
  out.first_number = points.front().number;
  out.last_number = points.back().number;
  out.first = std::llround(std::max(0.0, quadratic ? used.front().y : base));
  out.last = std::llround(quadratic ? used.back().y : base + rise);
  out.slope_per_step = std::llround(slope);
  return out;
}

Growth step_growth(const Model& model) {
  const TimedSteps& steps = model.timed_steps;
  const CoreWaits waits(model);
  std::vector<StepPoint> points;
  for (size_t i = kWarmUp; i < steps.size(); ++i) {
    if (!points.empty() && steps.number[i] <= points.back().number) continue;
    points.push_back({.number = steps.number[i], .value = steps.duration_ns[i] - waits.lost_ns(static_cast<Row>(i))});
  }
  return find_growth(points);
}

}  // namespace firelane::analyze
