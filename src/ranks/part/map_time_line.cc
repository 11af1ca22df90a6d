#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "analyze/common/user_line.h"
#include "analyze/device/device_class.h"
#include "analyze/device/device_work.h"
#include "analyze/ops/op_inputs.h"
#include "analyze/steps/phases.h"
#include "ranks/part/map_pieces.h"

namespace firelane::ranks {

namespace {

using analyze::Interval;
using analyze::IntervalSet;

constexpr size_t kMostKernels = 64;
constexpr int64_t kMostWork = int64_t{1} << 44;

struct PieceOfWork {
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int64_t work = 0;
  StringId name{};
};

struct KernelSum {
  int64_t calls = 0;
  int64_t total_ns = 0;
  int64_t work = 0;
  Row example_op = kNoRow;
  Row largest_op = kNoRow;  // of the call with the most work
  int64_t largest_work = -1;

  void add(int64_t duration_ns, int64_t own_work, Row op) {
    ++calls;
    total_ns += duration_ns;
    work += own_work;
    if (example_op == kNoRow) example_op = op;
    if (op == kNoRow || own_work <= largest_work) return;
    largest_work = own_work;
    largest_op = op;
  }
};

int64_t threads_of(const Model& model, Row row) {
  const Row detail = model.device_slices.detail[row];
  if (model.device_slices.kind[row] != DeviceKind::kKernel || detail == kNoRow) return 0;
  const KernelDetails& k = model.kernel_details;
  double threads = 1;
  for (const int32_t side : {k.grid_x[detail], k.grid_y[detail], k.grid_z[detail], k.block_x[detail], k.block_y[detail],
                             k.block_z[detail]}) {
    threads *= side > 0 ? side : 1;
  }
  return static_cast<int64_t>(std::min(threads, static_cast<double>(kMostWork)));
}

// Elements of all inputs of an operator; each shape is read once.
class InputSizes {
 public:
  explicit InputSizes(const Model& model) : model_(model) {}
  int64_t of(Row op) {
    const Row detail = model_.op_detail(op);
    if (detail == kNoRow) return 0;
    const StringId dims = model_.op_details.input_dims[detail];
    const auto [found, is_new] = known_.try_emplace(static_cast<uint32_t>(dims), 0);
    if (is_new) {
      double sum = 0;
      for (const analyze::Dims& shape : analyze::parse_input_dims(model_.text(dims))) {
        if (shape.empty()) continue;
        double elements = 1;
        for (const int64_t size : shape) elements *= static_cast<double>(size);
        sum += elements;
      }
      found->second = static_cast<int64_t>(std::clamp(sum, 0.0, static_cast<double>(kMostWork)));
    }
    return found->second;
  }

 private:
  const Model& model_;
  std::unordered_map<uint32_t, int64_t> known_;
};

// The innermost module around an op, and the line of the user's code that called it.
void add_place(const Model& model, Row op, PartKernel& kernel) {
  const HostSlices& host = model.host_slices;
  Row module = op;
  while (module != kNoRow && !analyze::is_module_slice(model, module)) module = host.parent[module];
  if (module != kNoRow) kernel.module = analyze::module_name(model, module);
  const Row detail = model.op_detail(op);
  if (detail != kNoRow) kernel.line = analyze::user_line(model.text(model.op_details.stack[detail]));
  for (Row row = op; row != kNoRow && kernel.line.empty(); row = host.parent[row]) {
    if (host.kind[row] == HostKind::kPython) kernel.line = analyze::user_line(model.text(host.name[row]));
  }
}

// The names with the most time; `places` gets where each stands in Part::kernels.
void keep_kernels(const Model& model, const std::map<StringId, KernelSum>& sums, Part& part,
                  std::unordered_map<uint32_t, int32_t>& places) {
  std::vector<std::pair<StringId, KernelSum>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.total_ns > b.second.total_ns; });
  for (size_t i = 0; i < std::min(sorted.size(), kMostKernels); ++i) {
    const auto& [name, sum] = sorted[i];
    const bool has_op = sum.example_op != kNoRow;
    places[static_cast<uint32_t>(name)] = static_cast<int32_t>(i);
    PartKernel& kernel =
        part.kernels.emplace_back(std::string(model.text(name)).substr(0, 400), "", sum.calls, sum.total_ns, sum.work);
    if (!has_op) continue;
    if (model.host_slices.name[sum.example_op] != name) kernel.op = model.text(model.host_slices.name[sum.example_op]);
    add_place(model, sum.example_op, kernel);
    const Row detail = sum.largest_op == kNoRow ? kNoRow : model.op_detail(sum.largest_op);
    if (detail != kNoRow) kernel.shapes = std::string(model.text(model.op_details.input_dims[detail])).substr(0, 200);
  }
}

// What `some` cover and the others do not.
IntervalSet without(const IntervalSet& some, const IntervalSet& others) {
  std::vector<Interval> out;
  const std::vector<Interval>& cover = others.intervals();
  for (const Interval& each : some.intervals()) {
    int64_t at = each.start_ns;
    auto next = std::partition_point(cover.begin(), cover.end(), [&](const Interval& i) { return i.end_ns <= at; });
    for (; next != cover.end() && next->start_ns < each.end_ns; ++next) {
      if (next->start_ns > at) out.push_back({at, next->start_ns});
      at = std::max(at, next->end_ns);
    }
    if (at < each.end_ns) out.push_back({at, each.end_ns});
  }
  return IntervalSet(std::move(out));
}

