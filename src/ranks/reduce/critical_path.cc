#include "ranks/reduce/critical_path.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace firelane::ranks {

namespace {

class PathWalk {
 public:
  PathWalk(const JobReplay& replay, const Waits& waits) : replay_(replay), waits_(waits) {}

  std::vector<PathPiece> run() {
    if (replay_.order.empty()) return {};
    std::vector<uint32_t> place(replay_.matches.instances.size(), UINT32_MAX);
    for (uint32_t i = 0; i < replay_.order.size(); ++i) place[replay_.order[i]] = i;
    uint32_t instance = replay_.order.back();
    now_ = arrival_of(instance) + replay_.transfer_ns[instance];
    while (instance != kNoInstance) {
      const Member latest = waits_.meetings[instance].latest;
      add(PathKind::kTransfer, latest.rank, latest.row, arrival_of(instance));
      instance = walk_rank(latest, place[instance], place);
    }
    std::reverse(out_.begin(), out_.end());
    return std::move(out_);
  }

 private:
  int64_t arrival_of(uint32_t instance) const { return waits_.meetings[instance].last_arrival_ns; }
  int64_t aligned(uint32_t rank, int64_t ns) const {
    return replay_.clocks.aligned(replay_.intake.ranks[rank].domain, ns);
  }

  // Back along one rank, until it leaves a collective that another rank may have made late. Only one that stands before
  // `place` in the order of arrivals: collectives of two streams may overlap, and the walk must end.
  uint32_t walk_rank(const Member& from, uint32_t place, const std::vector<uint32_t>& places) {
    const std::vector<CollectiveRow>& rows = replay_.intake.ranks[from.rank].rows;
    for (uint32_t row = from.row;; --row) {
      const MemberWork work = work_before(rows, row);
      if (row == 0) {
        add(PathKind::kWork, from.rank, row, aligned(from.rank, rows[row].start_ns - work.work_ns));
        return kNoInstance;
      }
      const CollectiveRow& before = rows[row - 1];
      const bool from_arrival = work.from_arrival && before.start_ns + work.work_ns >= before.end_ns;
      add(PathKind::kWork, from.rank, row, aligned(from.rank, from_arrival ? before.start_ns : before.end_ns));
      if (from_arrival) continue;
      const uint32_t instance = replay_.matches.instance_of_row[from.rank][row - 1];
      const bool matched = instance != kNoInstance && replay_.transfer_ns[instance] >= 0;
      if (matched && places[instance] < place) return instance;
      add(PathKind::kUnmatched, from.rank, row - 1, aligned(from.rank, before.start_ns));
    }
  }

  // From `start_ns` to where the path has come so far.
  void add(PathKind kind, uint32_t rank, uint32_t row, int64_t start_ns) {
    if (start_ns >= now_) return;
    out_.push_back({kind, rank, row, start_ns, now_});
    now_ = start_ns;
  }

  const JobReplay& replay_;
  const Waits& waits_;
  int64_t now_ = 0;
  std::vector<PathPiece> out_;
};

}  // namespace

std::vector<PathPiece> critical_path(const JobReplay& replay, const Waits& waits) {
  return PathWalk(replay, waits).run();
}

void add_path(const JobReplay& replay, const std::vector<GroupKind>& kinds, const std::vector<PathPiece>& pieces,
              Reduction& out) {
  const Intake& intake = replay.intake;
  std::map<std::tuple<int64_t, std::string, std::string, int>, PathShare> shares;
  const auto add = [&](int64_t rank, std::string what, std::string name, const PartKernel* kernel, int64_t ns) {
    if (ns <= 0) return;
    PathShare& share = shares[{rank, what, name, kernel == nullptr ? 0 : 1}];
    share.rank = rank;
    share.what = std::move(what);
    share.name = std::move(name);
    if (kernel != nullptr) {
      share.op = kernel->op;
      share.module = kernel->module;
      share.line = kernel->line;
    }
    share.time_ns += ns;
    ++share.pieces;
  };
  for (const PathPiece& piece : pieces) {
    const RankRows& rank = intake.ranks[piece.rank];
    const CollectiveRow& row = rank.rows[piece.row];
    const int64_t length = piece.end_ns - piece.start_ns;
    const int64_t number = rank.part.rank;
    out.path_ns += length;
    if (piece.kind != PathKind::kWork) {
      const std::string op(name_of(intake.signatures[row.signature].op));
      const bool known = row.group != UINT32_MAX && kinds[row.group] != GroupKind::kUnknown;
      add(piece.kind == PathKind::kTransfer ? -1 : number,
          piece.kind == PathKind::kTransfer ? "moving" : "waiting or moving",
          known ? op + ", " + std::string(name_of(kinds[row.group])) : op, nullptr, length);
      continue;
    }
    // The gap's shares, for as much of it as the path has.
    const int64_t idle = std::min(length, length * row.idle_percent / 100);
    const PartKernel* kernel = row.kernel >= 0 ? &rank.part.kernels[static_cast<size_t>(row.kernel)] : nullptr;
    const int64_t in_kernel = kernel == nullptr ? 0 : std::min(length - idle, int64_t{row.kernel_us} * 1000);
    add(number, "idle: " + std::string(name_of(row.idle)), "", nullptr, idle);
    if (kernel != nullptr) add(number, "computing", kernel->name, kernel, in_kernel);
    add(number, "computing", kernel == nullptr ? "" : "other kernels", nullptr, length - idle - in_kernel);
  }
  for (auto& [key, share] : shares) out.path.push_back(std::move(share));
  std::stable_sort(out.path.begin(), out.path.end(),
                   [](const PathShare& a, const PathShare& b) { return a.time_ns > b.time_ns; });
}

}  // namespace firelane::ranks
