#include "model/unknown_lanes.h"

#include <algorithm>

namespace firelane {

namespace {

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

bool understood_on_device(const Model& model, Row begin, Row end) {
  const auto& kinds = model.device_slices.kind;
  return std::any_of(kinds.begin() + begin, kinds.begin() + end,
                     [](DeviceKind kind) { return kind != DeviceKind::kOther; });
}

bool understood_on_host(const Model& model, Row begin, Row end) {
  const auto& kinds = model.host_slices.kind;
  return std::any_of(kinds.begin() + begin, kinds.begin() + end,
                     [](HostKind kind) { return kind != HostKind::kOther; });
}

}  // namespace

bool names_device(std::string_view text) {
  for (const std::string_view word : {"GPU", "NPU", "TPU", "XPU", "HPU", "MTIA", "IPU", "MLU", "DCU", "GCU", "Gaudi",
                                      "Neuron", "Ascend Hardware", "Accelerator"}) {
    const size_t at = text.find(word);
    if (at == std::string_view::npos) continue;
    const bool begins = at == 0 || !is_letter(text[at - 1]);
    const bool ends = at + word.size() == text.size() || !is_letter(text[at + word.size()]);
    if (begins && ends) return true;
  }
  return false;
}

std::vector<LaneId> unknown_device_lanes(const Model& model) {
  std::vector<LaneId> out;
  const Lanes& lanes = model.lanes;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    const Row host = lanes.host_end[lane] - lanes.host_begin[lane];
    const Row device = lanes.device_end[lane] - lanes.device_begin[lane];
    if (device > 0) {
      if (understood_on_device(model, lanes.device_begin[lane], lanes.device_end[lane])) continue;
    } else {
      const bool of_device =
          names_device(model.text(lanes.process_labels[lane])) || names_device(model.text(lanes.process_name[lane]));
      if (host == 0 || !of_device || understood_on_host(model, lanes.host_begin[lane], lanes.host_end[lane])) continue;
    }
    out.push_back(LaneId{static_cast<uint32_t>(lane)});
  }
  return out;
}

}  // namespace firelane
