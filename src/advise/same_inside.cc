#include "advise/same_inside.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "advise/host_evidence.h"
#include "advise/op_facts.h"
#include "analyze/ops/op_inputs.h"
#include "analyze/ops/op_storages.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/results.h"
#include "base/hash.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

// Memory of a tensor: what is there is another thing after each allocation and each write.
struct Memory {
  int64_t bytes = 0;  // 0: from before the recording
  uint64_t version = 0;
};

class InsideFinder {
 public:
  InsideFinder(const Context& context, const std::function<bool(std::string_view)>& wanted)
      : context_(context),
        model_(context.model),
        host_(model_.host_slices),
        phases_(context.trace.get<analyze::find_phases>()) {
    wanted_.reserve(model_.strings.size());
    for (size_t name = 0; name < model_.strings.size(); ++name)
      wanted_.push_back(wanted(model_.text(static_cast<StringId>(name))));
  }

  std::vector<Row> all() {
    const auto tensors = model_.op_details.tensors.view().cells();
    const bool follows = std::any_of(tensors.begin(), tensors.end(), [](StringId id) { return id != kNoString; });
    if (!follows || model_.memory_events.size() == 0 || analyze::hides_data(model_)) return {};
    std::vector<Row> found;
    const auto& steps = context_.study->steps.steps;
    size_t step = 0;
    int64_t until_ns = INT64_MIN;  // of the last one looked at
    for (const Row op : ops_in_order()) {
      while (step < steps.size() && host_.start_ns[op] >= steps[step].end_ns) {
        ++step;
        seen_.clear();
      }
      see_memory_until(host_.start_ns[op]);
      const bool looks = step < steps.size() && host_.start_ns[op] >= steps[step].start_ns && !steps[step].warm_up &&
                         host_.start_ns[op] >= until_ns && is_candidate(op);
      if (looks) {
        const std::optional<uint64_t> value = value_of(op);
        if (value && !seen_.insert(*value).second) found.push_back(op);
        if (value) until_ns = host_.end_ns(op);  // what it calls is a part of it, and may have its name
      }
      see_writes(op);
    }
    return found;
  }

 private:
  std::vector<Row> ops_in_order() const {
    std::vector<Row> ops;
    for (Row row = 0; row < host_.size(); ++row) {
      if (host_.kind[row] == HostKind::kOp) ops.push_back(row);
    }
    std::stable_sort(ops.begin(), ops.end(), [&](Row a, Row b) { return host_.start_ns[a] < host_.start_ns[b]; });
    return ops;
  }

  void see_memory_until(int64_t time_ns) {
    const MemoryEvents& memory = model_.memory_events;
    for (; event_ < memory.size() && memory.time_ns[event_] < time_ns; ++event_) {
      if (memory.kind[event_] == MemoryEventKind::kAlloc)
        memory_[memory.address[event_]] = {.bytes = memory.bytes[event_], .version = ++version_};
    }
  }

  void see_writes(Row op) {
    const std::string_view name = name_of_op(model_, op);
    const Row detail = model_.op_detail(op);
    const StringId overload = detail == kNoRow ? kNoString : model_.op_details.overload[detail];
    const bool has_out = overload != kNoString && contains(model_.text(overload), "out");
    const bool is_foreign =
        !name.starts_with("aten::") && !name.starts_with("autograd::") && !contains(name, "Backward");
    const bool in_place = (name.ends_with('_') && !name.ends_with("__")) || name.starts_with("aten::__i");
    if (!has_out && !is_foreign && !in_place) return;
    const bool writes_first = in_place && !contains(name, "foreach") && !contains(name, "fused");
    for (const analyze::StorageInput& input : analyze::storages_of_op(model_, op)) {
      memory_[input.storage].version = ++version_;
      if (writes_first) break;
    }
  }

  bool is_candidate(Row op) const {
    if (!wanted_[static_cast<uint32_t>(host_.name[op])] || is_outermost_op(host_, op)) return false;
    const analyze::Phase phase = phases_.host[op];
    return phase != analyze::Phase::kBackward && phase != analyze::Phase::kOptimizer;
  }

  // What it computes; empty if unknown.
  std::optional<uint64_t> value_of(Row op) const {
    const std::vector<analyze::StorageInput> inputs = analyze::storages_of_op(model_, op);
    if (inputs.empty()) return {};
    const std::vector<analyze::Dims> shapes = shapes_of_op(model_, op);
    const Row detail = model_.op_detail(op);
    const OpDetails& details = model_.op_details;
    uint64_t value = static_cast<uint32_t>(host_.name[op]);
    for (const StringId id : {details.overload[detail], details.input_dims[detail], details.input_types[detail],
                              details.input_strides[detail], details.concrete_inputs[detail]}) {
      value = mix_hash(value, static_cast<uint32_t>(id));
    }
    for (const analyze::StorageInput& input : inputs) {
      const auto memory = memory_.find(input.storage);
      if (memory == memory_.end() || input.in_list || input.place >= shapes.size()) return {};
      // Of a part, where it begins is not recorded. The caching allocator of a device rounds up.
      const double rounding = input.on_cpu ? 1 : 512;
      const double bytes = elements_of(shapes[input.place]) * static_cast<double>(analyze::bytes_of_type(input.type));
      const auto whole = static_cast<double>(memory->second.bytes);
      if (bytes > whole || whole - bytes >= rounding) return {};
      value = mix_hash(value, mix_hash(input.storage, memory->second.version));
    }
    return value;
  }

  const Context& context_;
  const Model& model_;
  const HostSlices& host_;
  const analyze::Phases& phases_;
  std::vector<bool> wanted_;                     // by name
  std::unordered_map<uint64_t, Memory> memory_;  // by address
  std::unordered_set<uint64_t> seen_;            // values of this step
  uint64_t version_ = 0;
  size_t event_ = 0;
};

}  // namespace

std::vector<Row> same_inside(const Context& context, const std::function<bool(std::string_view name)>& wanted) {
  return context.study == nullptr ? std::vector<Row>() : InsideFinder(context, wanted).all();
}

}  // namespace firelane::advise
