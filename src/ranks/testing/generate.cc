#include "ranks/testing/generate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <utility>

#include "base/check.h"
#include "ranks/reduce/waits.h"

namespace firelane::ranks::testing {

namespace {

constexpr int64_t kUnixStart = 1'790'000'000'000'000'000;

struct Work {
  double compute = 0, input = 0, gc = 0, allocation = 0, host = 0, checkpoint = 0;
  int64_t kernels = 0;
  double threads = 0;
  double all() const { return compute + input + gc + allocation + host + checkpoint; }
};

struct MadeRow {
  int64_t id = 0;
  double start = 0, end = 0, overlapped = 0;
  Collective op = Collective::kAllReduce;
  int64_t in_elements = 0, out_elements = 0, group = 0, peer = -1, step = 0, stream = 7;
  int64_t sequence = 0;
  Work work;
};

struct MadeGroup {
  std::string description;
  std::vector<int64_t> ranks;
  int64_t next_sequence = 0;
};

class Maker {
 public:
  explicit Maker(const JobSpec& spec) : spec_(spec), random_(spec.seed * 7919 + 17) {}

  Job run() {
    FL_CHECK(spec_.ranks % (spec_.tensor * spec_.pipeline) == 0, "generate: ranks do not divide");
    make_groups();
    const auto ranks = static_cast<size_t>(spec_.ranks);
    now_.resize(ranks);
    busy_until_.resize(ranks, 0);
    pending_.resize(ranks);
    work_index_.resize(ranks, 0);
    rows_.resize(ranks);
    step_ends_.resize(ranks);
    for (double& t : now_) t = 1e6 * uniform();
    starts_ = now_;
    for (int64_t step = 0; step < spec_.steps; ++step) play_step(step);
    return parts();
  }

 private:
  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  double normal() { return std::normal_distribution<double>(0, 1)(random_); }
  int64_t stage_of(int64_t rank) const { return rank / (spec_.ranks / spec_.pipeline); }

  void make_groups() {
    const int64_t per_stage = spec_.ranks / spec_.pipeline;
    tensor_of_.assign(static_cast<size_t>(spec_.ranks), -1);
    data_of_ = expert_of_ = tensor_of_;
    MadeGroup world{.description = "default_pg"};
    for (int64_t r = 0; r < spec_.ranks; ++r) world.ranks.push_back(r);
    groups_.push_back(world);
    for (int64_t stage = 0; stage < spec_.pipeline; ++stage) {
      const int64_t first = stage * per_stage;
      for (int64_t t = 0; t < per_stage / spec_.tensor && spec_.tensor > 1; ++t) {
        MadeGroup group{.description = "tp"};
        for (int64_t i = 0; i < spec_.tensor; ++i) group.ranks.push_back(first + t * spec_.tensor + i);
        add(group, tensor_of_);
      }
      for (int64_t i = 0; i < spec_.tensor; ++i) {
        MadeGroup group{.description = "dp"};
        for (int64_t d = 0; d < per_stage / spec_.tensor; ++d) group.ranks.push_back(first + d * spec_.tensor + i);
        if (group.ranks.size() < 2) continue;
        add(group, data_of_);
        if (!spec_.experts) continue;
        group.description = "ep";
        add(group, expert_of_);
      }
    }
    if (spec_.pipeline > 1) {
      pipeline_ = static_cast<int64_t>(groups_.size());
      groups_.push_back({.description = "pp", .ranks = groups_[0].ranks});
    }
  }
  void add(const MadeGroup& group, std::vector<int64_t>& of_rank) {
    for (const int64_t r : group.ranks) of_rank[static_cast<size_t>(r)] = static_cast<int64_t>(groups_.size());
    groups_.push_back(group);
  }

