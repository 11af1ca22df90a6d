#include "ranks/reduce/chance.h"

#include <math.h>

#include <cmath>
#include <initializer_list>

namespace firelane::ranks {

namespace {

// std::lgamma() writes to a variable of the C library, which threads would share.
double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

// The continued fraction of the incomplete beta function, which converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr int kMostTerms = 300;
  constexpr double kTiny = 1e-300;
  constexpr double kPrecise = 1e-12;
  double c = 1;
  double d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < kTiny ? kTiny : d);
  double h = d;
  for (int m = 1; m < kMostTerms; ++m) {
    const double k = m;
    for (const double term : {k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)),
                              -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))}) {
      d = 1 + term * d;
      c = 1 + term / c;
      d = 1 / (std::abs(d) < kTiny ? kTiny : d);
      if (std::abs(c) < kTiny) c = kTiny;
      h *= d * c;
    }
    if (std::abs(d * c - 1) < kPrecise) break;
  }
  return h;
}

// log of the regularized incomplete beta function I_x(a, b).
double log_beta_share(double a, double b, double x) {
  if (x <= 0) return -INFINITY;
  if (x >= 1) return 0;
  const double front = log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log1p(-x);
  if (x < (a + 1) / (a + b + 2)) return front + std::log(beta_fraction(a, b, x) / a);
  return std::log1p(-std::exp(front) * beta_fraction(b, a, 1 - x) / b);
}

}  // namespace

double log_chance_of_ratio(double ratio, double degrees_above, double degrees_below) {
  if (!(ratio > 0) || degrees_above <= 0 || degrees_below <= 0) return 0;
  if (std::isinf(ratio)) return -INFINITY;
  return log_beta_share(degrees_below / 2, degrees_above / 2, degrees_below / (degrees_below + degrees_above * ratio));
}

double log_chance_of_hits(double hits, double tries, double each) {
  if (hits <= 0) return 0;
  if (hits > tries || each <= 0) return -INFINITY;
  return log_beta_share(hits, tries - hits + 1, each);
}

}  // namespace firelane::ranks
