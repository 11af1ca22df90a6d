#include "ranks/reduce/replay.h"

#include <algorithm>
#include <map>

namespace firelane::ranks {

std::vector<double> replay_graph(std::span<const ReplayOp> ops, std::span<const double> durations) {
  const size_t count = ops.size();
  std::vector<double> start(count, 0);
  std::vector<double> end(count, -1);
  std::vector<uint32_t> waits(count, 0);
  std::vector<std::vector<uint32_t>> then(count);
  std::vector<std::vector<uint32_t>> together;
  for (uint32_t i = 0; i < count; ++i) {
    waits[i] = static_cast<uint32_t>(ops[i].after.size());
    for (const uint32_t before : ops[i].after) then[before].push_back(i);
    if (ops[i].sync == kNoSync) continue;
    if (together.size() <= ops[i].sync) together.resize(ops[i].sync + 1);
    together[ops[i].sync].push_back(i);
  }
  std::vector<uint32_t> missing(together.size(), 0);
  std::vector<double> last_start(together.size(), 0);
  for (size_t s = 0; s < together.size(); ++s) missing[s] = static_cast<uint32_t>(together[s].size());
  std::vector<uint32_t> ready;
  for (uint32_t i = 0; i < count; ++i) {
    if (waits[i] == 0) ready.push_back(i);
  }
  const auto finish = [&](uint32_t i, double at) {
    end[i] = at;
    for (const uint32_t next : then[i]) {
      start[next] = std::max(start[next], at);
      if (--waits[next] == 0) ready.push_back(next);
    }
  };
  while (!ready.empty()) {
    const uint32_t i = ready.back();
    ready.pop_back();
    const uint32_t sync = ops[i].sync;
    if (sync == kNoSync) {
      finish(i, start[i] + durations[i]);
      continue;
    }
    last_start[sync] = std::max(last_start[sync], start[i]);
    if (--missing[sync] > 0) continue;
    for (const uint32_t each : together[sync]) finish(each, last_start[sync] + durations[each]);
  }
  return end;
}

std::vector<double> ideal_durations(std::span<const ReplayOp> ops, std::span<const double> durations) {
  std::map<uint32_t, std::vector<double>> kinds;
  std::map<uint32_t, bool> communicates;
  for (size_t i = 0; i < ops.size(); ++i) {
    kinds[ops[i].kind].push_back(durations[i]);
    communicates[ops[i].kind] = ops[i].communicates;
  }
  std::map<uint32_t, double> ideal;
  for (auto& [kind, values] : kinds) {
    double sum = 0;
    for (const double v : values) sum += v;
    ideal[kind] = sum / static_cast<double>(values.size());
    if (!communicates[kind]) continue;
    std::sort(values.begin(), values.end());
    const size_t half = values.size() / 2;
    ideal[kind] = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  }
  std::vector<double> out(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) out[i] = ideal[ops[i].kind];
  return out;
}

MemberWork work_before(const std::vector<CollectiveRow>& rows, uint32_t row) {
  if (row == 0) return {rows[row].gap_ns, false};
  const CollectiveRow& before = rows[row - 1];
  const int64_t length = before.end_ns - before.start_ns;
  // Computing during a third of the collective before: it did not wait for its result.
  if (before.overlapped_ns * 3 < length || before.overlapped_ns == 0) return {rows[row].gap_ns, false};
  return {rows[row].gap_ns + before.overlapped_ns, true};
}

// Instances are played in the order of their times and lie in that of their groups: asks for those that follow soon.
void JobReplay::fetch_ahead(size_t place) const {
  constexpr size_t kNear = 6;
  constexpr size_t kFar = 16;
  if (place + kFar >= order.size()) return;
  const uint32_t far = order[place + kFar];
  __builtin_prefetch(&matches.instances[far]);
  __builtin_prefetch(&transfer_ns[far]);
  __builtin_prefetch(&mean_work_ns[far]);
  const Instance& near = matches.instances[order[place + kNear]];
  __builtin_prefetch(&matches.members[near.begin]);
  __builtin_prefetch(&work[near.begin]);
  __builtin_prefetch(&matches.members[near.end - 1]);
  __builtin_prefetch(&work[near.end - 1]);
}

double JobReplay::run(const Change& change) const {
  struct State {
    double start = 0;
    double end = 0;
    uint32_t next = 0;  // first row that has not been played
    bool begun = false;
  };
  constexpr double kNever = -1e300;
  std::vector<State> states(intake.ranks.size());
  double first_end = 0;
  size_t begun = 0;
  double last_end = 0;
  const auto after = [&](const State& state, const Member& member, const MemberWork& before, int64_t work_ns) {
    double length = static_cast<double>(work_ns);
    if (change.overlap && !before.from_arrival && member.row > 0) {
      length += static_cast<double>(intake.ranks[member.rank].rows[member.row - 1].overlapped_ns);
    }
    if (!change.work_factor.empty()) length *= change.work_factor[member.rank];
    return before.from_arrival || change.overlap ? std::max(state.end, state.start + length) : state.end + length;
  };
  const std::span<const int64_t> transfers = change.transfer_ns.empty() ? transfer_ns : change.transfer_ns;
  for (size_t o = 0; o < std::min(order.size(), change.instances); ++o) {
    const uint32_t index = order[o];
    const Instance& instance = matches.instances[index];
    fetch_ahead(o);
    double last = kNever;
    bool enters = false;
    for (uint32_t i = instance.begin; i < instance.end; ++i) {
      const Member& member = matches.members[i];
      State& state = states[member.rank];
      for (; state.begun && state.next < member.row; ++state.next) {
        if (matches.instance_of_row[member.rank][state.next] != kNoInstance &&
            transfer_ns[matches.instance_of_row[member.rank][state.next]] >= 0) {
          continue;  // overlaps this one, and is played in its own turn
        }
        const std::vector<CollectiveRow>& rows = intake.ranks[member.rank].rows;
        const MemberWork alone = work_before(rows, state.next);
        state.start = after(state, {member.rank, state.next}, alone, alone.work_ns);
        state.end = state.start + static_cast<double>(rows[state.next].end_ns - rows[state.next].start_ns);
      }
      state.next = std::max(state.next, member.row + 1);
      if (!state.begun) {
        enters = true;
        continue;
      }
      const Work own = change.own.empty() ? Work::kRecorded : change.own[member.rank];
      const bool as_recorded = own == Work::kRecorded || mean_work_ns[index] < 0;
      state.start = after(state, member, work[i],
                          as_recorded          ? work[i].work_ns
                          : own == Work::kMean ? mean_work_ns[index]
                                               : median_work_ns[index]);
      last = std::max(last, state.start);
    }
    // A rank enters with its first collective, where the others wait for nobody who was not recorded before.
    for (uint32_t i = instance.begin; enters && last == kNever && i < instance.end; ++i) {
      const Member& member = matches.members[i];
      if (!states[member.rank].begun)
        last = static_cast<double>(
            clocks.aligned(intake.ranks[member.rank].domain, intake.ranks[member.rank].rows[member.row].start_ns));
    }
    const double end = last + static_cast<double>(transfers[index]);
    for (uint32_t i = instance.begin; i < instance.end; ++i) {
      State& state = states[matches.members[i].rank];
      if (!state.begun) state.start = last;
      begun += state.begun ? 0 : 1;
      state.begun = true;
      state.end = end;
    }
    if (enters && begun * 10 <= states.size() * 9 + 9) first_end = last_end = end;
    last_end = std::max(last_end, end);
  }
  return last_end - first_end;
}

}  // namespace firelane::ranks
