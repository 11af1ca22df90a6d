#include "analyze/device/kernels.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>

#include "analyze/device/device_work.h"
#include "base/check.h"
#include "base/hash.h"

namespace firelane::analyze {

namespace {

struct GroupKey {
  DeviceKind kind;
  StringId name;
  StringId op;
  uint32_t lane;  // kNoRow unless by stream
  bool operator==(const GroupKey&) const = default;
};
struct GroupHash {
  size_t operator()(const GroupKey& key) const {
    const uint64_t names = static_cast<uint64_t>(key.name) << 32 | static_cast<uint64_t>(key.op);
    return mix_hash(names, static_cast<uint64_t>(key.lane) << 8 | static_cast<uint64_t>(key.kind));
  }
};

// What a row's means are made of, while it grows.
struct RowSums {
  double occupancy_time = 0;  // percent * ns
  int64_t occupancy_ns = 0;
  int64_t bytes_ns = 0;
  bool has_whole = false;  // a call that no edge of the recording cut
  std::array<int64_t, kOccupancyLimitCount> limit_ns{};
};

void add_kernel_detail(const KernelDetails& details, Row detail, KernelRow& row) {
  if (details.grid_x[detail] >= 0) {
    row.grid.add({details.grid_x[detail], details.grid_y[detail], details.grid_z[detail]});
  }
  if (details.block_x[detail] >= 0) {
    row.block.add({details.block_x[detail], details.block_y[detail], details.block_z[detail]});
  }
  row.registers = std::max(row.registers, details.registers[detail]);
  row.shared_memory_bytes = std::max(row.shared_memory_bytes, details.shared_memory_bytes[detail]);
  if (details.graph_id[detail] != kNoNumber && details.graph_id[detail] != 0) ++row.graph_calls;
}

void add_occupancy(double percent, int64_t duration_ns, KernelRow& row, RowSums& sums) {
  sums.occupancy_time += percent * static_cast<double>(duration_ns);
  sums.occupancy_ns += duration_ns;
  if (row.occupancy_percent < 0) row.occupancy_percent = percent;  // stays when all calls last 0 ns
}

void add_limit(OccupancyLimit limit, int64_t duration_ns, RowSums& sums) {
  if (limit != OccupancyLimit::kUnknown) sums.limit_ns[static_cast<size_t>(limit)] += std::max<int64_t>(1, duration_ns);
}

void add_copy_detail(const CopyDetails& details, Row detail, int64_t duration_ns, KernelRow& row, RowSums& sums) {
  if (details.bytes[detail] == kNoNumber) return;
  row.bytes = (row.bytes == kNoNumber ? 0 : row.bytes) + details.bytes[detail];
  sums.bytes_ns += duration_ns;
}

void add_call(const Model& model, Row slice, KernelRow& row, RowSums& sums) {
  const DeviceSlices& slices = model.device_slices;
  const int64_t duration_ns = counted_ns(model, slice);
  // The shortest of those that were recorded whole, if any was.
  const bool is_whole = duration_ns == slices.duration_ns[slice];
  if (row.calls == 0 || (is_whole && (!sums.has_whole || duration_ns < row.min_ns))) row.min_ns = duration_ns;
  sums.has_whole |= is_whole;
  row.max_ns = std::max(row.max_ns, duration_ns);
  row.total_ns += duration_ns;
  ++row.calls;
  const Row detail = slices.detail[slice];
  if (detail == kNoRow) return;
  if (slices.kind[slice] == DeviceKind::kKernel) add_kernel_detail(model.kernel_details, detail, row);
  if (slices.kind[slice] == DeviceKind::kCopy || slices.kind[slice] == DeviceKind::kSet) {
    add_copy_detail(model.copy_details, detail, duration_ns, row, sums);
  }
}

// Ops per row, keyed by row << 32 | op.
class OpShares {
 public:
  void add(size_t row, StringId op, int64_t duration_ns) {
    const uint64_t key = static_cast<uint64_t>(row) << 32 | static_cast<uint64_t>(op);
    OpShare& share = shares_[key];
    share.op = op;
    ++share.calls;
    share.total_ns += duration_ns;
  }
  void move_into(const Model& model, std::vector<KernelRow>& rows) const {
    for (const auto& [key, share] : shares_) rows[key >> 32].ops.push_back(share);
    for (KernelRow& row : rows) {
      std::sort(row.ops.begin(), row.ops.end(), [&](const OpShare& a, const OpShare& b) {
        if (a.total_ns != b.total_ns) return a.total_ns > b.total_ns;
        return model.text(a.op) < model.text(b.op);
      });
    }
  }

