// What a reader produces: rows in file order, in parts that were filled independently.
//
// Each part belongs to one RawPool (its own strings and lanes), so that readers can run
// in parallel without sharing anything; assemble() merges the pools, sorts, nests and
// links. Ids inside a part speak of its pool.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/page_allocator.h"
#include "model/model.h"
#include "model/plain_work.h"

namespace firelane {

// Rows live in pages of their own, so that reserving far too many costs nothing and
// freeing a part gives its memory back at once.
template <typename T>
using RawVector = std::vector<T, PageAllocator<T>>;

// Readers keep times and durations within these, so that sums and differences fit int64.
inline constexpr int64_t kMinTimeNs = -1'000'000'000'000'000'000;
inline constexpr int64_t kMaxTimeNs = 4'000'000'000'000'000'000;
inline constexpr int64_t kMaxDurationNs = 4'000'000'000'000'000'000;

// The profiler's own work (CUPTI's buffers) is on lanes of this process: Kineto writes it so, and other readers do as
// it does. assemble() makes lanes.owner of it.
inline constexpr int64_t kProfilerPid = -1;

// Strings and lanes that parts refer to. Filled by one thread.
class RawPool {
 public:
  StringPool strings;
  struct Lane {
    TraceId pid;
    TraceId tid;
  };
  std::vector<Lane> lanes;

  LaneId lane(const TraceId& pid, const TraceId& tid);
  TraceId text_id(std::string_view text) { return {.number = kNoNumber, .text = strings.intern(text)}; }

 private:
  struct Key {
    int64_t pid_number, tid_number;
    uint32_t pid_text, tid_text;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  std::unordered_map<Key, LaneId, KeyHash> lane_of_;
};

// Rows that several slices may have in common.
template <typename RawRow>
inline constexpr bool kIsShared = std::is_same_v<RawRow, RawKernel> || std::is_same_v<RawRow, RawOp>;

struct RawPart {
  uint32_t pool = 0;  // index into RawTrace::pools
#define FL_MEMBER(RawRow, name) RawVector<RawRow> name;
  FL_RAW_TABLES(FL_MEMBER, FL_MEMBER)
#undef FL_MEMBER
  // Where many kernels have the same details (all runs of one HLO op), or many ops: which row of kernel_details or
  // op_details each of them has. The table then gets a row for each of these, and slices name their place here. Empty:
  // each has its own.
  RawVector<Row> kernel_order;
  RawVector<Row> op_order;
  const RawVector<Row>& order_of(const RawVector<RawKernel>&) const { return kernel_order; }
  const RawVector<Row>& order_of(const RawVector<RawOp>&) const { return op_order; }
  // How many rows of the table the rows of a part become.
  template <typename RawRow>
  size_t count_of(const RawVector<RawRow>& rows) const {
    if constexpr (kIsShared<RawRow>) {
      if (!order_of(rows).empty()) return order_of(rows).size();
    }
    if constexpr (std::is_same_v<RawRow, RawOp>) return rows.size() + plain_ops.size();
    return rows.size();
  }
  // Calls visit(row) with all rows that become rows of the table, those that several slices have in common once.
  template <typename RawRow>
  void each_distinct_row(const RawVector<RawRow>& rows, const auto& visit) const {
    for (const RawRow& row : rows) visit(row);
    if constexpr (std::is_same_v<RawRow, RawOp>) {
      for (const RawPlainOp& op : plain_ops) visit(op_of(op));
    }
  }
  // The same, in the order of the table, as often as they stand there.
  template <typename RawRow>
  void each_row(const RawVector<RawRow>& rows, const auto& visit) const {
    if constexpr (kIsShared<RawRow>) {
      for (const Row row : order_of(rows)) visit(rows[row]);
      if (!order_of(rows).empty()) return;
    }
    each_distinct_row(rows, visit);
  }
  // REQUIRES: there is one.
  template <typename RawRow>
  RawRow first_row(const RawVector<RawRow>& rows) const {
    if constexpr (std::is_same_v<RawRow, RawOp>) {
      if (rows.empty()) return op_of(plain_ops.front());
    }
    return rows.front();
  }
  static RawOp op_of(const RawPlainOp& op) {
    return {.external_id = op.external_id,
            .sequence_number = op.sequence_number,
            .input_dims = op.input_dims,
            .comm = op.comm};
  }
  template <typename RawRow>
  void free_rows(RawVector<RawRow>& rows) {
    RawVector<RawRow>().swap(rows);
    if constexpr (std::is_same_v<RawRow, RawKernel>) RawVector<Row>().swap(kernel_order);
    if constexpr (std::is_same_v<RawRow, RawOp>) {
      RawVector<Row>().swap(op_order);
      RawVector<RawPlainOp>().swap(plain_ops);
    }
  }
  // What a piece of plain work is as a device slice.
  RawDeviceSlice device_slice(const RawPlainWork& work) const {
    const RawWorkLook& look = work_looks[static_cast<size_t>(work.look)];
    return {.start_ns = work.start_ns,
            .duration_ns = work.duration_ns,
            .stream = look.stream,
            .lane = look.lane,
            .name = look.name,
            .category = look.category,
            .kind = work.kind,
            .detail = work.detail,
            .comm = work.comm,
            .device = look.device};
  }
  bool has_slices() const { return !host_slices.empty() || !device_slices.empty() || !plain_work.empty(); }
  LossCounts losses;
  uint64_t event_count = 0;
  Accelerator accelerator = Accelerator::kUnknown;  // whose events it has, where they tell

  // Calls visit(rows) with the rows of each table.
#define FL_VISIT(RawRow, name) visit(name);
  void each_table(const auto& visit) { FL_RAW_TABLES(FL_VISIT, FL_VISIT) }
#undef FL_VISIT
};

struct RawTrace {
  TraceInfo info;  // start_ns and duration_ns are computed by assemble()
  std::deque<RawPool> pools;
  std::deque<RawPart> parts;  // in file order
  LossCounts losses;
  std::shared_ptr<const ArgSource> args;
  // Light steps beside full ones: a trace of their own, whose work gets its ops from the full ones.
  std::shared_ptr<RawTrace> light;
};

// Merges, sorts, nests and links. Uses up to `threads` threads.
Model assemble(RawTrace&& raw, unsigned threads = 1);

}  // namespace firelane