  void compute(int64_t rank, double share, int64_t step) {
    const auto r = static_cast<size_t>(rank);
    double base = static_cast<double>(spec_.layer_ns) * share;
    if (!spec_.recorded_ns.empty()) {
      const std::vector<int64_t>& pieces = spec_.recorded_ns[static_cast<size_t>(step) % spec_.recorded_ns.size()];
      base = share * static_cast<double>(pieces[work_index_[r]++ % pieces.size()]);
    }
    Work& work = pending_[r];
    const double done = base * std::max(0.1, 1 + spec_.jitter * normal());
    work.compute += 0.9 * done;
    work.host += 0.1 * done;
    work.kernels += 10;
    work.threads += base;
    if (rank != spec_.straggler || step % spec_.every_steps != 0) return;
    const double extra = base * spec_.extra * (spec_.every_steps > 1 ? static_cast<double>(spec_.every_steps) : 1);
    switch (spec_.cause) {
      case Cause::kMoreWork:
        work.compute += extra;
        work.threads += base * extra / base;
        break;
      case Cause::kSlowerKernels: work.compute += extra; break;
      case Cause::kInput: work.input += extra; break;
      case Cause::kGc: work.gc += extra; break;
      case Cause::kAllocation: work.allocation += extra; break;
      case Cause::kCheckpoint: work.checkpoint += extra; break;
      default: work.host += extra; break;
    }
  }

  // All members arrive, wait for the last, and end nearly together. `beside`: they work on from their arrival, and are
  // at the next collective when this one has ended, too.
  void meet(int64_t group_index, const std::vector<int64_t>& ranks, Collective op, int64_t elements, int64_t step,
            bool beside = false) {
    MadeGroup& group = groups_[static_cast<size_t>(group_index)];
    double last = 0;
    for (const int64_t rank : ranks) {
      const auto r = static_cast<size_t>(rank);
      now_[r] += pending_[r].all();
      if (busy_until_[r] > 0) {
        MadeRow& before = rows_[r].back();
        before.overlapped = std::min(now_[r], before.end) - before.start;
        now_[r] = std::max(now_[r], std::exchange(busy_until_[r], 0));
      }
      last = std::max(last, now_[r]);
    }
    const double transfer = 8'000 + static_cast<double>(elements) * 2 / 100.0;  // 100 GB/s
    std::map<int64_t, double> host_late;
    if (spec_.host_spread_ns > 0) {
      for (const int64_t rank : ranks) {
        const int64_t host = rank / spec_.gpus_per_host;
        if (spec_.spread_by_step) {
          const auto [at, is_new] = late_in_step_.try_emplace({step, host}, 0);
          if (is_new) at->second = spec_.host_spread_ns * uniform();
          host_late[host] = at->second;
        } else {
          host_late.try_emplace(host, spec_.host_spread_ns * uniform());
        }
      }
    }
    const int64_t id = next_id_++;
    const int64_t sequence = group.next_sequence++;
    for (size_t i = 0; i < ranks.size(); ++i) {
      const auto r = static_cast<size_t>(ranks[i]);
      MadeRow row{.id = id,
                  .start = now_[r],
                  .op = op,
                  .in_elements = elements,
                  .out_elements = elements,
                  .group = group_index,
                  .step = step,
                  .stream = 20 + group_index % 3,
                  .sequence = sequence,
                  .work = pending_[r]};
      if (op == Collective::kSend) {
        row.op = i == 0 ? Collective::kSend : Collective::kRecv;
        row.peer = ranks[1 - i];
      }
      if (op == Collective::kAllToAll) {
        row.in_elements = static_cast<int64_t>(static_cast<double>(elements) * (0.5 + uniform()));
        row.out_elements = static_cast<int64_t>(static_cast<double>(elements) * (0.5 + uniform()));
      }
      row.end = last + transfer + spec_.end_spread_ns * uniform();
      if (!host_late.empty()) row.end += host_late[ranks[i] / spec_.gpus_per_host];
      if (beside) busy_until_[r] = row.end;
      if (!beside) now_[r] = row.end;
      pending_[r] = {};
      rows_[r].push_back(row);
    }
  }

