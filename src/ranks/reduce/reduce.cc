#include "ranks/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <set>

#include "ranks/reduce/flight_join.h"
#include "ranks/reduce/group_kinds.h"
#include "ranks/reduce/link_peaks.h"
#include "ranks/reduce/pipeline.h"
#include "ranks/reduce/stragglers.h"
#include "ranks/reduce/studied_job.h"
#include "ranks/reduce/what_if.h"

namespace firelane::ranks {

namespace {

constexpr uint32_t kLinkCount = 3;

Result<void> check_parts(const Intake& intake, Reduction& out) {
  if (intake.ranks.empty()) return Error{"no ranks: give the traces of a job, or a folder of them"};
  std::map<int64_t, const std::string*> seen;
  for (const RankRows& rank : intake.ranks) {
    const Part& part = rank.part;
    if (part.rank < 0) {
      return Error{part.path + ": does not say which rank it is of; put the number into its name, as in rank3.json"};
    }
    const auto [at, is_new] = seen.try_emplace(part.rank, &part.path);
    if (!is_new) {
      return Error{"rank " + std::to_string(part.rank) + " twice: " + *at->second + " and " + part.path +
                   "; give one trace of each rank of one run"};
    }
    out.world_size = std::max({out.world_size, part.world_size, part.rank + 1});
  }
  return {};
}

int64_t median_length(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Steps as averages, and what collectives took of them split into waiting and moving.
RankTime time_of(const RankRows& rank, const RankWaits& waits) {
  const PartSteps& steps = rank.part.steps;
  RankTime out;
  int64_t count = 0;
  int64_t exposed = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    if (!is_judged(steps, s)) continue;
    ++count;
    out.step_ns += steps.end_ns[s] - steps.start_ns[s];
    out.compute_ns += steps.compute_ns[s];
    out.copy_ns += steps.copy_ns[s];
    out.input_ns += steps.input_ns[s];
    exposed += steps.exposed_ns[s];
  }
  if (count == 0) return out;
  // Collectives of several streams may overlap each other: their shares divide the time that they cover together.
  const double all =
      static_cast<double>(waits.exposed_wait_ns + waits.exposed_transfer_ns + waits.exposed_unmatched_ns);
  const auto share = [&](int64_t ns) {
    return all <= 0 ? 0 : static_cast<int64_t>(static_cast<double>(exposed) * static_cast<double>(ns) / all);
  };
  out.wait_ns = share(waits.exposed_wait_ns);
  out.transfer_ns = share(waits.exposed_transfer_ns);
  out.unmatched_ns = exposed - out.wait_ns - out.transfer_ns;
  for (int64_t* each : {&out.step_ns, &out.compute_ns, &out.wait_ns, &out.transfer_ns, &out.unmatched_ns, &out.copy_ns,
                        &out.input_ns}) {
    *each /= count;
  }
  out.host_ns = std::max<int64_t>(
      0, out.step_ns - out.compute_ns - out.wait_ns - out.transfer_ns - out.unmatched_ns - out.copy_ns - out.input_ns);
  return out;
}

void add_ranks(const Intake& intake, const Matches& matches, const Waits& waits, Reduction& out) {
  double peak_sum = 0;
  int64_t peaks = 0;
  int64_t most_peak = -1;
  std::array<double, 8> sum{};
  for (uint32_t r = 0; r < intake.ranks.size(); ++r) {
    const RankRows& rank = intake.ranks[r];
    const RankWaits& w = waits.ranks[r];
    RankResult& result = out.by_rank.emplace_back();
    result.rank = rank.part.rank;
    result.host = rank.part.host;
    result.device = rank.part.device;
    result.path = rank.part.path;
    for (size_t s = 0; s < rank.part.steps.size(); ++s) result.steps += is_judged(rank.part.steps, s) ? 1 : 0;
    result.time = time_of(rank, w);
    result.collectives = static_cast<int64_t>(rank.rows.size());
    result.matched = std::count_if(matches.instance_of_row[r].begin(), matches.instance_of_row[r].end(),
                                   [](uint32_t i) { return i != kNoInstance; });
    result.waited_ns = w.waited_ns;
    result.late_ns = w.late_ns;
    result.passed_on_ns = w.passed_on_ns;
    result.last_count = w.last_count;
    if (w.collective_ns > 0)
      result.overlap_percent = 100.0 * static_cast<double>(w.overlapped_ns) / static_cast<double>(w.collective_ns);
    result.peak_bytes = rank.part.peak_bytes;
    if (result.peak_bytes > 0) {
      peak_sum += static_cast<double>(result.peak_bytes);
      ++peaks;
      if (result.peak_bytes > most_peak) {
        most_peak = result.peak_bytes;
        out.memory_peak_rank = result.rank;
      }
    }
    const RankTime& t = result.time;
    const int64_t parts[] = {t.step_ns,      t.compute_ns, t.wait_ns,  t.transfer_ns,
                             t.unmatched_ns, t.copy_ns,    t.input_ns, t.host_ns};
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(parts[i]);
    out.has_device_work = out.has_device_work || rank.part.has_device_work;
    if (out.device.empty()) out.device = rank.part.device;
  }
  if (peaks > 1) out.memory_imbalance = static_cast<double>(most_peak) * static_cast<double>(peaks) / peak_sum;
  int64_t* const average[] = {&out.time.step_ns,      &out.time.compute_ns, &out.time.wait_ns,  &out.time.transfer_ns,
                              &out.time.unmatched_ns, &out.time.copy_ns,    &out.time.input_ns, &out.time.host_ns};
  for (size_t i = 0; i < sum.size(); ++i) {
    *average[i] = static_cast<int64_t>(sum[i] / static_cast<double>(intake.ranks.size()));
  }
}

// Steps of a group's ranks that are judged, of all of them together.
int64_t judged_steps(const Intake& intake, const JobGroup& group) {
  int64_t out = 0;
  for (const uint32_t r : group.members) {
    const PartSteps& steps = intake.ranks[r].part.steps;
    for (size_t s = 0; s < steps.size(); ++s) out += is_judged(steps, s) ? 1 : 0;
  }
  return std::max<int64_t>(1, out);
}

void add_groups(const Intake& intake, const Matches& matches, const Waits& waits, const std::vector<GroupKind>& kinds,
                Reduction& out) {
  for (size_t g = 0; g < intake.groups.size(); ++g) {
    const JobGroup& group = intake.groups[g];
    if (matches.groups[g].rows == 0) continue;
    out.groups.push_back({.kind = kinds[g],
                          .description = group.description,
                          .ranks = group.ranks,
                          .size = group.size,
                          .present = static_cast<int64_t>(group.members.size()),
                          .match = matches.groups[g],
                          .wait_ns = waits.group_wait_ns[g],
                          .transfer_ns = waits.group_transfer_ns[g],
                          .exposed_ns = waits.group_exposed_ns[g] / judged_steps(intake, group)});
    out.matched_rows += matches.groups[g].matched_rows;
    out.instances += matches.groups[g].instances;
    for (size_t i = 0; i < kRefusalCount; ++i) out.refused[i] += matches.groups[g].refused[i];
  }
  for (const RankRows& rank : intake.ranks) {
    out.rows += static_cast<int64_t>(rank.rows.size());
    out.refused[static_cast<size_t>(Refusal::kNoPeer)] += rank.refused_without_group;
  }
  std::stable_sort(out.groups.begin(), out.groups.end(), [](const GroupResult& a, const GroupResult& b) {
    return a.wait_ns + a.transfer_ns > b.wait_ns + b.transfer_ns;
  });
}

// Kind and link of a group as one number: their collectives are told apart.
uint32_t place_number(GroupKind kind, Link link) {
  return static_cast<uint32_t>(kind) * kLinkCount + static_cast<uint32_t>(link);
}

std::vector<uint32_t> place_numbers(const Intake& intake, const std::vector<GroupKind>& kinds) {
  std::vector<uint32_t> out;
  for (size_t g = 0; g < intake.groups.size(); ++g) {
    const std::vector<uint32_t>& members = intake.groups[g].members;
    const auto host = [&](uint32_t rank) -> const std::string& { return intake.ranks[rank].part.host; };
    // A rank that is not here may be on any host.
    const bool all_here = static_cast<int64_t>(members.size()) == intake.groups[g].size;
    const bool named = std::ranges::none_of(members, [&](uint32_t r) { return host(r).empty(); });
    const bool one = std::ranges::all_of(members, [&](uint32_t r) { return host(r) == host(members[0]); });
    out.push_back(place_number(kinds[g], !named     ? Link::kUnknown
                                         : !one     ? Link::kBetweenHosts
                                         : all_here ? Link::kInHost
                                                    : Link::kUnknown));
  }
  return out;
}

void add_collectives(const Intake& intake, const Waits& waits, Reduction& out) {
  const double link_gb_s = link_peak_gb_s(out.device);
  double imbalance = 0;
  int64_t imbalanced = 0;
  for (const auto& [key, kind] : waits.kinds) {
    const auto& [signature, bytes, ranks, place] = key;
    const Signature& s = intake.signatures[signature];
    CollectiveResult result{.kind = static_cast<GroupKind>(place / kLinkCount),
                            .op = s.op,
                            .dtype = s.dtype,
                            .ranks = ranks,
                            .bytes = bytes,
                            .count = static_cast<int64_t>(kind.transfer_ns.size()),
                            .wait_ns = median_length(kind.wait_ns),
                            .transfer_ns = median_length(kind.transfer_ns),
                            .link = static_cast<Link>(place % kLinkCount)};
    if (result.link == Link::kInHost) result.link_gb_s = link_gb_s;
    if (bytes > 0 && result.transfer_ns > 0) {
      result.algorithm_gb_s = static_cast<double>(bytes) / static_cast<double>(result.transfer_ns);
      result.bus_gb_s = result.algorithm_gb_s * bus_factor(s.op, ranks);
    }
    if (kind.imbalance_count > 0) {
      result.imbalance = kind.imbalance_sum / static_cast<double>(kind.imbalance_count);
      imbalance += kind.imbalance_sum;
      imbalanced += kind.imbalance_count;
    }
    out.collectives.push_back(result);
  }
  if (imbalanced > 0) out.expert_imbalance = imbalance / static_cast<double>(imbalanced);
  std::stable_sort(
      out.collectives.begin(), out.collectives.end(), [](const CollectiveResult& a, const CollectiveResult& b) {
        return a.count * a.ranks * (a.wait_ns + a.transfer_ns) > b.count * b.ranks * (b.wait_ns + b.transfer_ns);
      });
}

// Touches nothing but replays, each of which walks over all collectives: other things are worked out beside it.
Scaling find_scaling(const Intake& intake, const Waits& waits, const JobReplay& replay) {
  using Work = JobReplay::Work;
  const size_t ranks = intake.ranks.size();
  Scaling s;
  s.recorded_ns = waits.recorded_ns;
  auto ideal = std::async(std::launch::async, [&] { return replay.run(std::vector<Work>(ranks, Work::kMean)); });
  s.replayed_ns = replay.run(std::vector<Work>(ranks, Work::kRecorded));
  std::vector<uint32_t> worst(ranks);
  for (uint32_t r = 0; r < ranks; ++r) worst[r] = r;
  std::stable_sort(worst.begin(), worst.end(),
                   [&](uint32_t a, uint32_t b) { return waits.ranks[a].late_ns > waits.ranks[b].late_ns; });
  s.worst_ranks = static_cast<int64_t>((3 * ranks + 99) / 100);
  std::vector<Work> without(ranks, Work::kRecorded);
  for (int64_t i = 0; i < s.worst_ranks; ++i) without[worst[static_cast<size_t>(i)]] = Work::kMean;
  const double without_worst_ns = replay.run(without);
  s.ideal_ns = ideal.get();
  if (s.ideal_ns <= 0 || s.replayed_ns <= 0) return s;
  s.slowdown = s.replayed_ns / s.ideal_ns;
  const double lost = s.replayed_ns - s.ideal_ns;
  if (lost > 0) s.worst_share = std::clamp((s.replayed_ns - without_worst_ns) / lost, 0.0, 1.0);
  s.lost_gpu_seconds = std::max(0.0, lost) / 1e9 * static_cast<double>(ranks);
  s.lost_share = std::max(0.0, lost) / s.replayed_ns;
  return s;
}

void add_steps(const Intake& intake, const Waits& waits, Reduction& out) {
  std::map<int64_t, size_t> counts;
  size_t with_steps = 0;
  bool marked = true;
  for (const RankRows& rank : intake.ranks) {
    if (rank.part.steps.size() == 0) continue;
    ++with_steps;
    marked = marked && rank.part.steps_marked;
    for (const int64_t number : rank.part.steps.number) ++counts[number];
  }
  std::map<int64_t, StepResult> common;
  for (const auto& [number, count] : counts) {
    if (count == with_steps) common[number].number = number;
  }
  out.steps = static_cast<int64_t>(common.size());
  for (size_t r = 0; r < intake.ranks.size(); ++r) {
    const PartSteps& steps = intake.ranks[r].part.steps;
    for (size_t s = 0; s < steps.size(); ++s) {
      const auto at = common.find(steps.number[s]);
      if (at == common.end()) continue;
      StepResult& step = at->second;
      step.step_ns += (steps.end_ns[s] - steps.start_ns[s]) / static_cast<int64_t>(with_steps);
      step.wait_ns += waits.ranks[r].wait_by_step[s] / static_cast<int64_t>(with_steps);
      if (waits.ranks[r].late_by_step[s] <= step.late_ns) continue;
      step.late_ns = waits.ranks[r].late_by_step[s];
      step.latest_rank = intake.ranks[r].part.rank;
    }
  }
  for (const auto& [number, step] : common) out.by_step.push_back(step);
  if (!marked || with_steps < 2) return;
  const auto partly = static_cast<int64_t>(counts.size()) - out.steps;
  if (partly > 0) {
    out.notes.push_back("ranks recorded different steps: " + std::to_string(out.steps) + " are in all traces, " +
                        std::to_string(partly) + " only in some; let all ranks record the same steps");
  }
}

void add_notes(const Intake& intake, Reduction& out) {
  if (out.ranks < out.world_size) {
    out.notes.push_back(
        std::to_string(out.ranks) + " of " + std::to_string(out.world_size) +
        " ranks are here: waits are at least as long as shown, since a missing rank may have been the last");
  }
  if (out.ranks == 1) {
    out.notes.emplace_back(
        "with one rank, waiting cannot be separated from data transfer: give the traces of the other ranks of the same "
        "run");
  }
  size_t unknown = 0;
  size_t inconsistent = 0;
  for (const DomainClock& clock : out.clocks.domains) {
    unknown += clock.known ? 0 : 1;
    inconsistent += clock.consistent ? 0 : 1;
  }
  if (unknown > 0 && out.ranks > 1) {
    out.notes.push_back(
        std::to_string(unknown) + " of " + std::to_string(out.clocks.domains.size()) +
        " clocks share no matched collective with the others: their ranks are not on the common time axis");
  }
  if (inconsistent > 0) {
    out.notes.push_back(std::to_string(inconsistent) + (inconsistent == 1 ? " clock jumped" : " clocks jumped") +
                        " during the recording, or does not run evenly: its error is at least what is shown");
  }
  if (!out.hosts_known && out.ranks > 1) {
    out.notes.emplace_back(
        "the traces do not name their hosts: every rank is treated as a machine of its own; firelane ranks "
        "--ranks-per-host N says how many share one");
  }
  if (!out.first_mismatch.empty()) out.notes.push_back("mismatched collectives: " + out.first_mismatch);
  std::map<std::string, int64_t> losses;
  for (const RankRows& rank : intake.ranks) {
    for (const auto& [name, count] : rank.part.losses) ++losses[name];
  }
  for (const auto& [name, count] : losses) {
    out.notes.push_back("the traces of " + std::to_string(count) + (count == 1 ? " rank" : " ranks") + " lost data (" +
                        name + "); firelane info TRACE says how much");
  }
}

}  // namespace

std::string_view name_of(Cause cause) {
  constexpr std::string_view kNames[] = {
      "unknown",           "more work",       "slower kernels", "input",  "garbage collection",
      "memory allocation", "synchronization", "host",           "copies", "checkpoint"};
  return kNames[static_cast<size_t>(cause)];
}

std::string_view name_of(Link link) {
  return link == Link::kInHost ? "in host" : link == Link::kBetweenHosts ? "between hosts" : "unknown";
}

Result<std::shared_ptr<const StudiedJob>> study_job(std::shared_ptr<Intake> intake, std::span<const FlightLog> dumps) {
  auto job = std::make_shared<StudiedJob>(std::move(intake));
  FL_TRY_VOID(job->study(dumps));
  return std::shared_ptr<const StudiedJob>(std::move(job));
}

Result<void> StudiedJob::study(std::span<const FlightLog> dumps) {
  intake.finish();
  Reduction& out = result;
  FL_TRY_VOID(check_parts(intake, out));
  out.ranks = static_cast<int64_t>(intake.ranks.size());
  out.hosts_known =
      std::all_of(intake.ranks.begin(), intake.ranks.end(), [](const RankRows& r) { return !r.part.host.empty(); });
  std::set<std::string> hosts;
  for (const RankRows& rank : intake.ranks) hosts.insert(rank.part.host);
  out.hosts = out.hosts_known ? static_cast<int64_t>(hosts.size()) : 0;
  kinds = group_kinds(intake, out.world_size);
  matches = match_collectives(intake);
  for (JobGroup& group : intake.groups) group.rows = {};
  out.clocks = fit_clocks(intake, matches);
  out.clock_names = intake.domains;
  out.first_mismatch = matches.first_mismatch;
  waits = find_waits(intake, matches, out.clocks, place_numbers(intake, kinds), replay);
  auto found_scaling = std::async(std::launch::async, [&] { return find_scaling(intake, waits, replay); });
  add_ranks(intake, matches, waits, out);
  add_groups(intake, matches, waits, kinds, out);
  add_collectives(intake, waits, out);
  path = critical_path(replay, waits);
  out.pipeline = find_pipeline(replay, waits);
  out.scaling = found_scaling.get();
  out.stragglers = find_stragglers(intake, waits, replay, out.scaling);
  for (Straggler& each : out.stragglers) {
    for (size_t s = 0; s < out.pipeline.stages.size(); ++s) {
      if (std::ranges::find(out.pipeline.stages[s].ranks, each.rank) != out.pipeline.stages[s].ranks.end()) {
        each.stage = static_cast<int64_t>(s);
      }
    }
  }
  add_what_ifs(replay, waits, out);
  add_path(replay, kinds, path, out);
  add_steps(intake, waits, out);
  add_notes(intake, out);
  if (!dumps.empty()) join_flight(intake, dumps, out);
  return {};
}

int64_t StudiedJob::in_trace(uint32_t rank, int64_t axis_ns) const {
  const DomainClock& clock = result.clocks.domains[intake.ranks[rank].domain];
  int64_t row_ns = axis_ns;
  constexpr int kTimes = 3;  // drift is a few parts in 100,000: each time the error shrinks by that
  for (int i = 0; i < kTimes; ++i) row_ns = axis_ns + static_cast<int64_t>(clock.ahead_ns(row_ns));
  return row_ns - row_shift_ns(rank);
}

Result<Reduction> reduce(Intake& intake) {
  StudiedJob job(std::shared_ptr<Intake>(std::shared_ptr<void>(), &intake));  // owns nothing
  FL_TRY_VOID(job.study());
  return std::move(job.result);
}

}  // namespace firelane::ranks
