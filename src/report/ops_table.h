// The ops table in the layout of torch's key_averages().table(): the same columns, order,
// widths, number formats and footers, so that eyes and scripts that know it need not learn.
//
//   FL_TRY(const OpsOrder order, parse_ops_order("cuda_time_total"));
//   std::cout << ops_table(ops(model), {.order = order, .row_limit = 20});
//
// One layout differs on purpose: with stacks and FLOPs together torch prints each under the
// other's heading, we do not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/ops/ops.h"
#include "base/result.h"

namespace firelane::report {

enum class OpsOrder : uint8_t {
  kFirstSeen,
  kCpuTime,
  kDeviceTime,
  kCpuTimeTotal,
  kDeviceTimeTotal,
  kSelfCpuTimeTotal,
  kSelfDeviceTimeTotal,
  kCpuMemoryUsage,
  kDeviceMemoryUsage,
  kSelfCpuMemoryUsage,
  kSelfDeviceMemoryUsage,
  kCount,
  kFlops,
  kFlopsTotal,
  kSelfFlops,
};

// torch's names for sort_by ("self_cuda_time_total", "self_device_time_total", "count", ...).
Result<OpsOrder> parse_ops_order(std::string_view name);
// Each order's own name, with "device" for the device; all of them but kFirstSeen.
std::vector<std::string> ops_order_names();

enum class OpsSide : uint8_t { kBoth, kHost, kDevice };
enum class TimeUnit : uint8_t { kBest, kSeconds, kMilliseconds, kMicroseconds };

struct OpsTableOptions {
  OpsOrder order = OpsOrder::kFirstSeen;  // always from large to small
  int64_t row_limit = 100;                // -1 = all
  bool top_level_only = false;            // rows whose first event has no parent
  OpsSide side = OpsSide::kBoth;
  bool with_flops = false;
  TimeUnit time_unit = TimeUnit::kBest;
  std::optional<std::string> header;
  std::optional<size_t> max_name_width = 55;  // nothing = no limit
  std::optional<size_t> max_shapes_width = 80;
  std::optional<size_t> max_source_width = 75;
};

// "" when there are no rows.
std::string ops_table(const analyze::OpsResult& result, const OpsTableOptions& options = {});

// The rows that are shown, sorted, filtered and limited.
std::vector<const analyze::OpsRow*> shown_ops(const analyze::OpsResult& result, const OpsTableOptions& options);

}  // namespace firelane::report