  void layers(int64_t stage, int64_t step, double share) {
    const int64_t per_stage = spec_.ranks / spec_.pipeline;
    for (int64_t layer = 0; layer < spec_.layers; ++layer) {
      for (int64_t r = stage * per_stage; r < (stage + 1) * per_stage; ++r) compute(r, share, step);
      meet_all(stage, tensor_of_, Collective::kAllReduce, 1 << 20, step);
      if (spec_.experts && layer % 2 == 1) meet_all(stage, expert_of_, Collective::kAllToAll, 1 << 19, step);
    }
  }
  void meet_all(int64_t stage, const std::vector<int64_t>& of_rank, Collective op, int64_t elements, int64_t step,
                bool beside = false) {
    const int64_t per_stage = spec_.ranks / spec_.pipeline;
    std::vector<int64_t> done;
    for (int64_t r = stage * per_stage; r < (stage + 1) * per_stage; ++r) {
      const int64_t group = of_rank[static_cast<size_t>(r)];
      if (group < 0 || groups_[static_cast<size_t>(group)].ranks[0] != r) continue;
      meet(group, groups_[static_cast<size_t>(group)].ranks, op, elements, step, beside);
    }
  }

  void play_step(int64_t step) {
    const int64_t per_stage = spec_.ranks / spec_.pipeline;
    std::fill(work_index_.begin(), work_index_.end(), 0);
    for (int64_t stage = 0; stage < spec_.pipeline; ++stage) {
      if (stage > 0) hand_over(stage - 1, stage, step);
      layers(stage, step, 1);
    }
    for (int64_t stage = spec_.pipeline; stage-- > 0;) {
      if (stage + 1 < spec_.pipeline) hand_over(stage + 1, stage, step);
      layers(stage, step, 2);
    }
    for (int64_t stage = 0; stage < spec_.pipeline; ++stage) {
      for (int64_t bucket = 0; bucket < spec_.buckets; ++bucket) {
        for (int64_t r = stage * per_stage; r < (stage + 1) * per_stage; ++r) compute(r, 0.2, step);
        meet_all(stage, data_of_, Collective::kAllReduce, (int64_t{4} << 20) + bucket * 1000, step, spec_.overlap);
      }
    }
    for (int64_t r = 0; r < spec_.ranks; ++r) compute(r, 0.1, step);
    meet(0, groups_[0].ranks, Collective::kAllReduce, 1, step);
    for (size_t r = 0; r < now_.size(); ++r) step_ends_[r].push_back(now_[r]);
  }
  void hand_over(int64_t from, int64_t to, int64_t step) {
    const int64_t per_stage = spec_.ranks / spec_.pipeline;
    for (int64_t i = 0; i < per_stage; ++i) {
      meet(pipeline_, {from * per_stage + i, to * per_stage + i}, Collective::kSend, 1 << 18, step);
    }
  }

  Job parts() {
    Job job{.zero_ns = kUnixStart};
    std::vector<std::pair<double, double>> host_clock;
    for (int64_t host = 0; host <= (spec_.ranks - 1) / spec_.gpus_per_host; ++host) {
      host_clock.emplace_back(spec_.offset_ns * (2 * uniform() - 1), spec_.drift_ppm * 1e-6 * (2 * uniform() - 1));
    }
    std::vector<int32_t> there(static_cast<size_t>(next_id_), 0);
    for (int64_t rank = 0; rank < spec_.ranks; ++rank) {
      if (std::find(spec_.missing_ranks.begin(), spec_.missing_ranks.end(), rank) != spec_.missing_ranks.end())
        continue;
      job.clock.push_back(host_clock[static_cast<size_t>(rank / spec_.gpus_per_host)]);
      std::vector<int64_t>& identity = job.identity.emplace_back();
      job.parts.push_back(part_of(rank, job.clock.back(), identity));
      for (const int64_t id : identity) ++there[static_cast<size_t>(id)];
    }
    for (const std::vector<int64_t>& identity : job.identity) {
      for (const int64_t id : identity) job.possible_rows += there[static_cast<size_t>(id)] > 1 ? 1 : 0;
    }
    return job;
  }

