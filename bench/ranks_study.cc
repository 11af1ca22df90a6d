// Jobs with a known truth, reduced and scored: what bench/ranks.py runs.
//
//   ranks_study score [JOBS [SEED [KIND [RANKS]]]]   one JSON line a kind of job: matching, clocks, stragglers; KIND is
//                                                     how its name begins, RANKS any number that 16 divides, or 8
//   ranks_study refused JOBS SEED KIND RANKS   of one kind, the ranks of groups whose rows lack a partner that is there
//   ranks_study stress [JOBS [SEED]]    every fault at random, harder than any kind of `score`: the jobs with a wrong
//                                       match or a clock outside of its bound, and how many rows of all found partners
//   ranks_study make DIR RANKS ROWS     parts of a job on disk, for the speed of `firelane ranks reduce`
//   ranks_study planted DIR             the small job of tests/data/ranks: four ranks on two hosts, rank 2 is slow
//   ranks_study reduce RANKS ROWS SEQ   seconds that the reduce takes in memory, without reading parts
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "analyze/host/host_time.h"
#include "analyze/steps/find_steps.h"
#include "import/load.h"
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

// A GPT that trains on an H200, as it was recorded: of each step the time from one piece of its kernels to the next,
// idle time between them included. Pieces as many as a rank of the made-up jobs has between its collectives.
std::vector<std::vector<int64_t>> recorded_steps() {
  constexpr size_t kPieces = 12;
  const Result<Model> loaded = importer::load_trace(FIRELANE_TEST_DATA "/h200_gpt_plain.lane", {});
  if (!loaded.ok()) {
    std::fprintf(stderr, "ranks_study: %s\n", loaded.error().message.c_str());
    std::exit(1);
  }
  const Model& model = loaded.value();
  std::vector<std::vector<int64_t>> out;
  for (const analyze::FoundStep& step : analyze::find_steps(model, analyze::host_time(model)).steps) {
    std::vector<int64_t> starts;
    for (Row row = 0; row < model.device_slices.size(); ++row) {
      const int64_t start = model.device_slices.start_ns[row];
      if (model.device_slices.kind[row] == DeviceKind::kKernel && start >= step.start_ns && start < step.end_ns) {
        starts.push_back(start);
      }
    }
    if (starts.size() < kPieces) continue;
    std::sort(starts.begin(), starts.end());
    std::vector<int64_t>& pieces = out.emplace_back();
    for (size_t i = 0; i < kPieces; ++i) {
      const int64_t next = i + 1 < kPieces ? starts[(i + 1) * starts.size() / kPieces] : step.end_ns;
      pieces.push_back(next - starts[i * starts.size() / kPieces]);
    }
  }
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
  int64_t jobs = 0, possible = 0, matched = 0, wrong = 0, outside = 0, named = 0, caused = 0, flagged = 0,
          unaccounted = 0, wrongly_outside = 0;
  double clock = 0, bound = 0, seconds = 0;
  std::array<int64_t, kRefusalCount> refused{};
};

