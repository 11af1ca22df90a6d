// What runtime and driver calls do, by their name: queue work, wait for the device, allocate, load code.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

enum class CallKind : uint8_t {
  kOther,       // queries, attributes: cheap, neither launch nor wait
  kLaunch,      // queues a kernel, copy, set or graph
  kCopy,        // queues a copy; waits for it when the memory is pageable or the call is not Async
  kStreamSync,  // waits for one stream
  kDeviceSync,  // waits for all streams
  kEventSync,   // waits for an event
  kAllocation,  // cudaMalloc, cudaHostAlloc
  kFree,        // cudaFree: waits for all streams
  kLoading,     // loads or compiles code, once per kernel; Ascend's also queues it
};

CallKind call_kind(std::string_view name);

// Waits for the device by its nature. Copies do so only sometimes: analyze/graph/graph.h decides.
inline bool is_blocking(CallKind kind) {
  return kind == CallKind::kStreamSync || kind == CallKind::kDeviceSync || kind == CallKind::kEventSync ||
         kind == CallKind::kFree;
}

// call_kind() of every call of a model, each name looked at once.
class CallKinds {
 public:
  explicit CallKinds(const Model& model) : model_(model), known_(model.strings.size(), kUnknown) {}
  // REQUIRES: `row` is a host slice of kind kRuntime or kDriver.
  CallKind of(Row row) {
    uint8_t& known = known_[static_cast<uint32_t>(model_.host_slices.name[row])];
    if (known == kUnknown) known = static_cast<uint8_t>(call_kind(model_.text(model_.host_slices.name[row])));
    return static_cast<CallKind>(known);
  }

 private:
  static constexpr uint8_t kUnknown = 255;
  const Model& model_;
  std::vector<uint8_t> known_;
};

}  // namespace firelane::analyze