IntervalSet joined(std::vector<Interval> some, const std::vector<Interval>& others) {
  some.insert(some.end(), others.begin(), others.end());
  return IntervalSet(std::move(some));
}

void sum_up(std::vector<PieceOfWork>& pieces, const std::unordered_map<uint32_t, int32_t>& places, TimeLine& line) {
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const PieceOfWork& a, const PieceOfWork& b) { return a.start_ns < b.start_ns; });
  line.work_before.push_back(0);
  for (const PieceOfWork& piece : pieces) {
    line.work_start_ns.push_back(piece.start_ns);
    line.work_before.push_back(line.work_before.back() + piece.work);
    line.work_ns.push_back(piece.duration_ns);
    const auto place = places.find(static_cast<uint32_t>(piece.name));
    line.work_kernel.push_back(place == places.end() ? -1 : place->second);
  }
}

}  // namespace

HostParts idle_parts(const analyze::HostTime& host, const IntervalSet& busy, int64_t start_ns, int64_t end_ns) {
  HostParts out;
  const auto add = [&](int64_t from, int64_t to) {
    if (from >= to) return;
    if (host.chains.empty()) {
      out.host_ns += to - from;
      return;
    }
    using analyze::Activity;
    const analyze::ActivityTimes times = host.chains[0].times_in(from, to);
    for (size_t i = 0; i < analyze::kActivityCount; ++i) {
      switch (static_cast<Activity>(i)) {
        case Activity::kInput: out.input_ns += times[i]; break;
        case Activity::kGc: out.gc_ns += times[i]; break;
        case Activity::kAllocation: out.allocation_ns += times[i]; break;
        case Activity::kSync: out.sync_ns += times[i]; break;
        default: out.host_ns += times[i]; break;
      }
    }
  };
  const std::vector<Interval>& all = busy.intervals();
  auto next = std::partition_point(all.begin(), all.end(), [&](const Interval& i) { return i.end_ns <= start_ns; });
  int64_t at = start_ns;
  for (; next != all.end() && next->start_ns < end_ns; ++next) {
    add(at, std::min(next->start_ns, end_ns));
    at = std::max(at, next->end_ns);
  }
  add(at, end_ns);
  return out;
}

TimeLine time_line(const Model& model, const analyze::HostTime& host, const std::vector<FoundCollective>& found,
                   bool on_device, Part& part) {
  TimeLine line;
  std::vector<Interval> compute;
  std::vector<Interval> copies;
  std::vector<PieceOfWork> pieces;
  std::map<StringId, KernelSum> sums;
  if (on_device) {
    const DeviceSlices& slices = model.device_slices;
    analyze::DeviceClasses classes(model);
    for (Row row = 0; row < slices.size(); ++row) {
      if (!is_device_work(slices.kind[row]) || !analyze::is_counted(model, row)) continue;
      const analyze::DeviceClass kind = classes.of(row);
      if (kind == analyze::DeviceClass::kCommunication) continue;
      const Interval span = analyze::counted_part(model, row);
      if (kind == analyze::DeviceClass::kCopy) {
        copies.push_back(span);
        continue;
      }
      compute.push_back(span);
      pieces.push_back({span.start_ns, span.end_ns - span.start_ns, threads_of(model, row), slices.name[row]});
      sums[slices.name[row]].add(span.end_ns - span.start_ns, pieces.back().work, slices.op[row]);
    }
  } else if (!host.chains.empty()) {
    // Operators compute here; a collective's own thread is not looked at, and waiting for one is no computing.
    for (const analyze::HostSegment& segment : host.chains[0].segments) {
      if (segment.activity == analyze::Activity::kOp) compute.push_back({segment.start_ns, segment.end_ns});
    }
    InputSizes sizes(model);
    const auto is_op = [&](Row row) { return model.host_slices.kind[row] == HostKind::kOp; };
    analyze::each_outermost(model, host.chains[0], is_op, [&](Row row) {
      const std::string_view name = model.text(model.host_slices.name[row]);
      if (name.starts_with("c10d::") || name == "record_param_comms") return;
      pieces.push_back({model.host_slices.start_ns[row], model.host_slices.duration_ns[row], sizes.of(row),
                        model.host_slices.name[row]});
      sums[model.host_slices.name[row]].add(model.host_slices.duration_ns[row], pieces.back().work, row);
    });
  }
  const IntervalSet writing(find_checkpoints(model, host));
  line.compute = IntervalSet(std::move(compute));
  // Kernels run on beside a checkpoint. Operators that are called to write one do not compute.
  if (!on_device && !writing.intervals().empty()) line.compute = without(line.compute, writing);
  std::vector<Interval> moving;
  for (const FoundCollective& each : found) moving.push_back({each.start_ns, each.end_ns});
  line.collectives = IntervalSet(moving);
  const IntervalSet both = joined(std::move(moving), line.compute.intervals());
  line.checkpoints = without(writing, both);
  const IntervalSet all_three = joined(both.intervals(), line.checkpoints.intervals());
  line.copies = without(IntervalSet(std::move(copies)), all_three);
  line.busy = joined(all_three.intervals(), line.copies.intervals());
  std::unordered_map<uint32_t, int32_t> places;
  keep_kernels(model, sums, part, places);
  sum_up(pieces, places, line);
  return line;
}

}  // namespace firelane::ranks
