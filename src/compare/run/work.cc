#include <algorithm>
#include <unordered_map>

#include "analyze/common/self_time.h"
#include "analyze/device/device_work.h"
#include "analyze/host/cpu_ops.h"
#include "analyze/steps/phases.h"
#include "base/hash.h"
#include "compare/run/pieces.h"

namespace firelane::compare {

namespace {

using analyze::KernelClass;

Part part_of_class(KernelClass kernel_class) {
  switch (kernel_class) {
    case KernelClass::kMatmul: return Part::kMatmul;
    case KernelClass::kConvolution: return Part::kConvolution;
    case KernelClass::kAttention: return Part::kAttention;
    case KernelClass::kPointwise: return Part::kPointwise;
    case KernelClass::kReduction: return Part::kReduction;
    case KernelClass::kNormalization: return Part::kNormalization;
    case KernelClass::kForeach: return Part::kForeach;
    case KernelClass::kIndexing: return Part::kIndexing;
    case KernelClass::kRandom: return Part::kRandom;
    case KernelClass::kCompiled: return Part::kCompiled;
    case KernelClass::kCommunication: return Part::kCommunication;
    case KernelClass::kOther: return Part::kOtherKernels;
  }
  return Part::kOtherKernels;
}

// For each host slice the innermost module call around it; of a backward op, around its forward op.
class Modules {
 public:
  explicit Modules(const Model& model) : model_(model), around_(model.host_slices.size(), kNoRow) {
    const HostSlices& host = model.host_slices;
    for (Row row = 0; row < host.size(); ++row) {
      const Row parent = host.parent[row];
      around_[row] = analyze::is_module_slice(model, row) ? row : parent == kNoRow ? kNoRow : around_[parent];
    }
  }

  Row of(Row row) const {
    if (row == kNoRow) return kNoRow;
    if (around_[row] != kNoRow) return around_[row];
    for (Row up = row; up != kNoRow; up = model_.host_slices.parent[up]) {
      const Row detail = model_.host_slices.kind[up] == HostKind::kOp ? model_.op_detail(up) : kNoRow;
      const Row forward = detail == kNoRow ? kNoRow : model_.op_details.forward[detail];
      if (forward != kNoRow) return around_[forward];
    }
    return kNoRow;
  }

