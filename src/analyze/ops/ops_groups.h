// The rows of the ops table while they grow: one group per key, found in constant time.
//
// A key is a name, a side (host or device), whether it is an annotation, and on request the
// overload, the input shapes and the first stack frames. Without the last three a group is found through an
// array indexed by name; with them, through a hash table of small integers.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/ops/ops.h"
#include "analyze/ops/ops_memory.h"
#include "analyze/ops/ops_stacks.h"
#include "model/host_role.h"
#include "model/model.h"

namespace firelane::analyze {

// A name of the trace, or one of the names that the table makes up.
using OpsKey = uint32_t;
inline constexpr OpsKey kIgnoredKey = UINT32_MAX;

// Whether torch makes an event of such slices.
inline bool is_function_event(HostKind kind) {
  return kind != HostKind::kPython && kind != HostKind::kOverhead && kind != HostKind::kSpan;
}
// Python functions, C calls and nn.Modules of `with_stack`: not the modules of `with_modules`, nor collections.
inline bool is_python_function(const Model& model, Row row) {
  const HostSlices& host = model.host_slices;
  return host.kind[row] == HostKind::kPython && model.text(host.category[row]) == "python_function" &&
         !is_of_generation(host.role[row]);
}
// For ops and ranges: what torch calls is_async, never closed or closed by another thread. Nothing nests with it.
inline bool is_async_slice(const Model& model, Row row) {
  const HostKind kind = model.host_slices.kind[row];
  if (kind != HostKind::kOp && kind != HostKind::kAnnotation) return false;
  const Row detail = model.op_detail(row);
  return detail != kNoRow && model.op_details.is_async[detail] > 0;
}
// Waits on the device are not work, and neither is a recorded event.
inline bool is_function_event(DeviceKind kind) { return kind != DeviceKind::kSync && kind != DeviceKind::kEvent; }

// What one event adds to its row.
struct OpsEvent {
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  uint64_t order = 0;  // among events of the same time
  OpsKey key = 0;
  uint32_t shape = 0;
  StringId overload = kNoString;
  uint32_t stack = OpsStacks::kNone;
  bool on_device = false;
  bool is_user_annotation = false;
  bool is_async = false;
  bool is_top_level = false;
  int64_t self_cpu_ns = 0;
  int64_t cpu_ns = 0;
  int64_t self_device_ns = 0;
  int64_t device_ns = 0;
  MemoryUse memory;
  MemoryUse self_memory;
  int64_t flops = 0;
  int64_t flops_total = 0;
  int64_t self_flops = 0;
};

class OpsGroups {
 public:
  OpsGroups(const Model& model, bool has_details);

  // The key of a slice's name; kIgnoredKey for torch's own utility ops.
  OpsKey key_of(StringId name) {
    const OpsKey key = key_of_[static_cast<uint32_t>(name)];
    return key == kUnknown ? classify(name) : key;
  }
  OpsKey memory_key() const { return first_made_up_ + 1; }
  OpsKey out_of_memory_key() const { return first_made_up_ + 2; }

  // Equal for equal shapes, whatever the spaces in the trace. 0 = no shapes.
  uint32_t shape_of(StringId input_dims);

  void add(const OpsEvent& event);

  // In the order in which the keys first appear. `stacks` may be null.
  std::vector<OpsRow> rows(bool with_shapes, const OpsStacks* stacks);

 private:
  struct Key {
    OpsKey name = 0;
    uint32_t shape = 0;
    uint32_t stack = 0;
    StringId overload = kNoString;
    uint8_t side = 0;
    bool operator==(const Key&) const = default;
  };
  struct Group {
    OpsRow row;
    int64_t first_start_ns = 0;
    int64_t first_duration_ns = 0;
    uint64_t first_order = 0;
    Key key;
  };
  OpsKey classify(StringId name);
  uint32_t find(const OpsEvent& event);
  uint32_t new_group(const OpsEvent& event, const Key& key);
  size_t slot_of(const Key& key) const;

  static constexpr uint32_t kUnknown = UINT32_MAX - 1;
  static constexpr uint32_t kFree = UINT32_MAX;
  const Model& model_;
  uint32_t first_made_up_;          // keys from here on: ProfilerStep*, [memory], [OutOfMemory]
  bool has_details_;                // overloads, shapes or stacks are part of the key
  std::vector<OpsKey> key_of_;      // per name
  std::vector<uint32_t> group_of_;  // per key and side, or a hash table when has_details_
  std::vector<Group> groups_;
  std::vector<uint32_t> shape_of_;  // per text of input dims
  std::vector<std::string> shapes_;
  std::unordered_map<std::string, uint32_t> shape_ids_;
};

}  // namespace firelane::analyze
