#include "advise/wide_copies.h"

#include <algorithm>

#include "advise/host_work.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/verdict/study.h"

namespace firelane::advise {

namespace {

constexpr int64_t kLeastWideBytes = 256 << 10;  // for less, the call decides what a copy costs

// A conversion: aten::copy_ of a tensor into one of another type.
struct TypeChange {
  Row op = kNoRow;
  int64_t from_bytes = 0;
  int64_t to_bytes = 0;
  bool on_host = false;
  bool is_used = false;  // for a copy
};

bool calls_device(const Model& model, Row op) {
  const HostSlices& host = model.host_slices;
  const Row lane_end = model.lanes.host_end[static_cast<size_t>(host.lane[op])];
  for (Row row = op + 1; row < lane_end && host.start_ns[row] < host.end_ns(op); ++row) {
    if (is_call(host.kind[row])) return true;
  }
  return false;
}

std::vector<TypeChange> type_changes(const Model& model, const analyze::Interval& window) {
  const HostSlices& host = model.host_slices;
  const StringId copy = model.strings.find("aten::copy_");
  std::vector<TypeChange> changes;
  if (copy == kNoString) return changes;
  analyze::InputTensors tensors(model);
  for (Row row = 0; row < host.size(); ++row) {
    if (host.name[row] != copy || host.kind[row] != HostKind::kOp) continue;
    if (host.start_ns[row] < window.start_ns || host.start_ns[row] >= window.end_ns) continue;
    const std::vector<analyze::OpTensor>& inputs = tensors.of(row);
    if (inputs.size() < 2 || inputs[0].element_bytes <= 0 || inputs[1].element_bytes <= 0) continue;
    const int64_t elements = inputs[0].elements;
    if (inputs[0].element_bytes == inputs[1].element_bytes || elements != inputs[1].elements) continue;
    if (elements * std::max(inputs[0].element_bytes, inputs[1].element_bytes) < kLeastWideBytes) continue;
    // Casts to 16 bits on the device are autocast's: the host would be slower at them. Whole numbers of 64 bits are
    // what embeddings and losses take, whatever else is made of them.
    const bool on_host = !calls_device(model, row);
    if (!on_host && inputs[1].precision != analyze::Precision::kFp64) continue;
    changes.push_back({.op = row,
                       .from_bytes = elements * inputs[1].element_bytes,
                       .to_bytes = elements * inputs[0].element_bytes,
                       .on_host = on_host});
  }
  std::sort(changes.begin(), changes.end(),
            [&](const TypeChange& a, const TypeChange& b) { return host.start_ns[a.op] < host.start_ns[b.op]; });
  return changes;
}

}  // namespace

std::vector<WideCopy> wide_copies(const StudiedTrace& trace) {
  const auto& study = trace.get<analyze::study>();
  if (!study.has_device_work) return {};
  const Model& model = trace.model();
  const HostSlices& host = model.host_slices;
  const DeviceSlices& device = model.device_slices;
  std::vector<TypeChange> changes = type_changes(model, study.steps.window);
  if (changes.empty()) return {};
  const auto step_at = [&](int64_t time_ns) {
    const auto& steps = study.steps.steps;
    return std::partition_point(steps.begin(), steps.end(),
                                [&](const analyze::FoundStep& each) { return each.end_ns <= time_ns; });
  };
  std::vector<Row> copies;
  for (Row row = 0; row < device.size(); ++row) {
    const Row launch = device.launch[row];
    if (launch == kNoRow || device.kind[row] != DeviceKind::kCopy || device.detail[row] == kNoRow) continue;
    if (model.copy_kinds(row).direction != CopyDirection::kHtoD) continue;
    if (host.start_ns[launch] < study.steps.window.start_ns || host.start_ns[launch] >= study.steps.window.end_ns)
      continue;
    if (model.copy_details.bytes[device.detail[row]] >= kLeastWideBytes) copies.push_back(row);
  }
  std::sort(copies.begin(), copies.end(),
            [&](Row a, Row b) { return host.start_ns[device.launch[a]] < host.start_ns[device.launch[b]]; });
  std::vector<WideCopy> out;
  for (const Row copy : copies) {
    const int64_t at = host.start_ns[device.launch[copy]];
    const int64_t bytes = model.copy_details.bytes[device.detail[copy]];
    TypeChange* change = nullptr;
    const auto step = step_at(at);
    const int64_t step_start_ns = step == study.steps.steps.begin() ? INT64_MIN : std::prev(step)->end_ns;
    const int64_t step_end_ns = step == study.steps.steps.end() ? INT64_MAX : step->end_ns;
    auto next = std::partition_point(changes.begin(), changes.end(),
                                     [&](const TypeChange& each) { return host.start_ns[each.op] < step_start_ns; });
    for (; next != changes.end() && host.start_ns[next->op] < step_end_ns; ++next) {
      TypeChange& each = *next;
      const int64_t start_ns = host.start_ns[each.op];
      if (each.is_used) continue;
      const bool before =
          each.on_host && host.end_ns(each.op) <= at && each.to_bytes == bytes && each.from_bytes < each.to_bytes;
      const bool after = !each.on_host && start_ns > at && each.from_bytes == bytes && each.to_bytes < each.from_bytes;
      if (before) change = &each;  // the last before it
      if (after) {
        if (change == nullptr) change = &each;
        break;
      }
    }
    if (change == nullptr) continue;
    change->is_used = true;
    const int64_t narrow = std::min(change->from_bytes, change->to_bytes);
    out.push_back({.copy = copy,
                   .op = change->op,
                   .on_host = change->on_host,
                   .bytes = bytes,
                   .keep = static_cast<double>(narrow) / static_cast<double>(bytes)});
  }
  // Where the host does more with the data than to widen it, that is the matter: host-compute.
  constexpr double kNearlyAll = 0.8;
  const auto& works = trace.get<host_work>();
  std::erase_if(out, [&](const WideCopy& each) {
    if (!each.on_host) return false;
    const auto work = std::partition_point(works.begin(), works.end(),
                                           [&](const HostWork& one) { return one.end_ns <= host.start_ns[each.op]; });
    return work != works.end() && work->holds(host.start_ns[each.op]) &&
           static_cast<double>(host.duration_ns[each.op]) < kNearlyAll * static_cast<double>(work->computing_ns);
  });
  return out;
}

}  // namespace firelane::advise
