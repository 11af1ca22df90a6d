// Runs of one program with different settings: which was fastest, and where more stops paying.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "compare/run/run.h"

namespace firelane::compare {

struct SweepPoint {
  std::vector<std::string> values;  // one a variable
  std::optional<Run> run;           // none: it failed
  std::string failure;              // "out of memory", "exit code 1: ValueError: ..."
};

struct Sweep {
  std::vector<std::string> variables;
  std::vector<SweepPoint> points;
};

// What a second gives. Samples where every run knows how many a step takes, else steps: of a sweep over batch sizes
// steps alone would call the smallest the best.
enum class Throughput : uint8_t { kSteps, kSamples, kTokens };
Throughput throughput_kind(const Sweep& sweep);
double throughput_of(const Run& run, Throughput kind);  // per second; 0 when not known

struct SweepBest {
  std::optional<size_t> best;  // none: every point failed
  // Of the points with at least 95% of the best throughput the one with the least memory; where memory is not known or
  // equal, the first of the sweep.
  std::optional<size_t> knee;
};
SweepBest find_best(const Sweep& sweep);

// Memory grows linearly with the batch: what a value needs, from the two largest values that were measured. None with
// fewer than two, or when it does not grow.
struct MemoryPoint {
  double value = 0;
  double bytes = 0;
};
std::optional<double> predict_memory(std::vector<MemoryPoint> measured, double value);

// How many loading processes keep up with the program (Plumber's law): the time that one needs for a batch by the time
// that the program needs for one when it never waits. `workers` is how many loaded while this was measured; 0 means
// that the program itself did.
int workers_needed(double step_ns, double wait_ns, int workers, int most);

}  // namespace firelane::compare