 private:
  const Model& model_;
  std::vector<Row> around_;
};

struct WorkKey {
  StringId kernel = kNoString;
  StringId op = kNoString;
  StringId module = kNoString;
  StringId dims = kNoString;
  StringId types = kNoString;
  bool operator==(const WorkKey&) const = default;
};
struct WorkKeyHash {
  size_t operator()(const WorkKey& key) const {
    uint64_t hash = 0;
    for (const StringId id : {key.kernel, key.op, key.module, key.dims, key.types}) {
      hash = (hash ^ static_cast<uint32_t>(id)) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

class Groups {
 public:
  explicit Groups(const Model& model) : model_(model), modules_(model) {}

  // `op`: host slice; kNoRow none.
  WorkGroup& add(StringId kernel, Row op, Part part) {
    const HostSlices& host = model_.host_slices;
    const Row detail = op == kNoRow ? kNoRow : model_.op_detail(op);
    const Row module = modules_.of(op);
    const WorkKey key{.kernel = kernel,
                      .op = op == kNoRow ? kNoString : host.name[op],
                      .module = module == kNoRow ? kNoString : host.name[module],
                      .dims = detail == kNoRow ? kNoString : model_.op_details.input_dims[detail],
                      .types = detail == kNoRow ? kNoString : model_.op_details.input_types[detail]};
    const auto [found, is_new] = index_.try_emplace(key, groups_.size());
    if (!is_new) return groups_[found->second];
    const auto text = [&](StringId id) { return std::string(id == kNoString ? "" : model_.text(id)); };
    groups_.push_back({.part = part,
                       .kernel = text(key.kernel),
                       .op = text(key.op),
                       .module = module == kNoRow ? "" : std::string(analyze::module_name(model_, module)),
                       .dims = text(key.dims),
                       .types = text(key.types),
                       .line = op == kNoRow ? "" : line_of(model_, op)});
    return groups_.back();
  }

  std::vector<WorkGroup> take(double steps) {
    for (WorkGroup& group : groups_) {
      group.calls /= steps;
      group.total_ns /= steps;
      group.path_ns /= steps;
    }
    return std::move(groups_);
  }

 private:
  const Model& model_;
  Modules modules_;
  std::unordered_map<WorkKey, size_t, WorkKeyHash> index_;
  std::vector<WorkGroup> groups_;
};

void add_device_work(const Model& model, const analyze::Study& study, Groups& groups) {
  const DeviceSlices& device = model.device_slices;
  const HostSlices& host = model.host_slices;
  const analyze::Interval window = study.steps.window;
  std::vector<int64_t> on_path(device.size(), 0);
  for (const analyze::PathPiece& piece : study.path.pieces) {
    const bool is_work = piece.path_class == analyze::PathClass::kCompute ||
                         piece.path_class == analyze::PathClass::kCommunication ||
                         piece.path_class == analyze::PathClass::kCopy;
    if (is_work && piece.row != kNoRow) on_path[piece.row] += piece.end_ns - piece.start_ns;
  }
  analyze::DeviceClasses classes(model);
  analyze::TraitsOfNames traits(model);
  // In order of launch: order tells two groups apart that differ in nothing else.
  for (Row row = 0; row < device.size(); ++row) {
    if (!is_device_work(device.kind[row]) || !analyze::is_counted(model, row)) continue;
    const Row launch = device.launch[row];
    const int64_t queued_ns = launch == kNoRow ? device.start_ns[row] : host.start_ns[launch];
    const bool in_window = queued_ns >= window.start_ns && queued_ns < window.end_ns;
    if (!in_window && on_path[row] == 0) continue;
    const Part part = part_of_work(model, row, classes.of(row), traits);
    WorkGroup& group = groups.add(device.name[row], device.op[row], part);
    group.path_ns += static_cast<double>(on_path[row]);
    if (!in_window) continue;
    group.calls += 1;
    group.total_ns += static_cast<double>(device.duration_ns[row]);
  }
}

// Without a device, operators are the kernels. Their self time is that of the leading chain's threads.
void add_host_work(const Model& model, const analyze::Study& study, Groups& groups) {
  const HostSlices& host = model.host_slices;
  const double undone = study.undone.recorded_ns > 0
                            ? static_cast<double>(study.undone.step_ns) / static_cast<double>(study.undone.recorded_ns)
                            : 1;
  std::unordered_map<Row, int64_t> self_ns;
  const auto is_op = [&](Row row) { return host.kind[row] == HostKind::kOp; };
  for (const LaneId lane : study.host->chains[0].lanes) {
    std::vector<Row> rows;
    analyze::sweep_lane(model, lane, study.steps.window, is_op, [&](const analyze::SweptSlice& slice) {
      rows.push_back(slice.row);
      self_ns[slice.row] = slice.part.end_ns - slice.part.start_ns;
      if (slice.around != kNoRow) self_ns[slice.around] -= slice.covers_ns;
    });
    for (const Row row : rows) {
      const Part part = part_of_class(analyze::op_class(model.text(host.name[row])));
      WorkGroup& group = groups.add(kNoString, row, part);
      group.calls += 1;
      group.total_ns += static_cast<double>(self_ns[row]) * undone;
      group.path_ns = group.total_ns;
    }
  }
}

}  // namespace

Part part_of_work(const Model& model, Row device_row, analyze::DeviceClass device_class,
                  analyze::TraitsOfNames& traits) {
  if (device_class == analyze::DeviceClass::kCopy) return Part::kCopies;
  if (device_class == analyze::DeviceClass::kCommunication) return Part::kCommunication;
  return part_of_class(traits.of(model.device_slices.name[device_row]).kernel_class);
}

std::vector<WorkGroup> work_groups(const Model& model, const analyze::Study& study) {
  Groups groups(model);
  if (study.has_device_work) {
    add_device_work(model, study, groups);
  } else if (!study.host->chains.empty()) {
    add_host_work(model, study, groups);
  }
  return groups.take(static_cast<double>(std::max<int64_t>(1, study.steps.judged)));
}

}  // namespace firelane::compare
