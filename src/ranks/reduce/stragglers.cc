#include "ranks/reduce/stragglers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace firelane::ranks {

namespace {

constexpr size_t kMostStragglers = 5;
constexpr size_t kMostTried = 8;
constexpr double kLeastGain = 0.01;

// The group in which a rank made others wait the most.
uint32_t main_group(const RankWaits& waits) {
  uint32_t group = UINT32_MAX;
  int64_t most = -1;
  for (const auto& [g, ns] : waits.late_by_group) {
    if (ns > most) {
      group = g;
      most = ns;
    }
  }
  return group;
}

// Lateness by the number of the step, the same on all ranks; without numbers, by its place.
int64_t late_in(const Intake& intake, const Waits& waits, uint32_t rank, int64_t key) {
  const PartSteps& steps = intake.ranks[rank].part.steps;
  const auto at = std::lower_bound(steps.number.begin(), steps.number.end(), key) - steps.number.begin();
  const auto index = static_cast<size_t>(at);
  return index < steps.size() && steps.number[index] == key ? waits.ranks[rank].late_by_step[index] : 0;
}

struct Evidence {
  int64_t steps = 0;
  int64_t won = 0;  // it was the latest of its group
  double probability = 1;
  bool steady = false;   // by about as much in each step
  bool outlier = false;  // by how much, whatever the number of steps
};

// Later than the latest of the others in every step, by much more than that varies: few steps prove it then.
bool is_steady(const Intake& intake, const Waits& waits, uint32_t rank, const std::vector<uint32_t>& peers) {
  const PartSteps& steps = intake.ranks[rank].part.steps;
  std::vector<double> ahead;
  for (size_t s = 0; s < steps.size(); ++s) {
    if (!is_judged(steps, s)) continue;
    int64_t others = 0;
    for (const uint32_t peer : peers) {
      if (peer != rank) others = std::max(others, late_in(intake, waits, peer, steps.number[s]));
    }
    ahead.push_back(static_cast<double>(late_in(intake, waits, rank, steps.number[s]) - others));
  }
  constexpr size_t kLeastSteps = 4;
  if (ahead.size() < kLeastSteps) return false;
  double mean = 0;
  for (const double each : ahead) mean += each / static_cast<double>(ahead.size());
  double square = 0;
  for (const double each : ahead) square += (each - mean) * (each - mean);
  const double error = std::sqrt(square / static_cast<double>(ahead.size() - 1) / static_cast<double>(ahead.size()));
  constexpr double kErrors = 8;
  return mean > kErrors * error && mean > 0;
}

Evidence evidence_for(const Intake& intake, const Waits& waits, uint32_t rank, const std::vector<uint32_t>& peers) {
  Evidence out;
  const PartSteps& steps = intake.ranks[rank].part.steps;
  for (size_t s = 0; s < steps.size(); ++s) {
    if (!is_judged(steps, s)) continue;
    ++out.steps;
    const int64_t own = late_in(intake, waits, rank, steps.number[s]);
    const bool latest = own > 0 && std::all_of(peers.begin(), peers.end(), [&](uint32_t peer) {
                          return peer == rank || late_in(intake, waits, peer, steps.number[s]) < own;
                        });
    out.won += latest ? 1 : 0;
  }
  out.probability = binomial_tail(out.won, out.steps, 1.0 / static_cast<double>(std::max<size_t>(2, peers.size())));
  out.steady = is_steady(intake, waits, rank, peers);
  const auto own = static_cast<double>(waits.ranks[rank].late_ns);
  double most_other = 0;
  for (const uint32_t peer : peers) {
    if (peer != rank) most_other = std::max(most_other, static_cast<double>(waits.ranks[peer].late_ns));
  }
  // Rare but large: a pause in some steps only, far beyond what makes others late.
  std::vector<int64_t> usual;
  for (size_t s = 0; s < steps.size(); ++s) {
    int64_t most = 0;
    for (const uint32_t peer : peers) {
      if (peer != rank) most = std::max(most, late_in(intake, waits, peer, steps.number[s]));
    }
    usual.push_back(most);
  }
  int64_t large = 0;
  if (!usual.empty()) {
    const auto middle = usual.begin() + static_cast<std::ptrdiff_t>(usual.size() / 2);
    std::nth_element(usual.begin(), middle, usual.end());
    for (size_t s = 0; s < steps.size(); ++s) {
      large += late_in(intake, waits, rank, steps.number[s]) > 5 * *middle ? 1 : 0;
    }
  }
  const bool many = peers.size() >= 4;
  out.outlier = (many && own > 3 * most_other) || (large >= 2 && own > (many ? 1.5 : 3) * most_other);
  return out;
}

// Steps with four fifths of a rank's lateness, if they are at most a third of its steps: a pause now and then.
std::vector<int64_t> few_steps(const PartSteps& steps, const std::vector<int64_t>& late_by_step) {
  std::vector<std::pair<int64_t, int64_t>> late;  // how late, number
  int64_t all = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    late.emplace_back(late_by_step[s], steps.number[s]);
    all += late_by_step[s];
  }
  std::ranges::sort(late, std::greater<>{});
  std::vector<int64_t> out;
  int64_t sum = 0;
  for (size_t i = 0; i < late.size() && 5 * sum < 4 * all; ++i) {
    sum += late[i].first;
    out.push_back(late[i].second);
  }
  if (3 * out.size() > steps.size()) return {};
  std::ranges::sort(out);
  return out;
}

}  // namespace

