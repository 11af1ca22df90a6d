// Device work as formats write it that have little more than times: what many pieces of work have in common stands
// once, in a look. Takes less than half of the memory of raw device slices, which it becomes; a part may have both.
#pragma once

#include "model/table.h"

namespace firelane {

#define FL_PLAIN_WORK(WIDE, READ, MADE)                 \
  WIDE(int64_t, start_ns, kStart, "")                   \
  WIDE(int64_t, duration_ns, kDuration, "")             \
  READ(int32_t, look, kFull, "row of the part's looks") \
  READ(DetailRow, detail, kMaybe, "")                   \
  READ(CommRow, comm, kMaybe, "")                       \
  READ(DeviceKind, kind, kFull, "")

struct RawPlainWork {
  FL_RAW_ROW(FL_PLAIN_WORK)
};

#define FL_WORK_LOOKS(WIDE, READ, MADE) \
  WIDE(int64_t, stream, kMaybe, "")     \
  READ(LaneId, lane, kFull, "")         \
  READ(StringId, name, kFull, "")       \
  READ(StringId, category, kMaybe, "")  \
  READ(int32_t, device, kMaybe, "")

struct RawWorkLook {
  FL_RAW_ROW(FL_WORK_LOOKS)
};

}  // namespace firelane
