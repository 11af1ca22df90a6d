// Every call that waited for the device: how long, and who asked for it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/common/intervals.h"
#include "analyze/graph/graph.h"
#include "analyze/host/host_calls.h"
#include "model/model.h"

namespace firelane::analyze {

// What the program did that made it wait, in the user's words.
enum class SyncReason : uint8_t {
  kItem,          // .item(), float(tensor), if tensor: a number is read from the device
  kNonzero,       // nonzero, masks as indices, unique: the size of the result is not known before
  kCopyToHost,    // .cpu(), .to("cpu"), .numpy(), print
  kPageableCopy,  // a copy to the device from memory that is not pinned
  kSynchronize,   // torch.cuda.synchronize() and the like, outside of any op
  kFree,          // memory given back to the driver
  kRecorder,      // the profiler, at the end of recording
  kOther,
};
inline constexpr size_t kSyncReasonCount = 8;
std::string_view name_of(SyncReason reason);  // "item", "nonzero", ...

struct SyncRow {
  Row call = kNoRow;  // host slice
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int64_t waited_ns = 0;  // of it, while the device was still working on what the call waits for
  SyncReason reason = SyncReason::kOther;
  Row op = kNoRow;      // outermost op it lies in
  Row python = kNoRow;  // innermost Python function it lies in
  bool in_window = false;
};

struct SyncTable {
  std::vector<SyncRow> rows;  // in order of time
  int64_t duration_ns = 0;    // of those in the window
  int64_t waited_ns = 0;
  int64_t in_window = 0;
};

SyncTable sync_table(const Model& model, const Graph& graph, const Interval& window);

}  // namespace firelane::analyze
