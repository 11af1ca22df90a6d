// Student's t distribution, for what few runs can say.
#pragma once

namespace firelane::compare {

// Probability of a value of at most `t`. REQUIRES: degrees > 0.
double student_cdf(double t, double degrees);
// The value with that probability below it. REQUIRES: 0 < probability < 1, degrees > 0.
double student_quantile(double probability, double degrees);

}  // namespace firelane::compare
