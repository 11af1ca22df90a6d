// How likely it is that chance alone did it. Private to ranks/reduce.
#pragma once

namespace firelane::ranks {

// The logarithm of the probability that the ratio of two variances of the same noise, estimated from independent
// samples with these degrees of freedom, is at least `ratio`.
double log_chance_of_ratio(double ratio, double degrees_above, double degrees_below);

// The logarithm of the probability of at least `hits` in `tries` of probability `each`.
double log_chance_of_hits(double hits, double tries, double each);

}  // namespace firelane::ranks
