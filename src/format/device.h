// The payload of a device chunk: what the GPU did, and the CUDA calls behind it.
//
//   payload := definitions table*               (definitions as in an events chunk)
//   table   := DeviceTable u8, row count varint, column count varint, column count x length varint, columns
//   column  := row count x zigzag: value minus the one before (the first: minus 0)
//
// A table's columns are the fields of its row below, in that order; readers ignore columns that they do
// not know and read 0 for those that an older file lacks. Times are ns of the device's clock (CUPTI's):
// notes of kind kDeviceClock map it to the recorder's. Rows are in any order.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/varint.h"

namespace firelane::format {

enum class DeviceTable : uint8_t {
  kKernel = 1,
  kCopy = 2,
  kSet = 3,
  kSync = 4,
  kEvent = 5,
  kCall = 6,
  kOverhead = 7,
  kMetric = 8,
};
inline constexpr size_t kDeviceTableCount = 9;  // by number; 0 is none

struct DeviceKernelRow {
  static constexpr DeviceTable kTable = DeviceTable::kKernel;
  int64_t start_ns = 0, duration_ns = 0;
  int64_t device = 0, context = 0, stream = 0, correlation = 0;
  int64_t name = 0;  // text id; mangled
  int64_t grid_x = 0, grid_y = 0, grid_z = 0;
  int64_t block_x = 0, block_y = 0, block_z = 0;
  int64_t registers = 0, static_shared_bytes = 0, dynamic_shared_bytes = 0;
  int64_t graph_id = 0, graph_node_id = 0;  // 0: not of a graph
};

struct DeviceCopyRow {
  static constexpr DeviceTable kTable = DeviceTable::kCopy;
  int64_t start_ns = 0, duration_ns = 0;
  int64_t device = 0, context = 0, stream = 0, correlation = 0;
  int64_t bytes = 0, direction = 0, source_memory = 0, target_memory = 0;  // CUPTI's numbers
  int64_t graph_id = 0, graph_node_id = 0;
  int64_t source_device = 0, target_device = 0;  // of peer copies
};

struct DeviceSetRow {
  static constexpr DeviceTable kTable = DeviceTable::kSet;
  int64_t start_ns = 0, duration_ns = 0;
  int64_t device = 0, context = 0, stream = 0, correlation = 0;
  int64_t bytes = 0, memory = 0;
  int64_t graph_id = 0, graph_node_id = 0;
};

struct DeviceSyncRow {
  static constexpr DeviceTable kTable = DeviceTable::kSync;
  int64_t start_ns = 0, duration_ns = 0;
  int64_t context = 0, stream = 0, correlation = 0;  // stream -1: the whole context
  int64_t type = 0, event = 0, event_sync = 0;       // CUPTI's numbers
};

// cudaEventRecord; no time, which CUPTI gives only at extra cost.
struct DeviceEventRow {
  static constexpr DeviceTable kTable = DeviceTable::kEvent;
  int64_t context = 0, stream = 0, correlation = 0, event = 0, event_sync = 0;
};

// A runtime or driver call.
struct DeviceCallRow {
  static constexpr DeviceTable kTable = DeviceTable::kCall;
  int64_t start_ns = 0, duration_ns = 0;
  int64_t thread_id = 0, correlation = 0, name = 0;
  int64_t is_driver = 0, result = 0;
};

// CUPTI's or the driver's own work.
struct DeviceOverheadRow {
  static constexpr DeviceTable kTable = DeviceTable::kOverhead;
  int64_t start_ns = 0, duration_ns = 0, type = 0, thread_id = 0;
};

// A sample of a hardware counter: what it was between start and end.
struct DeviceMetricRow {
  static constexpr DeviceTable kTable = DeviceTable::kMetric;
  int64_t start_ns = 0, duration_ns = 0;
  int64_t device = 0;
  int64_t name = 0;   // text id; CUPTI's: sm__cycles_active.avg.pct_of_peak_sustained_elapsed
  int64_t value = 0;  // the double's bits
};

// Collects rows, table by table. Reused: clear() keeps the memory.
class DeviceWriter {
 public:
  template <typename Row>
  void add(const Row& row) {
    constexpr size_t kFields = sizeof(Row) / sizeof(int64_t);
    add_fields(Row::kTable, std::bit_cast<std::array<int64_t, kFields>>(row).data(), kFields);
  }
  uint64_t row_count() const { return row_count_; }
  size_t byte_count() const { return byte_count_; }
  void append_to(std::string& payload) const;
  void clear();

 private:
  struct Table {
    uint64_t count = 0;
    std::vector<std::string> columns;
    std::vector<int64_t> last;
  };
  void add_fields(DeviceTable table, const int64_t* fields, size_t count);

  std::array<Table, kDeviceTableCount> tables_;
  uint64_t row_count_ = 0;
  size_t byte_count_ = 0;
};

// Reads the tables of a payload, behind its definitions.
class DeviceReader {
 public:
  explicit DeviceReader(ByteReader reader) : reader_(reader) {}

  // The next table, of a kind that may be unknown; false at the end or when damaged.
  bool next_table();
  DeviceTable table() const { return table_; }
  // The next row of the table; false after the last.
  template <typename Row>
  bool next(Row& row) {
    constexpr size_t kFields = sizeof(Row) / sizeof(int64_t);
    std::array<int64_t, kFields> fields{};
    if (!next_fields(fields.data(), kFields)) return false;
    row = std::bit_cast<Row>(fields);
    return true;
  }
  bool damaged() const { return damaged_; }

 private:
  bool next_fields(int64_t* fields, size_t count);

  ByteReader reader_;
  DeviceTable table_{};
  uint64_t left_ = 0;
  std::vector<ByteReader> columns_;
  std::vector<int64_t> last_;
  bool damaged_ = false;
};

}  // namespace firelane::format
