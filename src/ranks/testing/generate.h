// Jobs that nobody ran, with everything known about them: for tests and for bench/ranks.py.
//
// Ranks work and meet in collectives as in training with tensor, pipeline, expert and data parallelism; every host has
// a clock with an offset and a drift; traces lose rows, arguments, names and ranks as real ones do. One rank may be
// late for a reason that is planted. Times between collectives come from a list where one is given (of a recorded
// rank), else they are made up.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ranks/part/part.h"
#include "ranks/reduce/match.h"
#include "ranks/reduce/reduce.h"
#include "ranks/reduce/studied_job.h"

namespace firelane::ranks::testing {

struct JobSpec {
  uint64_t seed = 1;
  int64_t ranks = 8;
  int64_t gpus_per_host = 8;
  int64_t tensor = 1;    // ranks of a tensor parallel group
  int64_t pipeline = 1;  // stages
  bool experts = false;  // all_to_all in every second layer, over the data parallel ranks
  int64_t steps = 10;
  int64_t layers = 4;   // per stage
  int64_t buckets = 3;  // of the gradients' all_reduce
  int64_t layer_ns = 1'500'000;
  // Work between collectives as recorded: by step its pieces, both over again when there are no more. Empty: layer_ns.
  std::vector<std::vector<int64_t>> recorded_ns;
  double jitter = 0.02;          // of each piece of work, relative
  double end_spread_ns = 3'000;  // ends of a collective lie this far apart
  double host_spread_ns = 0;     // and those of a host together as far from those of others
  bool spread_by_step = false;   // for all collectives of a step alike, not drawn again for each
  bool overlap = false;          // ranks work on beside the all_reduce of gradients, as DDP's and FSDP's do
  // clocks
  double offset_ns = 10e6;  // at most, either way
  double drift_ppm = 50;
  bool hosts_named = true;
  // what the traces say
  bool sequence = false;
  double missing_rows = 0;       // share
  double missing_arguments = 0;  // share
  int64_t cut_rows = 0;          // at most this many at each end
  bool scrambled_names = false;
  bool cut_rank_lists = false;  // more than 30 ranks: 29 and the last
  std::vector<int64_t> missing_ranks;
  // the straggler
  int64_t straggler = -1;
  Cause cause = Cause::kUnknown;
  double extra = 0.2;       // of its work
  int64_t every_steps = 1;  // only in every n-th step
  // what a part may hold beyond that: memory of each step, the longest kernel before each collective with its place
  bool details = false;
};

struct Job {
  std::vector<Part> parts;                       // in order of rank, without the missing ones
  std::vector<std::vector<int64_t>> identity;    // by part and row: which collective it truly is
  std::vector<std::pair<double, double>> clock;  // by part: offset in ns at Unix time `zero_ns`, drift
  int64_t zero_ns = 0;
  int64_t possible_rows = 0;  // rows that another rank that is there has, too
};

Job generate(const JobSpec& spec);

// Such a job, reduced and kept.
std::shared_ptr<const StudiedJob> studied(const JobSpec& spec);

// How well a reduce did on a job whose truth is known.
struct Score {
  int64_t possible = 0;
  int64_t matched = 0;
  int64_t wrong = 0;  // instances that mix different collectives
  std::array<int64_t, kRefusalCount> refused{};
  int64_t unaccounted = 0;      // rows neither matched nor refused, or twice
  int64_t wrongly_outside = 0;  // rows refused as recorded by one rank only that another rank has, at least
  double worst_clock_ns = 0;    // largest error of a clock, against the reference's
  double worst_bound_ns = 0;    // largest bound that was printed
  int64_t outside_bound = 0;    // clocks whose truth lies outside of their bound
  int64_t first_straggler = -1;
  Cause cause = Cause::kUnknown;
  double slowdown = 1;
};
Score score(Job job);

}  // namespace firelane::ranks::testing