void print(const char* name, const JobSpec& spec, int64_t ranks, const Totals& t) {
  std::printf(
      "{\"kind\":\"%s\",\"ranks\":%lld,\"jobs\":%lld,\"possible\":%lld,\"matched\":%lld,\"wrong\":%lld,\"worst_clock_"
      "ns\":%.0f,"
      "\"worst_bound_ns\":%.0f,\"outside_bound\":%lld,\"end_spread_ns\":%.0f,\"planted\":%s,\"named_first\":%lld,"
      "\"cause_right\":%lld,\"flagged\":%lld,\"unaccounted\":%lld,\"wrongly_outside\":%lld,\"seconds\":%.3f,"
      "\"refused\":{",
      name, static_cast<long long>(ranks), static_cast<long long>(t.jobs), static_cast<long long>(t.possible),
      static_cast<long long>(t.matched), static_cast<long long>(t.wrong), t.clock, t.bound,
      static_cast<long long>(t.outside), spec.end_spread_ns, spec.straggler >= 0 ? "true" : "false",
      static_cast<long long>(t.named), static_cast<long long>(t.caused), static_cast<long long>(t.flagged),
      static_cast<long long>(t.unaccounted), static_cast<long long>(t.wrongly_outside), t.seconds);
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

// A line for each rank of a group that has rows without the partner that another rank recorded.
void print_refused(const JobSpec& spec, const Job& job) {
  auto intake = std::make_shared<Intake>();
  for (const Part& part : job.parts) intake->add(part);
  const auto studied = study_job(std::move(intake));
  if (!studied.ok()) return;
  const Intake& ranks = studied.value()->intake;
  const Matches& matches = studied.value()->matches;
  std::map<int64_t, int64_t> there;
  for (const auto& identity : job.identity) {
    for (const int64_t id : identity) ++there[id];
  }
  struct Rows {
    int64_t all = 0, possible = 0, matched = 0;
  };
  std::map<std::pair<uint32_t, size_t>, Rows> by_group;
  for (size_t r = 0; r < ranks.ranks.size(); ++r) {
    for (size_t i = 0; i < ranks.ranks[r].rows.size(); ++i) {
      Rows& rows = by_group[{ranks.ranks[r].rows[i].group, r}];
      ++rows.all;
      rows.possible += there[job.identity[r][i]] > 1 ? 1 : 0;
      rows.matched += matches.instance_of_row[r][i] != kNoInstance ? 1 : 0;
    }
  }
  for (const auto& [key, rows] : by_group) {
    if (rows.matched >= rows.possible) continue;
    const auto& [group, r] = key;
    const JobGroup* of = group < ranks.groups.size() ? &ranks.groups[group] : nullptr;
    std::string why;
    for (size_t i = 0; of != nullptr && i < kRefusalCount; ++i) {
      const int64_t count = matches.groups[group].refused[i];
      if (count > 0) why += " " + std::string(name_of(static_cast<Refusal>(i))) + " " + std::to_string(count);
    }
    std::printf("seed %llu rank %lld %s of %zu: %lld rows, %lld possible, %lld matched; group:%s\n",
                static_cast<unsigned long long>(spec.seed), static_cast<long long>(ranks.ranks[r].part.rank),
                of == nullptr ? "no group" : of->key.c_str(), of == nullptr ? 0 : of->members.size(),
                static_cast<long long>(rows.all), static_cast<long long>(rows.possible),
                static_cast<long long>(rows.matched), why.c_str());
  }
}

uint64_t first_seed = 1;  // other jobs of the same kinds: what was chosen on some is tried on those
std::string_view only;    // kinds whose name begins so

int64_t only_ranks = 0;  // jobs of this size; 0: all
bool only_refused = false;

void run(const char* name, JobSpec spec, int64_t ranks, int64_t jobs) {
  if (!std::string_view(name).starts_with(only) || (only_ranks > 0 && ranks != only_ranks)) return;
  Totals t;
  for (int64_t i = 0; i < jobs; ++i) {
    JobSpec one = shape(spec, first_seed + static_cast<uint64_t>(i), ranks);
    if (spec.straggler >= 0) one.straggler = (i * 7 + 3) % ranks;
    one.missing_ranks.clear();
    for (const int64_t missing : spec.missing_ranks) one.missing_ranks.push_back((missing + i) % ranks);
    if (one.straggler >= 0) std::erase(one.missing_ranks, one.straggler);
    Job job = generate(one);
    if (only_refused) {
      print_refused(one, job);
      continue;
    }
    const auto begun = std::chrono::steady_clock::now();
    const Score s = score(std::move(job));
    t.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    ++t.jobs;
    t.possible += s.possible;
    t.matched += s.matched;
    t.wrong += s.wrong;
    t.outside += s.outside_bound;
    t.unaccounted += s.unaccounted;
    t.wrongly_outside += s.wrongly_outside;
    for (size_t r = 0; r < kRefusalCount; ++r) t.refused[r] += s.refused[r];
    t.clock = std::max(t.clock, s.worst_clock_ns);
    t.bound = std::max(t.bound, s.worst_bound_ns);
    t.named += one.straggler >= 0 && s.first_straggler == one.straggler ? 1 : 0;
    t.caused += one.straggler >= 0 && s.first_straggler == one.straggler && s.cause == one.cause ? 1 : 0;
    t.flagged += s.first_straggler >= 0 ? 1 : 0;
  }
  if (!only_refused) print(name, spec, ranks, t);
}

int run_scores(int64_t jobs) {
  const JobSpec plain{};
  const std::vector<std::vector<int64_t>> recorded = recorded_steps();
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
      {"order, hosts end 100 us apart", with([](JobSpec& s) { s.host_spread_ns = 100'000; })},
      {"order, all of these, ends 100 us apart", with([](JobSpec& s) {
         s.cut_rows = 20, s.missing_rows = 0.01, s.missing_arguments = 0.05, s.scrambled_names = true,
         s.hosts_named = false, s.missing_ranks = {1, 6}, s.cut_rank_lists = true, s.end_spread_ns = 100'000;
       })},
      {"order, work 0.2% uneven", with([](JobSpec& s) { s.jitter = 0.002; })},
      {"order, gradients overlapped", with([](JobSpec& s) { s.overlap = true; })},
      {"work as recorded, order", with([&](JobSpec& s) { s.recorded_ns = recorded; })},
      {"work as recorded, order, gradients overlapped",
       with([&](JobSpec& s) { s.recorded_ns = recorded, s.overlap = true; })},
      {"work as recorded, order, all faults", with([&](JobSpec& s) {
         s.recorded_ns = recorded, s.overlap = true, s.cut_rows = 20, s.missing_rows = 0.01;
         s.missing_arguments = 0.05, s.scrambled_names = true, s.hosts_named = false, s.missing_ranks = {1, 6};
         s.cut_rank_lists = true;
       })},
      {"work as recorded, order, ends 100 us apart",
       with([&](JobSpec& s) { s.recorded_ns = recorded, s.overlap = true, s.end_spread_ns = 100'000; })},
      {"healthy, jitter 5%", with([](JobSpec& s) { s.jitter = 0.05; })},
      {"healthy, jitter 15%", with([](JobSpec& s) { s.jitter = 0.15; })},
  };
  const bool usual = only_ranks == 0 || only_ranks == 8 || only_ranks == 64;
  for (const Kind& kind : kinds) {
    for (const int64_t ranks : usual ? std::vector<int64_t>{8, 64} : std::vector<int64_t>{only_ranks}) {
      run(kind.name, kind.spec, ranks, jobs);
    }
  }
  run("order, rank lists cut", with([](JobSpec& s) { s.cut_rank_lists = true; }), 128, std::max<int64_t>(1, jobs / 8));
  if (usual) {
    run("sequence numbers", kinds[0].spec, 1024, std::max<int64_t>(1, jobs / 32));
    run("order, windows cut", kinds[3].spec, 1024, std::max<int64_t>(1, jobs / 32));
    run("order, windows cut", kinds[3].spec, 4096, 1);
  }
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
        Planted{"straggler: checkpoint, every 5th step", Cause::kCheckpoint, 5},
        Planted{"straggler: slower kernels, gradients overlapped", Cause::kSlowerKernels, 1, true},
        Planted{"straggler: more work, gradients overlapped", Cause::kMoreWork, 1, true},
        Planted{"straggler: slower kernels, work as recorded", Cause::kSlowerKernels, 1, false, true},
        Planted{"straggler: input, work as recorded", Cause::kInput, 1, false, true},
        Planted{"straggler: slower kernels, work as recorded, gradients overlapped", Cause::kSlowerKernels, 1, true,
                true},
        Planted{"straggler: more work, work as recorded, gradients overlapped", Cause::kMoreWork, 1, true, true}}) {
    for (const int64_t ranks : {8, 64}) {
      JobSpec spec = plain;
      spec.straggler = 0;
      spec.cause = p.cause;
      spec.every_steps = p.every;
      spec.extra = 0.1;
      spec.overlap = p.overlap;
      if (p.recorded) spec.recorded_ns = recorded;
      run(p.name, spec, ranks, jobs);
    }
  }
  return 0;
}

// Faults that do not go together in recorded jobs: what a rule of matching gets away with shows here.
JobSpec stressed(uint64_t seed) {
  const auto pick = [&](uint64_t divisor, auto... values) {
    const double all[] = {static_cast<double>(values)...};
    return all[seed / divisor % sizeof...(values)];
  };
  JobSpec spec = shape({}, seed, static_cast<int64_t>(pick(1, 8, 16, 32, 64, 128)));
  spec.steps = 4 + static_cast<int64_t>(seed % 7) * 2;
  spec.jitter = pick(5, 0.02, 0.01, 0.005, 0.002, 0.0005);
  spec.hosts_named = pick(2, 0, 1) > 0;
  spec.cut_rows = static_cast<int64_t>(pick(1, 0, 15, 30, 45));
  spec.missing_rows = pick(3, 0, 0.02, 0.04);
  spec.missing_arguments = pick(7, 0, 0.05, 0.1);
  spec.overlap = pick(11, 0, 1) > 0;
  spec.end_spread_ns = pick(13, 3'000, 3'000, 20'000, 100'000);
  spec.host_spread_ns = pick(17, 0, 0, 0, 100'000);
  spec.gpus_per_host = static_cast<int64_t>(pick(19, 8, 8, 4));
  if (pick(23, 0, 1, 0) > 0) spec.missing_ranks = {1, 6};
  spec.offset_ns = pick(29, 24e6, 10e6);
  spec.spread_by_step = pick(31, 0, 1) > 0;
  return spec;
}

int run_stress(int64_t jobs, uint64_t seed) {
  int64_t wrong = 0;
  int64_t possible = 0;
  int64_t matched = 0;
  for (int64_t i = 0; i < jobs; ++i, ++seed) {
    const Score s = score(generate(stressed(seed)));
    possible += s.possible;
    matched += s.matched;
    if (s.wrong == 0 && s.outside_bound == 0) continue;
    ++wrong;
    std::printf("{\"seed\":%llu,\"wrong\":%lld,\"outside_bound\":%lld,\"matched\":%lld,\"possible\":%lld}\n",
                static_cast<unsigned long long>(seed), static_cast<long long>(s.wrong),
                static_cast<long long>(s.outside_bound), static_cast<long long>(s.matched),
                static_cast<long long>(s.possible));
    std::fflush(stdout);
  }
  std::printf("{\"jobs\":%lld,\"jobs_wrong\":%lld,\"matched\":%lld,\"possible\":%lld}\n", static_cast<long long>(jobs),
              static_cast<long long>(wrong), static_cast<long long>(matched), static_cast<long long>(possible));
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
  if (mode == "refused" && argc == 6) {
    first_seed = static_cast<uint64_t>(number(argv[3]));
    only = argv[4];
    only_ranks = number(argv[5]);
    only_refused = true;
    return run_scores(number(argv[2]));
  }
  if (argc > 5 && mode == "score") only_ranks = number(argv[5]);
  if (mode == "score") return run_scores(argc > 2 ? number(argv[2]) : 30);
  if (mode == "stress") {
    return run_stress(argc > 2 ? number(argv[2]) : 100, argc > 3 ? static_cast<uint64_t>(number(argv[3])) : 1);
  }
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
  std::fprintf(stderr,
               "usage: ranks_study score [JOBS [SEED [KIND [RANKS]]]] | stress [JOBS [SEED]] | make DIR RANKS ROWS | "
               "planted DIR | reduce "
               "RANKS ROWS 0|1\n");
  return 2;
}
