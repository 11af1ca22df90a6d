#include "ranks/seen/window.h"

#include <algorithm>

namespace firelane::ranks {

namespace {

bool is_on_axis(const StudiedJob& job, uint32_t rank) {
  return job.result.clocks.domains[job.intake.ranks[rank].domain].known;
}

bool is_timed(const StudiedJob& job, uint32_t instance) {
  return instance != kNoInstance && job.replay.transfer_ns[instance] >= 0;
}

// Rows are sorted by start; a long one before the window may reach into it.
size_t first_row_in(const StudiedJob& job, uint32_t rank, int64_t from_ns) {
  const std::vector<CollectiveRow>& rows = job.intake.ranks[rank].rows;
  auto at = static_cast<size_t>(
      std::partition_point(rows.begin(), rows.end(),
                           [&](const CollectiveRow& row) { return job.aligned(rank, row.start_ns) < from_ns; }) -
      rows.begin());
  constexpr size_t kMostOverlapping = 64;
  size_t first = at;
  for (size_t back = 0; back < kMostOverlapping && at > 0; ++back) {
    --at;
    if (job.aligned(rank, rows[at].end_ns) > from_ns) first = at;
  }
  return first;
}

LanePiece piece_of(const StudiedJob& job, uint32_t rank, uint32_t row) {
  const CollectiveRow& each = job.intake.ranks[rank].rows[row];
  LanePiece out{.start_ns = job.aligned(rank, each.start_ns),
                .end_ns = job.aligned(rank, each.end_ns),
                .instance = job.matches.instance_of_row[rank][row],
                .row = row};
  out.moves_ns = out.start_ns;
  if (is_timed(job, out.instance)) {
    out.moves_ns = std::clamp(job.waits.meetings[out.instance].last_arrival_ns, out.start_ns, out.end_ns);
  } else {
    out.instance = kNoInstance;
  }
  return out;
}

void add_to_bins(const LanePiece& piece, const AxisWindow& window, std::vector<LaneBin>& bins) {
  const double width = static_cast<double>(window.to_ns - window.from_ns) / static_cast<double>(bins.size());
  const auto add = [&](int64_t from, int64_t to, int64_t LaneBin::* field) {
    from = std::max(from, window.from_ns);
    to = std::min(to, window.to_ns);
    while (from < to) {
      const auto bin =
          std::min(bins.size() - 1, static_cast<size_t>(static_cast<double>(from - window.from_ns) / width));
      const int64_t until =
          std::max(from + 1, std::min(to, window.from_ns + static_cast<int64_t>(width * static_cast<double>(bin + 1))));
      bins[bin].*field += until - from;
      from = until;
    }
  };
  add(piece.start_ns, piece.moves_ns, &LaneBin::wait_ns);
  add(piece.moves_ns, piece.end_ns, &LaneBin::move_ns);
}

}  // namespace

AxisWindow whole_axis(const StudiedJob& job) {
  AxisWindow out{INT64_MAX, INT64_MIN};
  for (uint32_t r = 0; r < job.intake.ranks.size(); ++r) {
    if (!is_on_axis(job, r)) continue;
    const RankRows& rank = job.intake.ranks[r];
    const PartSteps& steps = rank.part.steps;
    const auto cover = [&](int64_t from, int64_t to) {
      out.from_ns = std::min(out.from_ns, from);
      out.to_ns = std::max(out.to_ns, to);
    };
    if (!rank.rows.empty()) cover(job.aligned(r, rank.rows.front().start_ns), job.aligned(r, rank.rows.back().end_ns));
    if (steps.size() > 0) cover(job.on_axis(r, steps.start_ns.front()), job.on_axis(r, steps.end_ns.back()));
  }
  if (out.from_ns >= out.to_ns) return {0, 1};
  return out;
}

RankLane rank_lane(const StudiedJob& job, uint32_t rank, const AxisWindow& window, const LaneOptions& options) {
  RankLane out{.rank = rank};
  const std::vector<CollectiveRow>& rows = job.intake.ranks[rank].rows;
  if (!is_on_axis(job, rank)) return out;
  const size_t first = first_row_in(job, rank, window.from_ns);
  const auto end = static_cast<size_t>(
      std::partition_point(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(),
                           [&](const CollectiveRow& row) { return job.aligned(rank, row.start_ns) < window.to_ns; }) -
      rows.begin());
  const bool too_many = end - first > options.most_pieces;
  if (too_many) out.bins.resize(std::max<size_t>(1, options.bins));
  for (size_t row = first; row < end; ++row) {
    const LanePiece piece = piece_of(job, rank, static_cast<uint32_t>(row));
    if (piece.end_ns <= window.from_ns) continue;
    if (too_many) {
      add_to_bins(piece, window, out.bins);
    } else {
      out.pieces.push_back(piece);
    }
  }
  return out;
}

CollectiveSeen collective_seen(const StudiedJob& job, uint32_t instance) {
  const Instance& each = job.matches.instances[instance];
  const Meeting& meeting = job.waits.meetings[instance];
  CollectiveSeen out{.instance = instance,
                     .start_ns = INT64_MAX,
                     .last_arrival_ns = meeting.last_arrival_ns,
                     .end_ns = meeting.last_arrival_ns + job.replay.transfer_ns[instance],
                     .wait_ns = meeting.wait_sum_ns,
                     .from_rank = job.intake.ranks[meeting.latest.rank].part.rank};
  for (uint32_t i = each.begin; i < each.end; ++i) {
    const Member& m = job.matches.members[i];
    out.start_ns = std::min(out.start_ns, job.aligned(m.rank, job.intake.ranks[m.rank].rows[m.row].start_ns));
  }
  if (const JobGroup& group = job.intake.groups[each.group]; group.point_to_point) out.from_rank = group.sender;
  return out;
}

CollectiveList collectives_in(const StudiedJob& job, const AxisWindow& window, int64_t group, CollectiveOrder order,
                              size_t most) {
  CollectiveList out;
  // `order` of the replay is that of the last arrivals.
  const std::vector<uint32_t>& all = job.replay.order;
  const auto arrival = [&](uint32_t i) { return job.waits.meetings[i].last_arrival_ns; };
  const auto begin =
      std::partition_point(all.begin(), all.end(), [&](uint32_t i) { return arrival(i) < window.from_ns; });
  const auto end = std::partition_point(begin, all.end(), [&](uint32_t i) { return arrival(i) < window.to_ns; });
  std::vector<uint32_t> found;
  for (auto at = begin; at != end; ++at) {
    if (group >= 0 && static_cast<int64_t>(job.matches.instances[*at].group) != group) continue;
    ++out.total;
    if (order == CollectiveOrder::kWait || found.size() < most) found.push_back(*at);
  }
  if (order == CollectiveOrder::kWait) {
    const auto cost = [&](uint32_t i) { return job.waits.meetings[i].wait_sum_ns; };
    const size_t kept = std::min(most, found.size());
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(kept), found.end(),
                      [&](uint32_t a, uint32_t b) { return cost(a) != cost(b) ? cost(a) > cost(b) : a < b; });
    found.resize(kept);
  }
  for (const uint32_t i : found) out.shown.push_back(collective_seen(job, i));
  return out;
}