  Part part_of(int64_t rank, const std::pair<double, double>& clock, std::vector<int64_t>& identity) {
    const auto r = static_cast<size_t>(rank);
    const auto local = [&](double t) { return static_cast<int64_t>(t + clock.first + clock.second * t); };
    Part part{.path = "rank" + std::to_string(rank) + ".json",
              .format = "generated",
              .host = spec_.hosts_named ? "host" + std::to_string(rank / spec_.gpus_per_host) : "",
              .device = "GPU",
              .backend = "nccl",
              .rank = rank,
              .world_size = spec_.ranks,
              .has_device_work = true,
              .steps_marked = true,
              .dtypes = {"BFloat16"}};
    const int64_t begin = local(starts_[r]);
    part.unix_start_ns = kUnixStart + begin;
    std::vector<int64_t> own_index(groups_.size(), -1);
    for (size_t g = 0; g < groups_.size(); ++g) {
      const MadeGroup& made = groups_[g];
      if (!std::ranges::binary_search(made.ranks, rank)) continue;
      own_index[g] = static_cast<int64_t>(part.groups.size());
      PartGroup& group = part.groups.emplace_back();
      group.name = spec_.scrambled_names
                       ? std::to_string((rank * 31 + static_cast<int64_t>(part.groups.size()) * 17) % 5)
                       : std::to_string(g);
      group.description = made.description;
      group.size = static_cast<int64_t>(made.ranks.size());
      group.ranks = made.ranks;
      if (spec_.cut_rank_lists && group.ranks.size() > 30) {
        group.ranks.resize(29);
        group.ranks.push_back(made.ranks.back());
        group.ranks_cut = true;
      }
    }
    const auto cut = [&] {
      return spec_.cut_rows == 0 ? 0 : std::uniform_int_distribution<int64_t>(0, spec_.cut_rows)(random_);
    };
    const auto first = static_cast<size_t>(cut());
    const size_t last = rows_[r].size() - std::min(rows_[r].size(), static_cast<size_t>(cut()));
    PartCollectives& c = part.collectives;
    int64_t before_end = 0;
    Causes carried{};
    for (size_t i = first; i < last; ++i) {
      const MadeRow& row = rows_[r][i];
      carried.compute_ns += static_cast<int64_t>(row.work.compute);
      if (spec_.missing_rows > 0 && uniform() < spec_.missing_rows) continue;
      const bool bare = spec_.missing_arguments > 0 && uniform() < spec_.missing_arguments;
      identity.push_back(row.id);
      c.group.push_back(bare ? -1 : own_index[static_cast<size_t>(row.group)]);
      c.op.push_back(static_cast<int64_t>(row.op));
      c.dtype.push_back(bare ? -1 : 0);
      c.sequence.push_back(spec_.sequence && !bare ? row.sequence : -1);
      c.in_elements.push_back(bare ? -1 : row.in_elements);
      c.out_elements.push_back(bare ? -1 : row.out_elements);
      c.peer.push_back(bare ? -1 : row.peer);
      c.stream.push_back(100 + own_index[static_cast<size_t>(row.group)]);
      c.source.push_back(static_cast<int64_t>(bare ? Source::kName : Source::kKernel));
      c.step.push_back(row.step);
      c.asked_ns.push_back(-1);
      c.start_ns.push_back(local(row.start) - begin);
      c.end_ns.push_back(std::max(local(row.end) - begin, c.start_ns.back()));
      c.overlapped_ns.push_back(static_cast<int64_t>(row.overlapped));
      c.gap_ns.push_back(std::max<int64_t>(0, c.start_ns.back() - before_end));
      c.compute_ns.push_back(carried.compute_ns);
      c.kernels.push_back(row.work.kernels);
      c.work.push_back(static_cast<int64_t>(row.work.threads));
      c.copy_ns.push_back(0);
      c.input_ns.push_back(static_cast<int64_t>(row.work.input));
      c.gc_ns.push_back(static_cast<int64_t>(row.work.gc));
      c.allocation_ns.push_back(static_cast<int64_t>(row.work.allocation));
      c.sync_ns.push_back(0);
      c.host_ns.push_back(static_cast<int64_t>(row.work.host));
      c.checkpoint_ns.push_back(static_cast<int64_t>(row.work.checkpoint));
      c.kernel.push_back(spec_.details ? 0 : -1);
      c.kernel_ns.push_back(spec_.details ? c.compute_ns.back() / 4 * 3 : 0);
      carried = {};
      before_end = c.end_ns.back();
    }
    if (spec_.details) {
      part.kernels.push_back(
          {.name = "gemm", .op = "aten::mm", .calls = 10, .module = "Block_0", .line = "model.py(12): forward"});
    }
    add_steps(rank, local, begin, part);
    part.duration_ns = before_end;
    return part;
  }

