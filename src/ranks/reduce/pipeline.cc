#include "ranks/reduce/pipeline.h"

#include <algorithm>
#include <map>
#include <set>

namespace firelane::ranks {

namespace {

struct Links {
  std::map<int64_t, std::set<int64_t>> peers;      // either direction
  std::set<std::pair<int64_t, int64_t>> directed;  // sender, receiver
};

Links find_links(const Intake& intake) {
  Links out;
  for (const JobGroup& group : intake.groups) {
    if (!group.point_to_point || group.ranks.size() != 2 || group.members.empty()) continue;
    const int64_t receiver = group.ranks[0] == group.sender ? group.ranks[1] : group.ranks[0];
    out.directed.emplace(group.sender, receiver);
    out.peers[group.sender].insert(receiver);
    out.peers[receiver].insert(group.sender);
  }
  return out;
}

// The ranks that are connected with `first`, ascending.
std::vector<int64_t> chain_from(int64_t first, const Links& links, std::set<int64_t>& seen) {
  std::vector<int64_t> chain;
  std::vector<int64_t> open = {first};
  while (!open.empty()) {
    const int64_t rank = open.back();
    open.pop_back();
    if (!seen.insert(rank).second) continue;
    chain.push_back(rank);
    for (const int64_t peer : links.peers.at(rank)) open.push_back(peer);
  }
  std::sort(chain.begin(), chain.end());
  return chain;
}

enum class Shape : uint8_t { kNone, kLine, kLoop };  // a loop: the last stage hands over to the first (interleaved)

Shape shape_of(const std::vector<int64_t>& chain, const Links& links) {
  const auto linked = [&](int64_t a, int64_t b) { return links.directed.contains({a, b}); };
  bool both_ways = chain.size() > 1;
  bool loops = false;
  for (size_t i = 0; i < chain.size(); ++i) {
    for (const int64_t peer : links.peers.at(chain[i])) {
      const auto at = static_cast<size_t>(std::lower_bound(chain.begin(), chain.end(), peer) - chain.begin());
      const size_t distance = at > i ? at - i : i - at;
      if (distance == 1) continue;
      if (distance + 1 != chain.size()) return Shape::kNone;
      loops = true;
    }
    if (i + 1 < chain.size()) {
      if (!linked(chain[i], chain[i + 1]) && !linked(chain[i + 1], chain[i])) return Shape::kNone;
      both_ways = both_ways && linked(chain[i], chain[i + 1]) && linked(chain[i + 1], chain[i]);
    }
  }
  if (chain.size() < 2 || (loops && !both_ways)) return Shape::kNone;  // a ring: ring attention, not a pipeline
  return loops ? Shape::kLoop : Shape::kLine;
}

struct StepOps {
  int64_t forward = 0;
  int64_t forward_before_backward = 0;
  int64_t backward = 0;
};

// What a rank of a stage exchanges with its neighbours in one step. The first stage gets nothing forward: it sends.
StepOps ops_of(const RankRows& rank, const Intake& intake, size_t stage, const std::vector<int64_t>& chain,
               int32_t step) {
  StepOps out;
  const int64_t own = rank.part.rank;
  const int64_t before = stage > 0 ? chain[stage - 1] : -1;
  const int64_t after = stage + 1 < chain.size() ? chain[stage + 1] : -1;
  for (const CollectiveRow& row : rank.rows) {
    if (row.step != step || row.group == UINT32_MAX || !intake.groups[row.group].point_to_point) continue;
    const JobGroup& pair = intake.groups[row.group];
    const int64_t peer = pair.ranks[0] == own ? pair.ranks[1] : pair.ranks[0];
    const bool sends = pair.sender == own;
    const bool forward = stage > 0 ? !sends && peer == before : sends && peer == after;
    const bool backward = after >= 0 ? !sends && peer == after : sends && peer == before;
    out.forward += forward ? 1 : 0;
    out.forward_before_backward += forward && out.backward == 0 ? 1 : 0;
    out.backward += backward ? 1 : 0;
  }
  return out;
}

void name_schedule(const StepOps& ops, size_t stage, Shape shape, Pipeline& out) {
  const auto stages = static_cast<int64_t>(out.stages.size());
  if (ops.forward == 0) return;
  out.micro_batches = ops.forward;
  if (shape == Shape::kLoop) {
    out.schedule = "interleaved 1F1B";
    out.micro_batches = 0;  // each goes through a stage several times
    return;
  }
  if (ops.backward == 0) {
    out.schedule = "forward only";
  } else if (ops.forward == 1 && ops.backward == 1) {
    out.schedule = "one micro-batch";  // stages take turns: every schedule is the same
  } else if (ops.forward_before_backward == ops.forward) {
    // As many as fill the pipeline: both schedules are the same then.
    out.schedule = ops.forward <= stages - static_cast<int64_t>(stage) ? "all forward, then all backward" : "GPipe";
  } else if (ops.forward_before_backward <= stages - static_cast<int64_t>(stage) + 1) {
    out.schedule = "1F1B";
  } else {
    return;
  }
  out.least_percent = 100.0 * static_cast<double>(stages - 1) / static_cast<double>(ops.forward + stages - 1);
}

// By group: whether stages wait for each other in it. Sends do not count: the receiver decides when it is ready. A step
// that ends with a collective of all stages drains there, others drain into the receives of the next step.
std::vector<bool> joins_stages(const Intake& intake, const std::vector<int32_t>& stages) {
  std::vector<bool> out;
  for (const JobGroup& group : intake.groups) {
    std::set<int32_t> found;
    for (const uint32_t r : group.members) found.insert(stages[r]);
    out.push_back(group.point_to_point || found.size() > 1);
  }
  return out;
}

// Work of a rank before its collectives, and its waiting for other stages, over the judged steps.
void add_times(const JobReplay& replay, const Waits& waits, const std::vector<bool>& joins, uint32_t r,
               PipelineStage& stage, int64_t& step_ns) {
  const RankRows& rank = replay.intake.ranks[r];
  int64_t steps = 0;
  int64_t length = 0;
  for (size_t s = 0; s < rank.part.steps.size(); ++s) {
    if (!is_judged(rank.part.steps, s)) continue;
    ++steps;
    length += rank.part.steps.end_ns[s] - rank.part.steps.start_ns[s];
  }
  if (steps == 0) return;
  int64_t work = 0;
  int64_t bubble = 0;
  for (uint32_t i = 0; i < rank.rows.size(); ++i) {
    const CollectiveRow& row = rank.rows[i];
    if (row.step < 0 || !is_judged(rank.part.steps, static_cast<size_t>(row.step))) continue;
    work += row.gap_ns + row.overlapped_ns;
    if (row.group == UINT32_MAX || !joins[row.group]) continue;
    if (replay.intake.groups[row.group].sender == rank.part.rank) continue;
    const uint32_t instance = replay.matches.instance_of_row[r][i];
    if (instance == kNoInstance || replay.transfer_ns[instance] < 0) continue;
    const int64_t wait = waits.meetings[instance].last_arrival_ns - replay.clocks.aligned(rank.domain, row.start_ns);
    bubble += std::max<int64_t>(0, std::min<int64_t>(wait - row.overlapped_ns, row.end_ns - row.start_ns));
  }
  stage.work_ns += work / steps;
  stage.bubble_ns += bubble / steps;
  step_ns += length / steps;
}

}  // namespace

std::vector<int32_t> stage_of_rank(const Intake& intake, const Pipeline& pipeline) {
  std::map<int64_t, int32_t> stages;
  for (size_t s = 0; s < pipeline.stages.size(); ++s) {
    for (const int64_t rank : pipeline.stages[s].ranks) stages[rank] = static_cast<int32_t>(s);
  }
  std::vector<int32_t> out;
  for (const RankRows& rank : intake.ranks) {
    const auto at = stages.find(rank.part.rank);
    out.push_back(at == stages.end() ? -1 : at->second);
  }
  return out;
}

Pipeline find_pipeline(const JobReplay& replay, const Waits& waits) {
  Pipeline out;
  const Intake& intake = replay.intake;
  const Links links = find_links(intake);
  std::set<int64_t> seen;
  Shape shape = Shape::kNone;
  std::vector<std::vector<int64_t>> chains;
  for (const auto& [rank, peers] : links.peers) {
    if (seen.contains(rank)) continue;
    chains.push_back(chain_from(rank, links, seen));
    const Shape own = shape_of(chains.back(), links);
    if (own == Shape::kNone || (shape != Shape::kNone && own != shape) || chains.back().size() != chains[0].size()) {
      return {};
    }
    shape = own;
  }
  if (chains.empty()) return out;
  out.stages.resize(chains[0].size());
  for (const std::vector<int64_t>& chain : chains) {
    for (size_t s = 0; s < chain.size(); ++s) out.stages[s].ranks.push_back(chain[s]);
  }
  const std::vector<int32_t> stages = stage_of_rank(intake, out);
  const std::vector<bool> joins = joins_stages(intake, stages);
  std::vector<int64_t> present(out.stages.size(), 0);
  std::vector<int64_t> step_ns(out.stages.size(), 0);
  for (uint32_t r = 0; r < intake.ranks.size(); ++r) {
    if (stages[r] < 0) continue;
    const auto stage = static_cast<size_t>(stages[r]);
    ++present[stage];
    add_times(replay, waits, joins, r, out.stages[stage], step_ns[stage]);
  }
  double share = 0;
  int64_t counted = 0;
  for (size_t s = 0; s < out.stages.size(); ++s) {
    if (present[s] == 0 || step_ns[s] == 0) continue;
    out.stages[s].work_ns /= present[s];
    out.stages[s].bubble_ns /= present[s];
    share += static_cast<double>(out.stages[s].bubble_ns) / static_cast<double>(step_ns[s] / present[s]);
    ++counted;
  }
  if (counted > 0) out.bubble_percent = 100 * share / static_cast<double>(counted);
  // The first stage that is here with a middle step says how it goes.
  for (uint32_t r = 0; r < intake.ranks.size() && out.schedule.empty(); ++r) {
    if (stages[r] < 0) continue;
    const auto stage = static_cast<size_t>(stages[r]);
    const auto chain = std::find_if(chains.begin(), chains.end(), [&](const std::vector<int64_t>& each) {
      return each[stage] == intake.ranks[r].part.rank;
    });
    const auto middle = static_cast<int32_t>(intake.ranks[r].part.steps.size() / 2);
    if (chain != chains.end()) name_schedule(ops_of(intake.ranks[r], intake, stage, *chain, middle), stage, shape, out);
  }
  return out;
}

}  // namespace firelane::ranks
