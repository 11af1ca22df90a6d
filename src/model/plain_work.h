// Rows of formats that have little to say, in a third of the memory.
//
// Device work that has little more than times: what many pieces of work have in common stands once, in a look. It
// becomes device slices; a part may have both. And the details of ops that have little more than ids: a part has these
// or op_details, not both.
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

#define FL_PLAIN_OPS(WIDE, READ, MADE)       \
  WIDE(int64_t, external_id, kMaybe, "")     \
  WIDE(int64_t, sequence_number, kMaybe, "") \
  READ(StringId, input_dims, kMaybe, "")     \
  READ(CommRow, comm, kMaybe, "")

struct RawPlainOp {
  FL_RAW_ROW(FL_PLAIN_OPS)
};

}  // namespace firelane