  template <typename Local>
  void add_steps(int64_t rank, const Local& local, int64_t begin, Part& part) {
    const auto r = static_cast<size_t>(rank);
    PartSteps& s = part.steps;
    double from = starts_[r];
    for (int64_t step = 0; step < spec_.steps; ++step) {
      const double until = step_ends_[r][static_cast<size_t>(step)];
      Work sum;
      double moving = 0;
      double hidden = 0;
      for (const MadeRow& row : rows_[r]) {
        if (row.step != step) continue;
        sum.compute += row.work.compute;
        sum.input += row.work.input;
        sum.gc += row.work.gc;
        sum.allocation += row.work.allocation;
        sum.checkpoint += row.work.checkpoint;
        moving += row.end - row.start;
        hidden += row.overlapped;
      }
      const int64_t start = local(from) - begin;
      const int64_t end = local(until) - begin;
      const auto whole = [](double ns) { return static_cast<int64_t>(ns); };
      s.number.push_back(100 + step);
      s.start_ns.push_back(start);
      s.end_ns.push_back(end);
      s.compute_ns.push_back(whole(sum.compute));
      s.exposed_ns.push_back(whole(moving - hidden));
      s.copy_ns.push_back(0);
      s.input_ns.push_back(whole(sum.input));
      s.gc_ns.push_back(whole(sum.gc));
      s.allocation_ns.push_back(whole(sum.allocation));
      s.sync_ns.push_back(0);
      s.host_ns.push_back(end - start - whole(sum.compute) - whole(moving - hidden) - whole(sum.input) - whole(sum.gc) -
                          whole(sum.allocation) - whole(sum.checkpoint));
      s.communication_ns.push_back(whole(moving));
      s.warm_up.push_back(0);
      s.checkpoint_ns.push_back(whole(sum.checkpoint));
      s.peak_bytes.push_back(spec_.details ? (int64_t{8} + rank) << 30 : -1);
      from = until;
    }
  }