 private:
  std::unordered_map<uint64_t, OpShare> shares_;
};

void finish_row(const RowSums& sums, int64_t work_ns, KernelRow& row) {
  row.share_percent = work_ns == 0 ? 0 : 100.0 * static_cast<double>(row.total_ns) / static_cast<double>(work_ns);
  if (sums.occupancy_ns > 0) row.occupancy_percent = sums.occupancy_time / static_cast<double>(sums.occupancy_ns);
  const auto most = std::max_element(sums.limit_ns.begin(), sums.limit_ns.end());
  if (*most > 0) row.occupancy_limit = static_cast<OccupancyLimit>(most - sums.limit_ns.begin());
  if (row.bytes != kNoNumber && sums.bytes_ns > 0) {
    row.bandwidth_gb_s = static_cast<double>(row.bytes) / static_cast<double>(sums.bytes_ns);
  }
}

}  // namespace

KernelTable kernel_table(const Model& model, const KernelOptions& options) {
  const DeviceSlices& slices = model.device_slices;
  KernelTable table;
  std::vector<RowSums> sums;
  OpShares op_shares;
  std::unordered_map<GroupKey, size_t, GroupHash> row_of;
  for (Row slice = 0; slice < slices.size(); ++slice) {
    const DeviceKind kind = slices.kind[slice];
    if (!is_device_work(kind) || !is_counted(model, slice)) continue;
    const int64_t duration_ns = counted_ns(model, slice);
    const StringId op = slices.op[slice] == kNoRow ? kNoString : model.host_slices.name[slices.op[slice]];
    const GroupKey key{kind, slices.name[slice], options.by_op ? op : kNoString,
                       options.by_stream ? static_cast<uint32_t>(slices.lane[slice]) : kNoRow};
    const auto [found, is_new] = row_of.try_emplace(key, table.rows.size());
    if (is_new) {
      table.rows.push_back({.kind = kind,
                            .name = key.name,
                            .op = key.op,
                            .device = options.by_stream ? slices.device[slice] : -1,
                            .stream = options.by_stream ? slices.stream[slice] : kNoNumber});
      sums.emplace_back();
    }
    add_call(model, slice, table.rows[found->second], sums[found->second]);
    op_shares.add(found->second, op, duration_ns);
    ++table.calls;
    table.work_ns += duration_ns;
    if (slices.op[slice] == kNoRow) ++table.without_op;
    if (kind != DeviceKind::kKernel) continue;
    const Row detail = slices.detail[slice];
    if (detail != kNoRow) {
      add_limit(model.kernel_details.occupancy_limit[detail], duration_ns, sums[found->second]);
    }
    const double occupancy = detail == kNoRow ? -1 : double{model.kernel_details.occupancy_percent[detail]};
    if (occupancy < 0) {
      ++table.without_occupancy;
    } else {
      add_occupancy(occupancy, duration_ns, table.rows[found->second], sums[found->second]);
    }
  }
  int64_t added_ns = 0;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    finish_row(sums[i], table.work_ns, table.rows[i]);
    added_ns += table.rows[i].total_ns;
  }
  FL_CHECK(added_ns == table.work_ns, "kernel_table: rows must add up to all device work");
  op_shares.move_into(model, table.rows);
  table.busy_ns = device_busy(model).total_ns();
  sort_rows(model, table, KernelOrder::kTotal);
  return table;
}

void sort_rows(const Model& model, KernelTable& table, KernelOrder order) {
  const auto measure = [order](const KernelRow& row) -> double {
    switch (order) {
      case KernelOrder::kTotal: return static_cast<double>(row.total_ns);
      case KernelOrder::kMean: return row.mean_ns();
      case KernelOrder::kMin: return static_cast<double>(row.min_ns);
      case KernelOrder::kMax: return static_cast<double>(row.max_ns);
      case KernelOrder::kCalls: return static_cast<double>(row.calls);
      case KernelOrder::kOccupancy: return row.occupancy_percent;
      case KernelOrder::kBytes: return static_cast<double>(row.bytes);
      case KernelOrder::kName: return 0;
    }
    return 0;
  };
  std::sort(table.rows.begin(), table.rows.end(), [&](const KernelRow& a, const KernelRow& b) {
    if (const double left = measure(a), right = measure(b); left != right) return left > right;
    if (order != KernelOrder::kName && a.total_ns != b.total_ns) return a.total_ns > b.total_ns;
    if (a.name != b.name) return model.text(a.name) < model.text(b.name);
    if (a.op != b.op) return model.text(a.op) < model.text(b.op);
    return std::tie(a.device, a.stream, a.kind) < std::tie(b.device, b.stream, b.kind);
  });
}

}  // namespace firelane::analyze
