// Arrows. A start and an end of the same (category, name, id) are bound to the slices they
// touch: forward -> backward goes into op_details.forward, launch -> device work only fills what the
// correlation ids left open, everything else becomes a row of flows.
#include <algorithm>
#include <tuple>

#include "base/id_map.h"
#include "base/run_sort.h"
#include "model/assemble.h"

namespace firelane {

namespace {

// The slice of rows [begin, end) that an arrow at `time` touches: one that starts just then
// (ops first, since arrows are drawn from ops), else the one last begun that is still open.
template <typename Slices, typename Prefer>
Row touch(const Slices& slices, Row begin, Row end, int64_t time, const Prefer& prefer) {
  const auto first = slices.start_ns.begin();
  const auto after = static_cast<Row>(std::upper_bound(first + begin, first + end, time) - first);
  Row starts_here = kNoRow;
  constexpr int kLookBack = 4096;  // bounds the search on lanes with many overlaps
  int looked = 0;
  for (Row row = after; row > begin && ++looked < kLookBack; --row) {
    const Row at = row - 1;
    if (slices.start_ns[at] == time) {
      if (prefer(at)) return at;
      starts_here = at;
    } else {
      if (starts_here != kNoRow) return starts_here;
      if (slices.end_ns(at) >= time) return at;
    }
  }
  return starts_here;
}

class FlowLinker {
 public:
  explicit FlowLinker(Model& model) : model_(model) {
    fwdbwd_ = model.strings.find("fwdbwd");
    ac2g_ = model.strings.find("ac2g");
    async_npu_ = model.strings.find("async_npu");
  }

  bool is_launch(const RawFlow& flow) const { return ac2g_ != kNoString && flow.category == ac2g_; }

  // Only for work whose launch is not known yet.
  void join_launch(const RawFlow& start, const RawFlow& end, const std::vector<LaneId>& lane_map) {
    const SliceRef to = bind(end, lane_map);
    if (!to.on_device || to.row == kNoRow || model_.device_slices.launch[to.row] != kNoRow) return;
    const SliceRef from = bind(start, lane_map);
    if (from.on_device || from.row == kNoRow || !is_call(model_.host_slices.kind[from.row])) return;
    set_launch(to.row, from.row);
  }

  void join(const RawFlow& start, const RawFlow& end, const std::vector<LaneId>& lane_map) {
    const SliceRef from = bind(start, lane_map);
    const SliceRef to = bind(end, lane_map);
    if (from.row == kNoRow || to.row == kNoRow) {
      ++model_.losses[Stat::kFlowWithoutSlice];
      return;
    }
    if (fwdbwd_ != kNoString && start.category == fwdbwd_ && !to.on_device && !from.on_device && is_op(to.row)) {
      model_.op_details.forward[model_.host_slices.detail[to.row]] = from.row;
      return;
    }
    // Ascend draws an arrow from the op itself; which call launched the work is another one (HostToDevice).
    if (async_npu_ != kNoString && start.category == async_npu_ && to.on_device && !from.on_device && is_op(from.row)) {
      auto op = model_.device_slices.op[to.row];
      if (op == kNoRow && is_launched(model_.device_slices.kind[to.row])) --model_.losses[Stat::kDeviceSliceWithoutOp];
      op = from.row;
      return;
    }
    if (to.on_device && !from.on_device && model_.device_slices.launch[to.row] == from.row) return;  // known already
    if (to.on_device && !from.on_device && model_.device_slices.launch[to.row] == kNoRow &&
        is_call(model_.host_slices.kind[from.row])) {
      set_launch(to.row, from.row);
      return;
    }
    model_.flows.name.push_back(start.name);
    model_.flows.category.push_back(start.category);
    model_.flows.flow_id.push_back(start.id);
    model_.flows.from.push_back(from);
    model_.flows.to.push_back(to);
  }

 private:
  void set_launch(Row work, Row call) {
    model_.device_slices.launch[work] = call;
    if (is_launched(model_.device_slices.kind[work])) --model_.losses[Stat::kDeviceSliceWithoutLaunch];
  }

  bool is_op(Row row) const {
    const HostKind kind = model_.host_slices.kind[row];
    return (kind == HostKind::kOp || kind == HostKind::kAnnotation) && model_.host_slices.detail[row] != kNoRow;
  }