  const JobSpec& spec_;
  std::mt19937_64 random_;
  std::vector<MadeGroup> groups_;
  std::vector<int64_t> tensor_of_, data_of_, expert_of_;
  int64_t pipeline_ = -1;
  int64_t next_id_ = 0;
  std::vector<size_t> work_index_;  // by rank: how many pieces of work it has done in this step
  std::vector<double> now_, starts_;
  std::vector<double> busy_until_;  // by a collective that the rank works beside; 0 none
  std::vector<Work> pending_;
  std::vector<std::vector<MadeRow>> rows_;
  std::map<std::pair<int64_t, int64_t>, double> late_in_step_;  // by step and host
  std::vector<std::vector<double>> step_ends_;
};

}  // namespace

Job generate(const JobSpec& spec) { return Maker(spec).run(); }

std::shared_ptr<const StudiedJob> studied(const JobSpec& spec) {
  auto intake = std::make_shared<Intake>();
  for (Part& part : generate(spec).parts) intake->add(std::move(part));
  return study_job(std::move(intake)).value();
}

Score score(Job job) {
  Score out{.possible = job.possible_rows};
  auto taken = std::make_shared<Intake>();
  for (Part& part : job.parts) taken->add(std::exchange(part, {}));
  const auto studied_job = study_job(std::move(taken));
  FL_CHECK(studied_job.ok(), "score: the job cannot be reduced");
  const Intake& intake = studied_job.value()->intake;
  const Matches& matches = studied_job.value()->matches;
  const Reduction& reduced = studied_job.value()->result;
  for (const Instance& instance : matches.instances) {
    const Member& first = matches.members[instance.begin];
    if (matches.instance_of_row[first.rank][first.row] == kNoInstance) continue;
    bool mixed = false;
    for (uint32_t i = instance.begin; i < instance.end; ++i) {
      const Member& m = matches.members[i];
      mixed = mixed || job.identity[m.rank][m.row] != job.identity[first.rank][first.row];
    }
    out.wrong += mixed ? 1 : 0;
  }
  out.matched = reduced.matched_rows;
  std::map<int64_t, int64_t> there;  // by collective: ranks that have it
  for (const std::vector<int64_t>& identity : job.identity) {
    for (const int64_t id : identity) ++there[id];
  }
  std::vector<int64_t> only_here(intake.groups.size(), 0);  // by group: rows that no other rank has
  for (size_t r = 0; r < intake.ranks.size(); ++r) {
    for (size_t i = 0; i < job.identity[r].size(); ++i) {
      const uint32_t group = intake.ranks[r].rows[i].group;
      if (group < only_here.size() && there[job.identity[r][i]] == 1) ++only_here[group];
    }
  }
  for (size_t g = 0; g < intake.groups.size(); ++g) {
    const GroupMatch& match = matches.groups[g];
    const int64_t refused = std::accumulate(match.refused.begin(), match.refused.end(), int64_t{0});
    out.unaccounted += std::abs(match.rows - match.matched_rows - refused);
    out.wrongly_outside += std::max<int64_t>(0, match.refused[static_cast<size_t>(Refusal::kOutside)] - only_here[g]);
  }
  out.unaccounted += std::abs(reduced.rows - reduced.matched_rows -
                              std::accumulate(reduced.refused.begin(), reduced.refused.end(), int64_t{0}));
  std::copy(std::begin(reduced.refused), std::end(reduced.refused), out.refused.begin());
  const Clocks& clocks = reduced.clocks;
  // A clock's truth against that of the reference, over the recording.
  std::vector<std::vector<size_t>> ranks_of(clocks.domains.size());
  for (size_t r = 0; r < intake.ranks.size(); ++r) ranks_of[intake.ranks[r].domain].push_back(r);
  const auto& reference = job.clock[ranks_of[clocks.reference][0]];
  for (uint32_t d = 0; d < clocks.domains.size(); ++d) {
    if (d == clocks.reference || !clocks.domains[d].known) continue;
    const auto& truth = job.clock[ranks_of[d][0]];
    double worst = 0;
    // Where the clock was read.
    int64_t first = INT64_MAX;
    int64_t last = INT64_MIN;
    for (const size_t r : ranks_of[d]) {
      const RankRows& rank = intake.ranks[r];
      if (rank.rows.empty()) continue;
      first = std::min(first, rank.rows.front().start_ns);
      last = std::max(last, rank.rows.back().end_ns);
    }
    for (const int64_t at : {first, last}) {
      const double t = static_cast<double>(at + intake.base_unix_ns - job.zero_ns);
      const double ahead = truth.first - reference.first + (truth.second - reference.second) * t;
      worst = std::max(worst, std::abs(clocks.domains[d].ahead_ns(at) - ahead));
    }
    out.worst_clock_ns = std::max(out.worst_clock_ns, worst);
    out.worst_bound_ns = std::max(out.worst_bound_ns, clocks.domains[d].bound_ns);
    out.outside_bound += worst > clocks.domains[d].bound_ns ? 1 : 0;
  }
  if (!reduced.stragglers.empty()) {
    out.first_straggler = reduced.stragglers[0].rank;
    out.cause = reduced.stragglers[0].cause;
  }
  out.slowdown = reduced.scaling.slowdown;
  return out;
}

}  // namespace firelane::ranks::testing
