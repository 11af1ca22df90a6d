#include "analyze/graph/graph_data.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "analyze/common/op_data.h"
#include "analyze/device/device_work.h"

namespace firelane::analyze {

namespace {

class OrderFinder {
 public:
  explicit OrderFinder(const Model& model) : model_(model), data_(model), last_of_(model.host_slices.size(), kNoRow) {
    for (Row row = 0; row < model.device_slices.size(); ++row) {
      if (!is_device_work(model.device_slices.kind[row])) continue;
      in_launch_order_.push_back(row);
      if (const Row op = model.device_slices.op[row]; op != kNoRow) work_of_[op].push_back(row);
    }
    std::stable_sort(in_launch_order_.begin(), in_launch_order_.end(),
                     [&](Row a, Row b) { return launched(a) < launched(b); });
  }

  DataOrder run() {
    out_.known.assign(model_.device_slices.size(), false);
    for (const Row work : in_launch_order_) {
      const Row op = model_.device_slices.op[work];
      if (op == kNoRow) continue;
      out_.known[work] = data_.is_known(op);
      add_waits(work, op);
      add_inside(work, op);
      last_of_[op] = work;
    }
    for (std::vector<DataOrder::Pair>* pairs : {&out_.waits, &out_.inside}) {
      std::sort(pairs->begin(), pairs->end());
      pairs->erase(std::unique(pairs->begin(), pairs->end()), pairs->end());
    }
    return std::move(out_);
  }

 private:
  int64_t launched(Row work) const {
    const int64_t start = launch_start(model_, work);
    return start == kNoNumber ? model_.device_slices.start_ns[work] : start;
  }

  // The rows that lie inside of a host slice follow it.
  Row subtree_end(Row op) const {
    const HostSlices& host = model_.host_slices;
    const Row lane_end = model_.lanes.host_end[static_cast<size_t>(host.lane[op])];
    Row end = op + 1;
    while (end < lane_end && host.depth[end] > host.depth[op]) ++end;
    return end;
  }

  // The last work of each stream that the op, or one that it calls, launched.
  const std::vector<Row>& last_work(Row op) {
    const auto [found, is_new] = last_work_.try_emplace(op);
    if (!is_new) return found->second;
    std::map<uint32_t, Row> by_stream;
    for (Row row = op, end = subtree_end(op); row < end; ++row) {
      const auto work = work_of_.find(row);
      if (work == work_of_.end()) continue;
      for (const Row each : work->second) {
        const auto [at, first] = by_stream.try_emplace(static_cast<uint32_t>(model_.device_slices.lane[each]), each);
        if (!first && model_.device_slices.start_ns[each] >= model_.device_slices.start_ns[at->second])
          at->second = each;
      }
    }
    for (const auto& [stream, work] : by_stream) found->second.push_back(work);
    return found->second;
  }

  // For an unknown op, what its nearest known caller needs.
  void add_waits(Row work, Row op) {
    while (op != kNoRow && !data_.is_known(op)) op = model_.host_slices.parent[op];
    if (op == kNoRow) return;
    const auto [begin, end] = data_.rows_of(op);
    for (Row row = begin; row < end; ++row) {
      const Row producer = model_.data_dependencies.producer[row];
      if (producer == kNoRow || model_.op_details.slice[producer] == kNoRow) continue;
      for (const Row source : last_work(model_.op_details.slice[producer])) {
        if (source != work) out_.waits.push_back({work, source});
      }
    }
  }

  void add_inside(Row work, Row op) {
    const auto add = [&](Row of) {
      if (last_of_[of] != kNoRow) out_.inside.push_back({work, last_of_[of]});
    };
    for (Row caller = op; caller != kNoRow; caller = model_.host_slices.parent[caller]) add(caller);
    // Those that it called since its last work: what they launched before is behind that already.
    const int64_t now_ns = launched(work);
    Row& next = scanned_.try_emplace(op, op + 1).first->second;
    const HostSlices& host = model_.host_slices;
    const Row lane_end = model_.lanes.host_end[static_cast<size_t>(host.lane[op])];
    for (; next < lane_end && host.depth[next] > host.depth[op] && host.start_ns[next] <= now_ns; ++next) add(next);
  }

  const Model& model_;
  OpData data_;
  std::vector<Row> in_launch_order_;
  std::unordered_map<Row, std::vector<Row>> work_of_;    // by host slice: what it launched itself
  std::unordered_map<Row, std::vector<Row>> last_work_;  // by host slice
  std::vector<Row> last_of_;                             // by host slice: the last that it launched itself, so far
  std::unordered_map<Row, Row> scanned_;                 // by host slice: how far those that it calls were looked at
  DataOrder out_;
};

}  // namespace

std::span<const DataOrder::Pair> DataOrder::of(const std::vector<Pair>& pairs, Row work) {
  const auto begin = std::lower_bound(pairs.begin(), pairs.end(), Pair{work, 0});
  auto end = begin;
  while (end != pairs.end() && end->first == work) ++end;
  return {begin, end};
}

DataOrder data_order(const Model& model) {
  return model.data_dependencies.size() == 0 ? DataOrder() : OrderFinder(model).run();
}

}  // namespace firelane::analyze
