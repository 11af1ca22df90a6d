// How close each op came to the device's peak: FLOPs and bytes from shapes, time from kernels, peaks from the
// makers.
//
// A row is an op that launched device work, with its shapes and types. Matrix kernels belong to the nearest op around
// their launch whose FLOPs are known (cuDNN's attention runs below the op that has the shapes), everything else to the
// op that launched it. Every kernel, copy and set that has an op is in exactly one row: rows and without_op_ns add up
// to work_ns.
//
// Where hardware counters were sampled, they decide what bounds an op: memory at 60% of DRAM's peak or more, compute at
// 60% of the tensor cores'. A sample counts for an op whose work fills nine tenths of it.
//
// The roof of a call is the longer of FLOPs / peak FLOP/s and bytes / memory bandwidth; roof_percent = roof / time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/device/device_peaks.h"
#include "analyze/device/hardware_metrics.h"
#include "analyze/device/kernel_traits.h"
#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane::analyze {

enum class KernelBound : uint8_t {
  kUnknown,  // neither FLOPs nor bytes are known, or the device is not in our table
  kCompute,
  kMemory,
  kLatency,  // too small to fill the device: far below both roofs and short
};
std::string_view name_of(KernelBound bound);  // "unknown", "compute", "memory", "latency"

struct RooflineRow {
  StringId op = kNoString;
  StringId dims = kNoString;    // JSON text, as in the trace
  StringId types = kNoString;   // JSON text, as in the trace
  StringId kernel = kNoString;  // the one that took longest
  KernelClass kernel_class = KernelClass::kOther;
  TensorCores tensor_cores = TensorCores::kUnknown;
  Precision precision = Precision::kUnknown;
  int64_t calls = 0;    // of the op
  int64_t kernels = 0;  // pieces of device work
  int64_t device_ns = 0;
  int64_t flops = 0;          // of all calls; 0 not known
  int64_t bytes = kNoNumber;  // of all calls; kNoNumber not known
  double roof_ns = -1;        // time of all calls at the roof; -1 not known
  KernelBound bound = KernelBound::kUnknown;
  KernelBound roof = KernelBound::kUnknown;  // compute or memory: the longer of the two, however far below it the op is
  UnitUse use;               // as hardware counters measured it, where the trace has them and samples of this op alone
  bool is_measured = false;  // `bound` is what they say, and no estimate
  bool aligned = true;       // matmuls: all dimensions are multiples of 8 (16-bit), 4 (fp32), 16 (8-bit)
  Row example = kNoRow;      // host slice: the call that took longest

  double flops_per_s() const {
    return device_ns == 0 ? 0 : static_cast<double>(flops) * 1e9 / static_cast<double>(device_ns);
  }
  double bytes_per_s() const {
    return device_ns == 0 || bytes == kNoNumber ? 0 : static_cast<double>(bytes) * 1e9 / static_cast<double>(device_ns);
  }
  double roof_percent() const {
    return roof_ns < 0 || device_ns == 0 ? -1 : 100.0 * roof_ns / static_cast<double>(device_ns);
  }
};

// Model FLOPs utilization: time that the FLOPs need at the peak of their own precision, by the time they had.
struct UtilizationRow {
  int64_t step = kNoNumber;  // kNoNumber: the whole trace
  int64_t duration_ns = 0;
  int64_t flops = kNoNumber;  // kNoNumber: not known, no kernel of it is of an op with inputs
  double mfu_percent = -1;    // -1: FLOPs or peak not known
};

struct Roofline {
  std::vector<RooflineRow> rows;      // longest device time first
  std::vector<uint32_t> row_of_work;  // by row of device_slices: index in `rows`; kNoRow: work without an op, or none
  std::vector<UtilizationRow> steps;
  UtilizationRow whole;
  const DevicePeaks* peaks = nullptr;  // of the device that did most of the work; null: not in our table
  std::string_view device_name;
  int64_t work_ns = 0;
  int64_t without_op_ns = 0;
  int64_t matrix_ns = 0;               // kernels of matmul, convolution and attention
  int64_t tensor_core_ns = 0;          // of these, on tensor cores
  int64_t tensor_core_unknown_ns = 0;  // of these, the name does not say
  int64_t ops_with_shapes = 0;         // op calls with device work whose inputs the trace gives
  int64_t ops_without_shapes = 0;      // and those whose inputs it does not
};

Roofline roofline(const StudiedTrace& trace);
// `steps`: as trace_steps() finds them.
Roofline roofline_of(const Model& model, const Steps& steps);

}  // namespace firelane::analyze
