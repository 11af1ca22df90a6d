// Nesting and steps: which slice lies inside which, and where iterations begin and end.
#include <algorithm>
#include <charconv>
#include <string>

#include "base/run_sort.h"
#include "model/assemble.h"
#include "model/host_role.h"

namespace firelane {

namespace {

// Analyses walk from a slice to the ones around it. Python stops at 1000 levels; a hostile file can hold a million of
// them, and would keep such walks busy for hours. What lies deeper has no duration, so that nothing lies inside of it.
constexpr size_t kMaxDepth = 1024;

// Counts slices that begin inside another one of their stream and end after it.
uint64_t count_overlaps(const DeviceSlices& slices, Row begin, Row end) {
  uint64_t overlaps = 0;
  int64_t busy_until = INT64_MIN;
  for (Row row = begin; row < end; ++row) {
    if (slices.kind[row] == DeviceKind::kAnnotation || slices.kind[row] == DeviceKind::kSync) continue;
    if (slices.start_ns[row] < busy_until) ++overlaps;
    busy_until = std::max(busy_until, slices.end_ns(row));
  }
  return overlaps;
}

}  // namespace

void nest_slices(Model& model) {
  HostSlices& slices = model.host_slices;
  std::vector<Row> open;
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    open.clear();
    for (Row row = model.lanes.host_begin[lane]; row < model.lanes.host_end[lane]; ++row) {
      const int64_t start = slices.start_ns[row];
      const int64_t end = slices.end_ns(row);
      while (!open.empty()) {
        const int64_t top_end = slices.end_ns(open.back());
        if (start < top_end && end <= top_end) break;
        if (start < top_end) ++model.losses[Stat::kOverlappingHostSlices];
        open.pop_back();
      }
      if (open.size() >= kMaxDepth) {
        slices.duration_ns[row] = 0;
        ++model.losses[Stat::kNestedTooDeep];
      }
      slices.parent[row] = open.empty() ? kNoRow : open.back();
      slices.depth[row] = static_cast<uint16_t>(open.size());
      open.push_back(row);
    }
    model.losses[Stat::kOverlappingDeviceSlices] +=
        count_overlaps(model.device_slices, model.lanes.device_begin[lane], model.lanes.device_end[lane]);
  }
}

namespace {

// The number of a step's name; kNoNumber where it is none.
int64_t step_number(std::string_view text, std::string_view prefix) {
  int64_t number = kNoNumber;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + prefix.size(), end, number);
  return parsed.ec == std::errc{} && parsed.ptr == end ? number : kNoNumber;
}

// What people call a step in ranges of their own (NVTX, TraceMe): "step 12", "iteration_3". Read only where the
// profiler itself marks none.
int64_t own_step_number(std::string_view text) {
  for (const std::string_view word : {"step", "iteration", "iter", "train_step", "training_step", "train"}) {
    const bool fits =
        text.size() > word.size() + 1 && std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) {
          return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
        });
    if (!fits) continue;
    size_t at = word.size();
    while (at < text.size() && (text[at] == ' ' || text[at] == '_' || text[at] == '#' || text[at] == ':')) ++at;
    if (at == word.size() || at == text.size()) continue;
    const int64_t number = step_number(text, text.substr(0, at));
    if (number >= 0) return number;
  }
  return kNoNumber;
}

// By StringId; empty when no string names a step.
std::vector<int64_t> step_numbers(const Model& model, bool own_names) {
  std::vector<int64_t> number_of(model.strings.size(), kNoNumber);
  bool any = false;
  for (uint32_t id = 0; id < model.strings.size(); ++id) {
    const std::string_view text = model.strings.view(StringId{id});
    if (own_names) {
      number_of[id] = own_step_number(text);
    } else if (text.starts_with(kStepName)) {
      number_of[id] = step_number(text, kStepName);
    }
    any = any || number_of[id] != kNoNumber;
  }
  if (!any) number_of.clear();
  return number_of;
}

// Ranges of the user may carry their own names for steps.
bool has_user_ranges(Origin origin) {
  return origin == Origin::kNsight || origin == Origin::kXPlane || origin == Origin::kRocprof ||
         origin == Origin::kPerfetto;
}

}  // namespace

void collect_marked_steps(Model& model) {
  std::vector<int64_t> number_of = step_numbers(model, false);
  if (number_of.empty() && has_user_ranges(model.info.origin)) number_of = step_numbers(model, true);
  if (number_of.empty()) return;
  // Our recorder names the step that was cut off by the end of the recording: its slice stays, but it is no step.
  const MetadataEntry* unfinished = model.find_metadata("unfinished_step");

  const HostSlices& slices = model.host_slices;
  std::vector<Row> rows;
  for (const Row row : model.op_details.slice) {
    if (row != kNoRow && slices.kind[row] == HostKind::kAnnotation &&
        number_of[static_cast<uint32_t>(slices.name[row])] != kNoNumber) {
      rows.push_back(row);
    }
  }
  run_sort(rows.data(), rows.size(), [&](Row a, Row b) { return slices.start_ns[a] < slices.start_ns[b]; });
  for (const Row row : rows) {
    const int64_t number = number_of[static_cast<uint32_t>(slices.name[row])];
    if (unfinished != nullptr && unfinished->json == std::to_string(number)) continue;
    model.steps.number.push_back(number);
    model.steps.slice.push_back(row);
    model.steps.start_ns.push_back(slices.start_ns[row]);
    model.steps.duration_ns.push_back(slices.duration_ns[row]);
  }
}

}  // namespace firelane
