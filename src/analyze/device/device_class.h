// Device work by what it is for: computing, communicating between devices, or moving data.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

enum class DeviceClass : uint8_t { kCompute, kCommunication, kCopy };

inline bool is_communication_name(std::string_view name) {
  for (const std::string_view part : {"nccl", "rccl", "cross_device_reduce", "hccl", "nvshmem", "allreduce_kernel"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// The class of each piece of device work, each name looked at once.
class DeviceClasses {
 public:
  explicit DeviceClasses(const Model& model) : model_(model), known_(model.strings.size(), kUnknown) {}
  // REQUIRES: is_device_work(kind of `row`).
  DeviceClass of(Row row) {
    const DeviceSlices& slices = model_.device_slices;
    const DeviceKind kind = slices.kind[row];
    if (kind == DeviceKind::kCopy || kind == DeviceKind::kSet) return DeviceClass::kCopy;
    if (kind == DeviceKind::kCollective) return DeviceClass::kCommunication;
    uint8_t& known = known_[static_cast<uint32_t>(slices.name[row])];
    if (known == kUnknown) known = is_communication_name(model_.text(slices.name[row])) ? 1 : 0;
    return known == 1 ? DeviceClass::kCommunication : DeviceClass::kCompute;
  }

 private:
  static constexpr uint8_t kUnknown = 255;
  const Model& model_;
  std::vector<uint8_t> known_;
};

}  // namespace firelane::analyze