std::vector<PathPiece> path_in(const StudiedJob& job, const AxisWindow& window, int64_t least_ns) {
  std::vector<PathPiece> out;
  auto at = std::partition_point(job.path.begin(), job.path.end(),
                                 [&](const PathPiece& piece) { return piece.end_ns <= window.from_ns; });
  for (; at != job.path.end() && at->start_ns < window.to_ns; ++at) {
    const bool is_short = at->end_ns - at->start_ns < least_ns;
    if (!out.empty() && out.back().rank == at->rank && (is_short || out.back().kind == at->kind)) {
      out.back().end_ns = at->end_ns;
    } else if (!out.empty() && is_short && out.back().end_ns - out.back().start_ns < least_ns) {
      out.back().end_ns = at->end_ns;  // below a pixel: which rank it was cannot be seen
    } else {
      out.push_back(*at);
    }
  }
  return out;
}

std::vector<uint32_t> telling_ranks(const StudiedJob& job, size_t most) {
  const size_t count = job.intake.ranks.size();
  std::vector<int64_t> on_path(count, 0);
  for (const PathPiece& piece : job.path) {
    if (piece.kind == PathKind::kWork) on_path[piece.rank] += piece.end_ns - piece.start_ns;
  }
  std::vector<uint32_t> order(count);
  for (uint32_t r = 0; r < count; ++r) order[r] = r;
  std::vector<uint32_t> out;
  const auto take = [&](uint32_t rank) {
    if (out.size() < most && std::find(out.begin(), out.end(), rank) == out.end()) out.push_back(rank);
  };
  for (const Straggler& s : job.result.stragglers) {
    for (uint32_t r = 0; r < count; ++r) {
      if (job.intake.ranks[r].part.rank == s.rank) take(r);
    }
  }
  if (count > 0) {
    take(*std::max_element(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return job.waits.ranks[a].waited_ns < job.waits.ranks[b].waited_ns;
    }));
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return on_path[a] > on_path[b]; });
  for (const uint32_t rank : order) take(rank);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace firelane::ranks
