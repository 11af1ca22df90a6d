// The model's tables as Arrow tables, under the names and columns of model/columns.h.
//
// Integer columns are the model's own vectors; names, categories and other texts are indices
// into one dictionary, the model's strings, built on the first table that is asked for.
// Kinds are dictionaries of their words. kNoRow, kNoNumber and -1 for "not in the trace" are
// nulls. Only what a struct of two fields holds is copied: lanes' ids and flows' ends. Each
// table begins with `id`, the row number that other tables' columns speak of.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "export/arrow.h"
#include "model/model.h"

namespace firelane::exporter {

struct ArrowTableInfo {
  std::string_view name;
  std::string_view meaning;
};

inline constexpr std::array<ArrowTableInfo, 19> kArrowTables = {{
    {"lanes", "Threads and GPU streams."},
    {"host_slices",
     "Ops, annotations, Python functions, runtime and driver calls: what has a start and an end on the host."},
    {"op_details", "What only ops and annotations have: shapes, types, stacks, sequence numbers."},
    {"call_details", "What only runtime and driver calls have: correlation and the op that made the call."},
    {"device_slices", "Kernels, copies, sets, synchronisations, device-side annotations."},
    {"kernel_details", "What only kernels have: grid, block, registers, shared memory, occupancy, CUDA graph."},
    {"copy_details", "Bytes and bandwidth of copies and sets."},
    {"sync_details", "What a device-side synchronisation waits for."},
    {"comm_details", "Collectives: what NCCL, or another backend, was asked to do."},
    {"memory_events", "Allocations and frees, negative bytes being freed ones."},
    {"allocator_events", "What the CUDA caching allocator did below allocations and frees: segments, completed frees."},
    {"allocator_segments", "Segments that it held when recording began, and again after each pause."},
    {"allocator_blocks", "The pieces of these segments: allocated, waiting or free."},
    {"instants", "Events without a duration."},
    {"counter_tracks", "The names of counters."},
    {"counter_samples", "The values of counters over time."},
    {"flows", "Arrows of the trace other than op to launch to device work, and forward to backward."},
    {"steps", "Iterations (ProfilerStep#N)."},
    {"losses", "What was skipped, repaired or left unlinked, with a remedy."},
}};

class ArrowTables {
 public:
  explicit ArrowTables(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  // Built on first use; thread-safe. REQUIRES: `index` is one of kArrowTables.
  std::shared_ptr<const ArrowTable> table(size_t index);

 private:
  void build_shared();

  std::shared_ptr<const Model> model_;
  std::mutex mutex_;
  std::shared_ptr<const ArrowTexts> strings_;        // the model's, by StringId
  std::shared_ptr<const std::vector<Row>> row_ids_;  // 0, 1, 2, ... for the longest table
  std::array<std::shared_ptr<const ArrowTable>, kArrowTables.size()> tables_;
};

}  // namespace firelane::exporter
