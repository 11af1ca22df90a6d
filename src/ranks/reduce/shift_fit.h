// Lays the collectives of one island onto those of another under a given difference of clocks. Private to ranks/reduce.
#pragma once

#include <cstdint>
#include <vector>

#include "ranks/reduce/islands.h"

namespace firelane::ranks {

// A collective of the other island, and the one of this island that it falls onto.
struct ShiftPair {
  uint32_t seen = 0;
  uint32_t place = 0;
  double x = 0;    // time of the other's clock, from the middle of the recording
  double off = 0;  // how far the other's end lies behind
};

struct ShiftFit {
  double ahead_ns = 0;  // in the middle
  double drift = 0;
  std::vector<ShiftPair> pairs;  // in order of time
  size_t missed = 0;             // of the other's: fell where the island has none of their kind
  double variance = 0;           // of what is off
  double left_out = 0;           // pairs that do not count: those that are off the most
  // Collectives that follow each other closely are one burst: where a step took longer, all of them lie off.
  size_t bursts = 0;
  double burst_variance = 0;  // of the steps from one burst to the next
  // For collectives of which every rank is here: of the time from the last start to the first end, beside what is usual
  // for the kind. A collective ends when the last one has come and the data has moved, whoever that was.
  double arrival_variance = 0;
  double arrival_degrees = 0;
  // For collectives that synchronize, how many a rank would leave before another has come, wherever the line lies.
  size_t contradicted = 0;
  size_t synchronized = 0;
  double count() const { return static_cast<double>(pairs.size()); }
};

bool is_same_shift(const ShiftFit& a, const ShiftFit& b);  // most rows fall onto the same places

// The share of the pairs that count: noise that stays for several collectives makes them say the same.
double independent_share(const ShiftFit& fit);

class ShiftJudge {
 public:
  ShiftJudge(const Intake& intake, const Island& island, const Island& other);

  size_t rows() const { return seen_.size(); }
  double middle_ns() const { return middle_ns_; }
  bool is_possible(double ahead_ns) const;  // for clocks

  // Differences that put some rows onto collectives of their kind, also those that no clock can have: they show how
  // wrong ones look. The likeliest first.
  std::vector<double> shifts() const;

  enum class Drift : uint8_t { kNone, kAny };
  ShiftFit judge(double ahead_ns, Drift drift = Drift::kAny) const;

  EndNoise noise_of(const ShiftFit& fit) const;

  // Whatever its clock, at least so many rows fall into what the island recorded.
  size_t always_inside() const;

 private:
  struct Seen {
    double end_ns = 0;
    double first_end_ns = 0;
    double last_start_ns = 0;
    double least_ns = 0;  // from the last start to the first end, in such collectives
    uint32_t signature = 0;
    uint32_t list = 0;
    uint32_t members = 0;
  };

  void keep_middle();
  void find_least();
  void contradict(ShiftFit& fit) const;
  void measure_arrivals(ShiftFit& fit) const;
  void lay_on(ShiftFit& fit) const;
  static void straighten(ShiftFit& fit, Drift drift);
  static void measure(ShiftFit& fit);

  const Intake& intake_;
  std::vector<const Places*> lists_;  // the island's collectives, by group
  std::vector<int64_t> sizes_;        // ranks of these groups; 0: not known
  std::vector<Seen> seen_;            // the other's, in order of time
  double middle_ns_ = 0;
  double wide_ns_ = 0;  // nobody ends further from the others
};

}  // namespace firelane::ranks
