#include "ranks/reduce/flight_join.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace firelane::ranks {

namespace {

// Rows of a rank with a sequence number: group, number, operation. Names of groups may differ between ranks, but not
// between the trace and the dump of one rank.
using Key = std::tuple<std::string, int64_t, Collective>;

std::set<Key> keys_of(const Intake& intake, const RankRows& rank) {
  std::set<Key> out;
  for (const CollectiveRow& row : rank.rows) {
    if (row.sequence < 0 || row.group == UINT32_MAX) continue;
    const JobGroup& group = intake.groups[row.group];
    out.emplace(group.description.empty() ? group.name : group.description, row.sequence,
                intake.signatures[row.signature].op);
  }
  return out;
}

// What the recorded steps say about a rank that holds up others now.
std::string history_of(int64_t rank, const Reduction& job) {
  const std::string name = "rank " + std::to_string(rank);
  for (const Straggler& s : job.stragglers) {
    if (s.rank != rank) continue;
    return name + " already held up all others in the recorded steps" + (s.why.empty() ? "" : ": " + s.why);
  }
  for (const RankResult& each : job.by_rank) {
    if (each.rank == rank) return name + " was not late in the recorded steps: what stops it came later";
  }
  return "there is no trace of " + name;
}

}  // namespace

void join_flight(const Intake& intake, std::span<const FlightLog> logs, Reduction& job) {
  FlightJoin& out = job.flight;
  out.hangs = flight::find_hangs(logs);
  std::map<int64_t, const RankRows*> traces;
  for (const RankRows& rank : intake.ranks) traces[rank.part.rank] = &rank;
  std::map<std::tuple<std::string, std::string, std::string>, int64_t> places;
  for (const FlightLog& log : logs) {
    const auto trace = traces.find(log.rank);
    const std::set<Key> keys = trace == traces.end() ? std::set<Key>() : keys_of(intake, *trace->second);
    out.ranks_with_both += trace == traces.end() ? 0 : 1;
    for (const FlightEntry& entry : log.entries) {
      const std::string collective(log.text(entry.collective));
      const std::string_view description = log.text(entry.group_description);
      const std::string group(description.empty() || description == "undefined" ? log.text(entry.group) : description);
      if (entry.place != kNoString) ++places[{collective, group, std::string(log.text(entry.place))}];
      if (entry.is_p2p || entry.collective_sequence == kNoNumber) continue;
      out.in_both += keys.contains({group, entry.collective_sequence, collective_named(collective)}) ? 1 : 0;
    }
  }
  for (const auto& [key, calls] : places) {
    const auto& [collective, group, place] = key;
    out.places.push_back({collective, group, place, calls});
  }
  std::stable_sort(out.places.begin(), out.places.end(),
                   [](const CallPlace& a, const CallPlace& b) { return a.calls > b.calls; });
  for (const flight::Culprit& culprit : out.hangs.culprits) out.history.push_back(history_of(culprit.rank, job));
}

}  // namespace firelane::ranks
