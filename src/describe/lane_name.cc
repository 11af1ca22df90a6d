#include "describe/lane_name.h"

namespace firelane::describe {

namespace {

// Kineto gives its own work (buffers of CUPTI) to a process -1.
bool is_profilers(const Model& model, size_t lane) { return model.lanes.pid[lane].number == -1; }

}  // namespace

std::string process_name(const Model& model, LaneId lane) {
  const auto l = static_cast<size_t>(lane);
  const std::string id = model.id_text(model.lanes.pid[l]);
  if (model.lanes.kind[l] == LaneKind::kStream) {
    // Ascend gives its hardware a process id that is no device's number.
    const Row first = model.lanes.device_begin[l];
    const int32_t device = first < model.lanes.device_end[l] ? model.device_slices.device[first] : -1;
    return std::string(device_word(model.info.accelerator)) + " " + (device < 0 ? id : std::to_string(device));
  }
  const std::string_view name = model.text(model.lanes.process_name[l]);
  if (name.empty() && is_profilers(model, l)) return "Profiler";
  if (name.empty()) return model.lanes.pid[l].number == kNoNumber ? id : "process " + id;
  // XPlane files give hosts no ids: the number is one of ours.
  return model.info.origin == Origin::kXPlane ? std::string(name) : std::string(name) + " " + id;
}

std::string lane_name(const Model& model, LaneId lane) {
  const auto l = static_cast<size_t>(lane);
  const std::string_view name = model.text(model.lanes.name[l]);
  if (!name.empty()) return std::string(name);
  if (is_profilers(model, l)) return "buffers";
  const std::string id = model.id_text(model.lanes.tid[l]);
  if (model.lanes.tid[l].number == kNoNumber) return id;
  return (model.lanes.kind[l] == LaneKind::kStream ? "stream " : "thread ") + id;
}

std::string track_name(const Model& model, LaneId lane, size_t track) {
  const std::string name = process_name(model, lane) + ": " + lane_name(model, lane);
  return track == 0 ? name : name + " (overlap " + std::to_string(track) + ")";
}

}  // namespace firelane::describe
