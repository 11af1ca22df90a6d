#include "import/nsight/gpu_metrics.h"

#include <map>
#include <string>
#include <utility>

#include "import/sqlite/row_times.h"

namespace firelane::importer {

uint64_t read_gpu_metrics(SqlDatabase& database, RawPool& pool, RawPart& part) {
  constexpr std::string_view kTable = "GPU_METRICS";
  if (!database.has_table(kTable)) return 0;
  using Metric = std::pair<int64_t, int64_t>;  // typeId, metricId
  std::map<Metric, StringId> names;
  database.scan("TARGET_INFO_GPU_METRICS", {"typeId", "metricId", "metricName"}, part.losses,
                [&](const SqlRow& row) { names[{row.integer(0), row.integer(1)}] = pool.strings.intern(row.text(2)); });
  uint64_t rows = 0;
  database.scan(kTable, {"timestamp", "typeId", "metricId", "value"}, part.losses, [&](const SqlRow& row) {
    ++rows;
    const int64_t time_ns = row.integer(0);
    if (!is_time(time_ns)) {
      ++part.losses[Stat::kEventWithoutTime];
      return;
    }
    if (time_ns < 0) {  // samplers run before the recording begins
      ++part.losses[Stat::kEventNotUsed];
      return;
    }
    const Metric metric{row.integer(1), row.integer(2)};
    const auto [name, is_new] = names.try_emplace(metric, kNoString);
    if (is_new) {
      ++part.losses[Stat::kNameMissing];
      name->second = pool.strings.intern("metric " + std::to_string(metric.second));
    }
    constexpr int64_t kGpuBits = 0xff;  // the lowest byte of a type is the GPU's number
    part.counters.push_back(
        {.time_ns = time_ns, .value = row.real(3), .pid = {.number = metric.first & kGpuBits}, .name = name->second});
  });
  return rows;
}

}  // namespace firelane::importer
