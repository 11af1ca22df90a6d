#include "analyze/verdict/round_data.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "analyze/common/intervals.h"

namespace firelane::analyze {

// Ops that no other op called, in order. One is chained if an input was made in an earlier round, or by a chained one.
RoundsData::Round RoundsData::look_at(Row first, Row end, int64_t loop_start_ns) const {
  const HostSlices& host = model_.host_slices;
  const int64_t round_start_ns = host.start_ns[first];
  Round round;
  std::vector<Interval> chained;  // ops, in order of time
  int64_t until = INT64_MIN;
  for (Row row = first; row < end; ++row) {
    if (host.kind[row] != HostKind::kOp || host.start_ns[row] < until) continue;
    until = host.end_ns(row);
    bool goes_on = false;
    bool takes_old = false;
    for (const TensorFlow::Input& input : flow_.inputs_of(row)) {
      if (input.made_ns == kNoNumber || input.made_ns < loop_start_ns) {
        round.old.push_back(input.storage);
        takes_old = true;
      } else if (input.made_ns < round_start_ns) {
        goes_on = true;
      } else {
        const auto after = std::partition_point(chained.begin(), chained.end(),
                                                [&](const Interval& op) { return op.start_ns <= input.made_ns; });
        goes_on = goes_on || (after != chained.begin() && input.made_ns < std::prev(after)->end_ns);
      }
    }
    round.ns += host.duration_ns[row];
    round.begins_alone = round.begins_alone && !(takes_old && goes_on);
    round.ends_chained = goes_on;
    if (!goes_on) continue;
    ++round.chained;
    round.chained_ns += host.duration_ns[row];
    chained.push_back({host.start_ns[row], host.end_ns(row)});
  }
  std::sort(round.old.begin(), round.old.end());
  round.old.erase(std::unique(round.old.begin(), round.old.end()), round.old.end());
  return round;
}

RoundData RoundsData::of(const std::vector<Row>& starts, Row last) const {
  constexpr size_t kLookedAt = 6;
  if (!flow_.is_known() || starts.size() < 3) return RoundData::kUnknown;
  const int64_t loop_start_ns = model_.host_slices.start_ns[starts[0]];
  int64_t ns = 0;
  int64_t chained_ns = 0;
  bool own_weights = true;
  bool own_items = true;
  bool only_sums = true;
  bool same_items = true;
  Round before = look_at(starts[0], starts[1], loop_start_ns);
  for (size_t i = 1; i < std::min(kLookedAt, starts.size()); ++i) {
    Round round = look_at(starts[i], i + 1 < starts.size() ? starts[i + 1] : last + 1, loop_start_ns);
    ns += round.ns;
    chained_ns += round.chained_ns;
    std::vector<uint64_t> shared;
    std::set_intersection(before.old.begin(), before.old.end(), round.old.begin(), round.old.end(),
                          std::back_inserter(shared));
    own_items = own_items && shared.size() < round.old.size() && round.begins_alone;
    same_items = same_items && round.chained == 0 && !round.old.empty() && round.old == before.old;
    only_sums = only_sums && (round.chained == 0 || (round.chained == 1 && round.ends_chained));
    own_weights = own_weights && !round.old.empty() && 2 * shared.size() < round.old.size();
    before = std::move(round);
  }
  if (same_items) return RoundData::kSame;
  if (own_items && (only_sums || 2 * chained_ns < ns)) return RoundData::kItems;
  if (2 * chained_ns < ns) return RoundData::kApart;
  return own_weights ? RoundData::kLayers : RoundData::kChained;
}

}  // namespace firelane::analyze
