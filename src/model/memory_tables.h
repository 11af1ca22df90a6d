// The tables of memory: allocations, and what the caching allocator did and held (model/tables.h).
#pragma once

#include "model/table.h"

namespace firelane {

#define FL_MEMORY_EVENTS(WIDE, READ, MADE)                                           \
  WIDE(int64_t, time_ns, kTime, "since the start of the trace")                      \
  READ(LaneId, lane, kFull, "lanes.id")                                              \
  READ(MemoryEventKind, kind, kFull, "alloc, free or out_of_memory")                 \
  READ(int32_t, device_type, kFull, "c10::DeviceType: 0 CPU, 1 CUDA")                \
  READ(int32_t, device, kFull, "index of the device; -1 for the CPU")                \
  WIDE(uint64_t, address, kFull, "of the block")                                     \
  WIDE(int64_t, bytes, kSize, "negative = freed")                                    \
  WIDE(int64_t, total_allocated_bytes, kMaybeSize, "on this device after the event") \
  WIDE(int64_t, total_reserved_bytes, kMaybeSize, "by the caching allocator")        \
  WIDE(int64_t, stream, kMaybe, "handle of the stream; 0 = the default one")         \
  READ(StringId, pool, kMaybe, "common, or its owner: graph N, pool N")              \
  READ(StringId, op, kMaybe, "operator that asked, where the trace has no ops")      \
  READ(StringId, stack, kMaybe, "call stack, innermost first, joined by ;")          \
  WIDE(uint64_t, source, kSource, "where the event lies in the source")

struct RawMemory {
  FL_RAW_ROW(FL_MEMORY_EVENTS)
};
struct MemoryEvents {
  FL_COLUMNS(RawMemory, FL_MEMORY_EVENTS)
};

// What a caching allocator did below allocations and frees: memory from and back to the driver, and when a freed block
// could be used again.
#define FL_ALLOCATOR_EVENTS(WIDE, READ, MADE)                                                                        \
  WIDE(int64_t, time_ns, kTime, "since the start of the trace")                                                      \
  READ(LaneId, lane, kFull, "lanes.id")                                                                              \
  READ(AllocatorEventKind, kind, kFull, "free_completed, segment_alloc, segment_free, segment_map or segment_unmap") \
  READ(int32_t, device_type, kFull, "c10::DeviceType: 1 CUDA")                                                       \
  READ(int32_t, device, kFull, "index of the device")                                                                \
  WIDE(uint64_t, address, kFull, "where it begins")                                                                  \
  WIDE(int64_t, bytes, kSize, "of the segment or block")                                                             \
  WIDE(int64_t, stream, kMaybe, "handle of the stream; 0 = the default one")                                         \
  READ(StringId, pool, kMaybe, "common, or its owner: graph N, pool N")

struct RawAllocatorEvent {
  FL_RAW_ROW(FL_ALLOCATOR_EVENTS)
};
struct AllocatorEvents {
  FL_COLUMNS(RawAllocatorEvent, FL_ALLOCATOR_EVENTS)
};

// What a caching allocator held when its recording began, and again after each pause: all rows of a device with the
// same time are one state, which counts instead of what was before. A device that held nothing has one segment of 0
// bytes.
#define FL_ALLOCATOR_SEGMENTS(WIDE, READ, MADE)                              \
  WIDE(int64_t, time_ns, kTimeAside, "when; may lie before the trace")       \
  READ(int32_t, device_type, kFull, "c10::DeviceType: 1 CUDA")               \
  READ(int32_t, device, kFull, "index of the device")                        \
  WIDE(uint64_t, address, kFull, "where it begins")                          \
  WIDE(int64_t, bytes, kSize, "of the segment; 0 = the device held none")    \
  WIDE(int64_t, stream, kMaybe, "handle of the stream; 0 = the default one") \
  READ(StringId, pool, kMaybe, "common, or its owner: graph N, pool N")      \
  READ(uint16_t, is_expandable, kFull, "1 = mapped piece by piece")

struct RawAllocatorSegment {
  FL_RAW_ROW(FL_ALLOCATOR_SEGMENTS)
};
struct AllocatorSegments {
  FL_COLUMNS(RawAllocatorSegment, FL_ALLOCATOR_SEGMENTS)
};

#define FL_ALLOCATOR_BLOCKS(WIDE, READ, MADE)                          \
  WIDE(int64_t, time_ns, kTimeAside, "when; may lie before the trace") \
  READ(int32_t, device_type, kFull, "c10::DeviceType: 1 CUDA")         \
  READ(int32_t, device, kFull, "index of the device")                  \
  WIDE(uint64_t, address, kFull, "where it begins")                    \
  WIDE(int64_t, bytes, kSize, "of the block")                          \
  READ(AllocatorBlockState, state, kFull, "free, waiting (freed, but streams may use it) or allocated")

struct RawAllocatorBlock {
  FL_RAW_ROW(FL_ALLOCATOR_BLOCKS)
};
struct AllocatorBlocks {
  FL_COLUMNS(RawAllocatorBlock, FL_ALLOCATOR_BLOCKS)
};

}  // namespace firelane
