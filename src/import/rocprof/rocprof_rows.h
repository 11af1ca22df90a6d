// What rocprofv3 writes, in whichever format, as rows: JSON, CSV and rocpd hand their records to this.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

#include "model/raw.h"

namespace firelane::importer {

struct RocprofDispatch {
  int64_t start_ns = kNoNumber;
  int64_t end_ns = kNoNumber;
  int64_t device = 0;  // index among the GPUs
  int64_t stream = kNoNumber;
  int64_t queue = kNoNumber;
  int64_t correlation = kNoNumber;
  std::string_view kernel;
  // In work-items, as HSA counts.
  int64_t grid[3] = {kNoNumber, kNoNumber, kNoNumber};
  int64_t workgroup[3] = {kNoNumber, kNoNumber, kNoNumber};
  int64_t group_segment_bytes = kNoNumber;
  int64_t registers = kNoNumber;
};

struct RocprofCopy {
  int64_t start_ns = kNoNumber;
  int64_t end_ns = kNoNumber;
  int64_t device = 0;
  int64_t stream = kNoNumber;
  int64_t correlation = kNoNumber;
  int64_t bytes = kNoNumber;
  std::string_view direction;  // MEMORY_COPY_HOST_TO_DEVICE, CopyHostToDevice
};

struct RocprofRegion {
  int64_t start_ns = kNoNumber;
  int64_t end_ns = kNoNumber;
  int64_t pid = 0;
  int64_t tid = 0;
  int64_t correlation = kNoNumber;
  std::string_view category;  // HIP_RUNTIME_API, MARKER_CORE_RANGE_API, RCCL_API, HSA_CORE_API
  std::string_view name;
};

class RocprofRows {
 public:
  explicit RocprofRows(RawTrace& raw) : pool_(raw.pools.emplace_back()), part_(raw.parts.emplace_back()) {}

  void add(const RocprofDispatch& dispatch);
  void add(const RocprofCopy& copy);
  void add(const RocprofRegion& region);

  LossCounts& losses() { return part_.losses; }
  RawPool& pool() { return pool_; }
  bool empty() const { return part_.device_slices.empty() && part_.host_slices.empty(); }

 private:
  bool read_place(int64_t start_ns, int64_t end_ns, int64_t& start, int64_t& duration);
  LaneId stream_lane(int64_t device, int64_t stream, int64_t queue);

  RawPool& pool_;
  RawPart& part_;
};

// What every trace of rocprofv3 says of itself.
void describe_rocprof(TraceInfo& info, std::string_view form);

}  // namespace firelane::importer