  SliceRef bind(const RawFlow& flow, const std::vector<LaneId>& lane_map) const {
    const auto lane = static_cast<size_t>(lane_map[static_cast<uint32_t>(flow.lane)]);
    if (lane >= model_.lanes.size()) return {};
    const Lanes& lanes = model_.lanes;
    const Row host = touch(model_.host_slices, lanes.host_begin[lane], lanes.host_end[lane], flow.time_ns,
                           [&](Row row) { return model_.host_slices.kind[row] == HostKind::kOp; });
    if (host != kNoRow) return {.row = host, .on_device = false};
    const Row device = touch(model_.device_slices, lanes.device_begin[lane], lanes.device_end[lane], flow.time_ns,
                             [&](Row row) { return model_.device_slices.kind[row] != DeviceKind::kAnnotation; });
    return {.row = device, .on_device = device != kNoRow};
  }

  Model& model_;
  StringId fwdbwd_;
  StringId ac2g_;
  StringId async_npu_;
};

}  // namespace

void link_flows(const RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map) {
  FlowLinker linker(model);
  std::vector<RawFlow> flows;
  std::vector<RawFlow> launches;
  for (const RawPart& part : raw.parts) {
    for (const RawFlow& flow : part.flow_ends) (linker.is_launch(flow) ? launches : flows).push_back(flow);
  }

  // Launch arrows repeat what the correlation ids say; here they are only counted, unless
  // the trace has no correlation ids.
  const bool has_correlations =
      std::any_of(model.call_details.correlation.begin(), model.call_details.correlation.end(),
                  [](int64_t id) { return id != kNoNumber; });
  if (has_correlations) {
    IdMap starts(launches.size());
    IdMap ends(launches.size());
    for (Row i = 0; i < launches.size(); ++i)
      (launches[i].phase == FlowPhase::kStart ? starts : ends).insert(launches[i].id, i);
    for (const RawFlow& flow : launches) {
      if (flow.phase == FlowPhase::kStart && ends.find(flow.id) == IdMap::kNone)
        ++model.losses[Stat::kFlowStartWithoutEnd];
      if (flow.phase == FlowPhase::kEnd && starts.find(flow.id) == IdMap::kNone)
        ++model.losses[Stat::kFlowEndWithoutStart];
    }
    // Where ids join nothing, the arrow does.
    if (model.losses[Stat::kDeviceSliceWithoutLaunch] > 0) {
      for (const RawFlow& flow : launches) {
        const uint32_t start = flow.phase == FlowPhase::kEnd ? starts.find(flow.id) : IdMap::kNone;
        if (start != IdMap::kNone) linker.join_launch(launches[start], flow, lane_map);
      }
    }
  } else {
    flows.insert(flows.end(), launches.begin(), launches.end());
  }

  // Arrows of one id in time order: each step or end is joined to what came before it.
  const auto key = [](const RawFlow& flow) {
    return std::tuple(flow.category, flow.name, flow.id, flow.time_ns, flow.phase);
  };
  std::stable_sort(flows.begin(), flows.end(), [&](const RawFlow& a, const RawFlow& b) { return key(a) < key(b); });
  for (size_t begin = 0; begin < flows.size();) {
    size_t end = begin + 1;
    const auto same = [&](const RawFlow& a, const RawFlow& b) {
      return a.category == b.category && a.name == b.name && a.id == b.id;
    };
    while (end < flows.size() && same(flows[begin], flows[end])) ++end;
    // One start and one end belong together, also where the clock of a device lets the end come first.
    if (end - begin == 2 && flows[begin].phase == FlowPhase::kEnd && flows[begin + 1].phase == FlowPhase::kStart) {
      linker.join(flows[begin + 1], flows[begin], lane_map);
      begin = end;
      continue;
    }
    const RawFlow* tail = nullptr;  // the last start or step
    bool tail_joined = true;
    for (size_t i = begin; i < end; ++i) {
      if (flows[i].phase == FlowPhase::kStart) {
        if (!tail_joined) ++model.losses[Stat::kFlowStartWithoutEnd];
        tail = &flows[i];
        tail_joined = false;
      } else if (tail == nullptr) {
        ++model.losses[Stat::kFlowEndWithoutStart];
      } else {
        linker.join(*tail, flows[i], lane_map);
        tail_joined = true;
        if (flows[i].phase == FlowPhase::kStep) tail = &flows[i];
      }
    }
    if (!tail_joined) ++model.losses[Stat::kFlowStartWithoutEnd];
    begin = end;
  }
}

}  // namespace firelane
