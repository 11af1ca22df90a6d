// Jobs with a known truth, reduced and scored: what bench/ranks.py runs.
//
//   ranks_study score [JOBS [SEED [KIND]]]   one JSON line a kind of job: matching, clocks, stragglers
//   ranks_study make DIR RANKS ROWS     parts of a job on disk, for the speed of `firelane ranks reduce`
//   ranks_study planted DIR             the small job of tests/data/ranks: four ranks on two hosts, rank 2 is slow
//   ranks_study reduce RANKS ROWS SEQ   seconds that the reduce takes in memory, without reading parts
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "ranks/part/part_file.h"
#include "ranks/testing/generate.h"

namespace {

using namespace firelane;
using namespace firelane::ranks;
using firelane::ranks::testing::generate;
using firelane::ranks::testing::Job;
using firelane::ranks::testing::JobSpec;
using firelane::ranks::testing::Score;

struct Kind {
  const char* name;
  JobSpec spec;
};

// How long a GPT that trains on an H200 takes from each 60th kernel to the next (tests/data/h200_gpt_plain.lane): work
// between collectives as a real rank does it, long and short pieces, nearly the same in each step.
std::vector<int64_t> recorded_work() {
  constexpr int64_t kMicroseconds[] = {
      2842, 2252, 2829, 2007, 2005, 1838, 1659, 1505, 2189, 949,  990,  1049, 1032, 1008, 1066, 994,  1009,
      995,  955,  1002, 1042, 3704, 2485, 2373, 2911, 1429, 1616, 1499, 1545, 2177, 1054, 1027, 1071, 1090,
      1044, 951,  957,  892,  905,  1019, 1042, 1043, 3272, 2438, 2396, 3004, 1824, 1487, 2056, 2597, 3348,
      1165, 1024, 998,  1028, 1040, 1001, 1067, 1089, 1142, 983,  1011, 1094, 1080, 4165, 2711, 2372, 2687,
      1495, 1818, 1631, 1566, 2208, 1107, 1086, 1097, 1107, 1143, 1123, 1029, 1039, 1129, 1124, 1111, 1072};
  std::vector<int64_t> out;
  for (const int64_t us : kMicroseconds) out.push_back(us * 1000);
  return out;
}

// The shape of a job: data parallel only, with tensor parallelism, with everything.
JobSpec shape(JobSpec spec, uint64_t seed, int64_t ranks) {
  spec.seed = seed;
  spec.ranks = ranks;
  switch (seed % 3) {
    case 0: break;
    case 1: spec.tensor = 4; break;
    default:
      spec.tensor = 2;
      spec.pipeline = 2;
      spec.experts = true;
      break;
  }
  return spec;
}

struct Totals {
  int64_t jobs = 0, possible = 0, matched = 0, wrong = 0, outside = 0, named = 0, caused = 0, flagged = 0;
  double clock = 0, bound = 0;
  std::array<int64_t, kRefusalCount> refused{};
};

void print(const char* name, const JobSpec& spec, int64_t ranks, const Totals& t) {
  std::printf(
      "{\"kind\":\"%s\",\"ranks\":%lld,\"jobs\":%lld,\"possible\":%lld,\"matched\":%lld,\"wrong\":%lld,\"worst_clock_"
      "ns\":%.0f,"
      "\"worst_bound_ns\":%.0f,\"outside_bound\":%lld,\"end_spread_ns\":%.0f,\"planted\":%s,\"named_first\":%lld,"
      "\"cause_right\":%lld,\"flagged\":%lld,\"refused\":{",
      name, static_cast<long long>(ranks), static_cast<long long>(t.jobs), static_cast<long long>(t.possible),
      static_cast<long long>(t.matched), static_cast<long long>(t.wrong), t.clock, t.bound,
      static_cast<long long>(t.outside), spec.end_spread_ns, spec.straggler >= 0 ? "true" : "false",
      static_cast<long long>(t.named), static_cast<long long>(t.caused), static_cast<long long>(t.flagged));
  const char* comma = "";
  for (size_t i = 0; i < kRefusalCount; ++i) {
    if (t.refused[i] == 0) continue;
    std::printf("%s\"%s\":%lld", comma, std::string(name_of(static_cast<Refusal>(i))).c_str(),
                static_cast<long long>(t.refused[i]));
    comma = ",";
  }
  std::printf("}}\n");
  std::fflush(stdout);
}

uint64_t first_seed = 1;  // other jobs of the same kinds: what was chosen on some is tried on those
std::string_view only;    // kinds whose name begins so

void run(const char* name, JobSpec spec, int64_t ranks, int64_t jobs) {
  if (!std::string_view(name).starts_with(only)) return;
  Totals t;
  for (int64_t i = 0; i < jobs; ++i) {
    JobSpec one = shape(spec, first_seed + static_cast<uint64_t>(i), ranks);
    if (spec.straggler >= 0) one.straggler = (i * 7 + 3) % ranks;
    one.missing_ranks.clear();
    for (const int64_t missing : spec.missing_ranks) one.missing_ranks.push_back((missing + i) % ranks);
    if (one.straggler >= 0) std::erase(one.missing_ranks, one.straggler);
    const Score s = score(generate(one));
    ++t.jobs;
    t.possible += s.possible;
    t.matched += s.matched;
    t.wrong += s.wrong;
    t.outside += s.outside_bound;
    for (size_t r = 0; r < kRefusalCount; ++r) t.refused[r] += s.refused[r];
    t.clock = std::max(t.clock, s.worst_clock_ns);
    t.bound = std::max(t.bound, s.worst_bound_ns);
    t.named += one.straggler >= 0 && s.first_straggler == one.straggler ? 1 : 0;
    t.caused += one.straggler >= 0 && s.first_straggler == one.straggler && s.cause == one.cause ? 1 : 0;
    t.flagged += s.first_straggler >= 0 ? 1 : 0;
  }
  print(name, spec, ranks, t);
}

int run_scores(int64_t jobs) {
  const JobSpec plain{};
  const auto with = [&](auto change) {
    JobSpec spec = plain;
    change(spec);
    return spec;
  };
  const Kind kinds[] = {
      {"sequence numbers", with([](JobSpec& s) { s.sequence = true; })},
      {"sequence numbers, windows cut", with([](JobSpec& s) { s.sequence = true, s.cut_rows = 20; })},
      {"order", plain},
      {"order, windows cut", with([](JobSpec& s) { s.cut_rows = 20; })},
      {"order, 1% of rows missing", with([](JobSpec& s) { s.missing_rows = 0.01; })},
      {"order, 5% without arguments", with([](JobSpec& s) { s.missing_arguments = 0.05; })},
      {"order, names scrambled", with([](JobSpec& s) { s.scrambled_names = true; })},
      {"order, hosts unnamed", with([](JobSpec& s) { s.hosts_named = false; })},
      {"order, two ranks missing", with([](JobSpec& s) { s.missing_ranks = {1, 6}; })},
      {"order, all of these", with([](JobSpec& s) {
         s.cut_rows = 20, s.missing_rows = 0.01, s.missing_arguments = 0.05, s.scrambled_names = true,
         s.hosts_named = false, s.missing_ranks = {1, 6}, s.cut_rank_lists = true;
       })},
      {"order, ends 100 us apart", with([](JobSpec& s) { s.end_spread_ns = 100'000; })},
      {"order, gradients overlapped", with([](JobSpec& s) { s.overlap = true; })},
      {"order, work as recorded", with([](JobSpec& s) { s.recorded_ns = recorded_work(); })},
      {"healthy, jitter 5%", with([](JobSpec& s) { s.jitter = 0.05; })},
      {"healthy, jitter 15%", with([](JobSpec& s) { s.jitter = 0.15; })},
  };
  for (const Kind& kind : kinds) {
    for (const int64_t ranks : {8, 64}) run(kind.name, kind.spec, ranks, jobs);
  }
  run("order, rank lists cut", with([](JobSpec& s) { s.cut_rank_lists = true; }), 128, std::max<int64_t>(1, jobs / 8));
  run("sequence numbers", kinds[0].spec, 1024, std::max<int64_t>(1, jobs / 32));
  run("order, windows cut", kinds[3].spec, 1024, std::max<int64_t>(1, jobs / 32));
  run("order, windows cut", kinds[3].spec, 4096, 1);
  struct Planted {
    const char* name;
    Cause cause;
    int64_t every;
    bool overlap = false;
    bool recorded = false;
  };
  for (const Planted& p :
       {Planted{"straggler: more work", Cause::kMoreWork, 1},
        Planted{"straggler: slower kernels", Cause::kSlowerKernels, 1}, Planted{"straggler: input", Cause::kInput, 1},
        Planted{"straggler: garbage collection", Cause::kGc, 1},
        Planted{"straggler: allocation", Cause::kAllocation, 1}, Planted{"straggler: host", Cause::kHost, 1},
        Planted{"straggler: garbage collection, every 5th step", Cause::kGc, 5},
        Planted{"straggler: slower kernels, gradients overlapped", Cause::kSlowerKernels, 1, true},
        Planted{"straggler: more work, gradients overlapped", Cause::kMoreWork, 1, true},
        Planted{"straggler: slower kernels, work as recorded", Cause::kSlowerKernels, 1, false, true},
        Planted{"straggler: input, work as recorded", Cause::kInput, 1, false, true}}) {
    for (const int64_t ranks : {8, 64}) {
      JobSpec spec = plain;
      spec.straggler = 0;
      spec.cause = p.cause;
      spec.every_steps = p.every;
      spec.extra = 0.1;
      spec.overlap = p.overlap;
      if (p.recorded) spec.recorded_ns = recorded_work();
      run(p.name, spec, ranks, jobs);
    }
  }
  return 0;
}

JobSpec large(int64_t ranks, int64_t rows) {
  JobSpec spec{.ranks = ranks, .tensor = 8, .layers = 24};
  spec.steps = std::max<int64_t>(1, rows / (2 * spec.layers + spec.buckets + 1));
  return spec;
}

int make(const std::string& folder, const JobSpec& spec) {
  const Job job = generate(spec);
  for (const Part& part : job.parts) {
    const Result<void> written = write_part(part, folder + "/rank" + std::to_string(part.rank) + ".part");
    if (!written.ok()) {
      std::fprintf(stderr, "ranks_study: %s\n", written.error().message.c_str());
      return 1;
    }
  }
  std::printf("{\"ranks\":%zu,\"rows\":%zu}\n", job.parts.size(), job.parts[0].collectives.size());
  return 0;
}

int time_reduce(int64_t ranks, int64_t rows, bool sequence) {
  JobSpec spec = large(ranks, rows);
  spec.sequence = sequence;
  Job job = generate(spec);
  Intake intake;
  const size_t each = job.parts[0].collectives.size();
  for (Part& part : job.parts) intake.add(std::move(part));
  const std::clock_t cpu_begun = std::clock();
  const auto begun = std::chrono::steady_clock::now();
  const auto reduced = reduce(intake);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::printf(
      "{\"ranks\":%lld,\"rows\":%zu,\"sequence\":%s,\"seconds\":%.3f,\"cpu_seconds\":%.3f,\"matched_percent\":%.3f}\n",
      static_cast<long long>(ranks), each, sequence ? "true" : "false", seconds,
      static_cast<double>(std::clock() - cpu_begun) / CLOCKS_PER_SEC,
      reduced.ok() ? 100 * reduced.value().matched_share() : 0);
  return reduced.ok() ? 0 : 1;
}

int64_t number(const char* text) { return std::strtoll(text, nullptr, 10); }

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (argc > 3 && mode == "score") first_seed = static_cast<uint64_t>(number(argv[3]));
  if (argc > 4 && mode == "score") only = argv[4];
  if (mode == "score") return run_scores(argc > 2 ? number(argv[2]) : 30);
  if (mode == "make" && argc == 5) return make(argv[2], large(number(argv[3]), number(argv[4])));
  if (mode == "planted" && argc == 3) {
    return make(argv[2], {.ranks = 4,
                          .gpus_per_host = 2,
                          .tensor = 2,
                          .steps = 6,
                          .layers = 2,
                          .buckets = 2,
                          .straggler = 2,
                          .cause = Cause::kSlowerKernels});
  }
  if (mode == "reduce" && argc == 5) return time_reduce(number(argv[2]), number(argv[3]), number(argv[4]) != 0);
  std::fprintf(
      stderr,
      "usage: ranks_study score [JOBS [SEED [KIND]]] | make DIR RANKS ROWS | planted DIR | reduce RANKS ROWS 0|1\n");
  return 2;
}
