// What the lines of a device and the events on them are.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/raw.h"

namespace firelane::importer::xplane {

enum class LineKind : uint8_t {
  kOps,       // TPU: what the core runs, one after another
  kAsyncOps,  // TPU: copies and collectives beside it
  kStream,    // GPU
  kSteps,     // derived, one slice a step
  kModules,   // derived, one slice a run of a program
  kWaits,     // TPU: what the core waited for
  kDerived,   // name scopes, source lines, counters drawn as slices
  kUnknown,
};
LineKind line_kind(std::string_view name);

// For an HLO op, by its category, or by its name if it has none.
DeviceKind op_kind(std::string_view category, std::string_view name, LineKind line);
// For the op that begins a copy, by the memory of its operands.
CopyDirection copy_direction(std::string_view name);
// On a stream of a GPU.
DeviceKind stream_kind(std::string_view name, std::string_view line);
// "allreduce" for all-reduce.3, all-reduce-start, ...; "" for what is no collective.
std::string_view collective_name(std::string_view category, std::string_view name);

// "grid:16,1,1 block:512,1,1 regs:32 static_shared:0 dynamic_shared:0 group_mem:2112 occ_pct:50"
void read_kernel_details(std::string_view text, RawKernel& out);
// "kind_src:pinned kind_dst:device size:4096 dest:0 async:1"
void read_memcpy_details(std::string_view text, RawCopy& out);

// n of "/device:GPU:n"; -1 for planes that are no device.
int32_t device_number(std::string_view plane_name);

}  // namespace firelane::importer::xplane