double binomial_tail(int64_t hits, int64_t tries, double share) {
  if (hits <= 0 || tries <= 0) return 1;
  double sum = 0;
  for (int64_t k = hits; k <= tries; ++k) {
    const double log_ways = std::lgamma(static_cast<double>(tries) + 1) - std::lgamma(static_cast<double>(k) + 1) -
                            std::lgamma(static_cast<double>(tries - k) + 1);
    sum += std::exp(log_ways + static_cast<double>(k) * std::log(share) +
                    static_cast<double>(tries - k) * std::log1p(-share));
  }
  return std::min(1.0, sum);
}

std::vector<Straggler> find_stragglers(const Intake& intake, const Waits& waits, const JobReplay& replay,
                                       const Scaling& scaling) {
  std::vector<uint32_t> candidates;
  for (uint32_t r = 0; r < waits.ranks.size(); ++r) {
    if (static_cast<double>(waits.ranks[r].late_ns) > kLeastGain * scaling.replayed_ns) candidates.push_back(r);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](uint32_t a, uint32_t b) { return waits.ranks[a].late_ns > waits.ranks[b].late_ns; });
  if (candidates.size() > kMostTried) candidates.resize(kMostTried);

  std::vector<Straggler> out;
  using Work = JobReplay::Work;
  std::vector<std::string> hosts_said;
  for (const uint32_t r : candidates) {
    const uint32_t group = main_group(waits.ranks[r]);
    if (group == UINT32_MAX) continue;
    const std::vector<uint32_t>& peers = intake.groups[group].members;
    const std::string& host = intake.ranks[r].part.host;
    if (!host.empty() && std::find(hosts_said.begin(), hosts_said.end(), host) != hosts_said.end()) continue;
    const Evidence evidence = evidence_for(intake, waits, r, peers);
    // A rank among many is tried many times: chance must be rarer.
    const bool by_chance = evidence.probability * static_cast<double>(peers.size()) > 0.005;
    if (by_chance && !evidence.outlier && !evidence.steady) continue;
    std::vector<Work> own(intake.ranks.size(), Work::kRecorded);
    own[r] = Work::kMedian;
    double gain = scaling.replayed_ns - replay.run(own);
    // All ranks of a slow machine are late; mending one of them leaves the others.
    size_t late_on_host = 0;
    size_t on_host = 0;
    std::vector<Work> without_host(intake.ranks.size(), Work::kRecorded);
    for (uint32_t other = 0; other < intake.ranks.size() && !host.empty(); ++other) {
      if (intake.ranks[other].part.host != host) continue;
      ++on_host;
      without_host[other] = Work::kMedian;
      late_on_host += waits.ranks[other].late_ns * 2 > waits.ranks[r].late_ns ? 1 : 0;
    }
    bool whole_host = false;
    if (on_host > 1 && late_on_host * 2 > on_host && on_host < intake.ranks.size()) {
      const double host_gain = scaling.replayed_ns - replay.run(without_host);
      whole_host = host_gain > 1.5 * gain;
      if (whole_host) {
        gain = host_gain;
        hosts_said.push_back(host);
      }
    }
    if (gain < kLeastGain * scaling.replayed_ns) continue;
    const double steps = static_cast<double>(std::max<int64_t>(1, evidence.steps));
    const CauseFound found = find_cause(intake, r, peers);
    out.push_back({.rank = intake.ranks[r].part.rank,
                   .host = host,
                   .whole_host = whole_host,
                   .steps_late = evidence.won,
                   .steps = evidence.steps,
                   .late_ns = static_cast<int64_t>(static_cast<double>(waits.ranks[r].late_ns) / steps),
                   .few_steps = few_steps(intake.ranks[r].part.steps, waits.ranks[r].late_by_step),
                   .gain_ns = static_cast<int64_t>(gain / steps),
                   .gain_percent = 100 * gain / scaling.replayed_ns,
                   .cause = found.cause,
                   .why = found.why,
                   .kernel = found.kernel,
                   .first_late_ns = waits.ranks[r].latest_start_ns,
                   .waiting_ranks = static_cast<int64_t>(peers.size()) - 1,
                   .probability = evidence.probability});
    if (out.size() == kMostStragglers) break;
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Straggler& a, const Straggler& b) { return a.gain_ns > b.gain_ns; });
  return out;
}

}  // namespace firelane::ranks
