// Device time by kernel: how often each ran, how long, in which shape, and for which op.
//
// Every piece of device work (analyze/device/device_work.h) is in exactly one row, so the rows'
// total_ns add up to work_ns, and their shares to 100%. Work on several streams at once
// counts once per stream; busy_ns counts each moment once.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

struct KernelOptions {
  bool by_op = false;      // one row per kernel and launching op
  bool by_stream = false;  // one row per kernel and stream

  bool operator==(const KernelOptions&) const = default;
};

enum class KernelOrder : uint8_t { kTotal, kMean, kMin, kMax, kCalls, kOccupancy, kBytes, kName };

// How users name them.
struct KernelOrderName {
  std::string_view name;
  KernelOrder order;
};
inline constexpr std::array<KernelOrderName, 8> kKernelOrders = {{{"total", KernelOrder::kTotal},
                                                                  {"mean", KernelOrder::kMean},
                                                                  {"min", KernelOrder::kMin},
                                                                  {"max", KernelOrder::kMax},
                                                                  {"calls", KernelOrder::kCalls},
                                                                  {"occupancy", KernelOrder::kOccupancy},
                                                                  {"bytes", KernelOrder::kBytes},
                                                                  {"name", KernelOrder::kName}}};

// A value that all calls of a row share.
template <typename T>
struct Shared {
  enum class State : uint8_t { kUnknown, kSame, kVaries };
  State state = State::kUnknown;
  T value{};

  void add(const T& next) {
    if (state == State::kUnknown) {
      state = State::kSame;
      value = next;
    } else if (state == State::kSame && value != next) {
      state = State::kVaries;
    }
  }
};

struct OpShare {
  StringId op = kNoString;  // kNoString: launched outside of any op
  int64_t calls = 0;
  int64_t total_ns = 0;
};

struct KernelRow {
  DeviceKind kind = DeviceKind::kKernel;
  StringId name = kNoString;
  StringId op = kNoString;     // by_op: the launching op
  int32_t device = -1;         // by_stream
  int64_t stream = kNoNumber;  // by_stream
  int64_t calls = 0;
  int64_t graph_calls = 0;  // of these, launched by a CUDA graph
  int64_t total_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  double share_percent = 0;  // of work_ns
  Shared<std::array<int32_t, 3>> grid;
  Shared<std::array<int32_t, 3>> block;
  int32_t registers = -1;                   // per thread, the most of any call; -1 unknown
  int64_t shared_memory_bytes = kNoNumber;  // per block, the most of any call
  double occupancy_percent = -1;            // mean weighted by time over the calls where it is known; -1 unknown
  OccupancyLimit occupancy_limit = OccupancyLimit::kUnknown;  // what bounds it for most of the row's time
  int64_t bytes = kNoNumber;                                  // memcpys and memsets: sum over the calls that give it
  double bandwidth_gb_s = -1;                                 // these bytes by the time of these calls
  std::vector<OpShare> ops;                                   // longest first

  double mean_ns() const { return calls == 0 ? 0 : static_cast<double>(total_ns) / static_cast<double>(calls); }
};

struct KernelTable {
  std::vector<KernelRow> rows;  // longest total first
  int64_t calls = 0;
  int64_t work_ns = 0;            // sum of all durations
  int64_t busy_ns = 0;            // union over streams: at most work_ns
  int64_t without_op = 0;         // pieces of work that no op launched
  int64_t without_occupancy = 0;  // kernels whose occupancy neither the trace nor launch and device tell
};

KernelTable kernel_table(const Model& model, const KernelOptions& options = {});

// Largest first; names ascending. Ties: longest total, then name.
void sort_rows(const Model& model, KernelTable& table, KernelOrder order);

}  // namespace firelane::analyze
