#include "analyze/verdict/results.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "analyze/host/cpu_ops.h"
#include "analyze/ops/op_inputs.h"
#include "analyze/ops/op_storages.h"
#include "analyze/ops/op_tensors.h"
#include "base/text.h"

namespace firelane::analyze {

namespace {

// These return their input unchanged if there is nothing to do.
bool may_look_only(std::string_view name) {
  return is_view_op(name) || name == "aten::to" || name == "aten::contiguous" || name == "aten::type_as";
}

class Readers {
 public:
  explicit Readers(const Model& model) : model_(model), host_(model.host_slices) {}

  std::vector<Result> run() {
    for (const Row op : ops_in_order()) {
      see_memory_until(host_.start_ns[op]);
      read_by(op);
      open_[host_.lane[op]] = op;
    }
    see_memory_until(INT64_MAX);
    for (Result& result : results_) {
      std::erase_if(result.readings, [&](const Reading& reading) {
        return may_look_only(model_.text(host_.name[reading.op])) && !makers_.contains(reading.op);
      });
    }
    std::erase_if(results_, [](const Result& result) { return result.op == kNoRow; });
    return std::move(results_);
  }

 private:
  // Those of ATen that no other one of it calls.
  std::vector<Row> ops_in_order() const {
    std::vector<Row> ops;
    std::vector<bool> is_inside(host_.size());
    for (Row row = 0; row < host_.size(); ++row) {
      const Row parent = host_.parent[row];
      const bool is_aten = host_.kind[row] == HostKind::kOp && model_.text(host_.name[row]).starts_with("aten::");
      const bool inside = parent != kNoRow && is_inside[parent];
      if (is_aten && !inside) ops.push_back(row);
      is_inside[row] = is_aten || inside;
    }
    std::sort(ops.begin(), ops.end(), [&](Row a, Row b) {
      return host_.start_ns[a] != host_.start_ns[b] ? host_.start_ns[a] < host_.start_ns[b] : a < b;
    });
    return ops;
  }

  void see_memory_until(int64_t time_ns) {
    const MemoryEvents& memory = model_.memory_events;
    for (; event_ < memory.size() && memory.time_ns[event_] < time_ns; ++event_) {
      const uint64_t address = memory.address[event_];
      const int64_t now_ns = memory.time_ns[event_];
      if (memory.kind[event_] == MemoryEventKind::kFree) {
        const auto found = result_at_.find(address);
        if (found == result_at_.end()) continue;
        Result& result = results_[found->second];
        result.is_freed = true;
        if (now_ns < host_.end_ns(result.op)) result.op = kNoRow;  // for a moment only
        result_at_.erase(found);
      } else if (memory.kind[event_] == MemoryEventKind::kAlloc) {
        result_at_.erase(address);
        const auto maker = open_.find(memory.lane[event_]);
        if (maker == open_.end() || now_ns >= host_.end_ns(maker->second)) continue;
        makers_.insert(maker->second);
        result_at_[address] = results_.size();
        results_.push_back({.op = maker->second, .bytes = memory.bytes[event_], .readings = {}, .address = address});
      }
    }
  }

  void read_by(Row op) {
    const Row detail = model_.op_detail(op);
    if (detail == kNoRow || model_.op_details.tensors[detail] == kNoString) return;
    const StringId shapes = model_.op_details.input_dims[detail];
    std::vector<Dims> dims;
    if (shapes != kNoString) dims = parse_input_dims(model_.text(shapes));
    for (const StorageInput& input : parse_storages(model_.text(model_.op_details.tensors[detail]))) {
      const auto found = result_at_.find(input.storage);
      if (found == result_at_.end()) continue;
      Result& result = results_[found->second];
      int64_t bytes = bytes_of_type(input.type);
      const bool is_known = !input.in_list && input.place < dims.size() && bytes > 0;
      if (is_known) {
        for (const int64_t size : dims[input.place]) bytes = product_of_sizes(bytes, size);
      }
      result.readings.push_back({op, is_known ? std::min(bytes, result.bytes) : result.bytes});
    }
  }

  const Model& model_;
  const HostSlices& host_;
  std::vector<Result> results_;
  std::unordered_map<uint64_t, size_t> result_at_;  // by address
  std::unordered_map<LaneId, Row> open_;            // the last op of each lane
  std::unordered_set<Row> makers_;
  size_t event_ = 0;
};

}  // namespace

bool hides_data(const Model& model) {
  for (size_t name = 0; name < model.strings.size(); ++name) {
    const std::string_view text = model.text(static_cast<StringId>(name));
    for (const std::string_view part : {"CompiledFunction", "Torch-Compiled", "triton", "GraphLaunch"}) {
      if (contains(text, part)) return true;
    }
  }
  return false;
}

std::vector<Result> find_results(const Model& model) {
  const auto tensors = model.op_details.tensors.view().cells();
  const bool follows = std::any_of(tensors.begin(), tensors.end(), [](StringId id) { return id != kNoString; });
  if (!follows || model.memory_events.size() == 0 || hides_data(model)) return {};
  return Readers(model).run();
}

}  // namespace firelane::analyze
