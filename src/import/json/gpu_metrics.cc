#include "import/json/gpu_metrics.h"

#include <charconv>
#include <string>

#include "base/gpu_metrics.h"
#include "import/metadata.h"
#include "model/gpu_counters.h"

namespace firelane::importer {

void settle_gpu_metrics(RawTrace& raw) {
  int64_t version = 0;
  for (const MetadataEntry& entry : raw.info.metadata) {
    if (entry.key == kThroughputsInPercent) return;
    if (entry.key == "cupti_version") {
      std::from_chars(entry.json.data(), entry.json.data() + entry.json.size(), version);
    }
  }
  bool is_changed = false;
  for (RawPart& part : raw.parts) {
    const RawPool& pool = raw.pools[part.pool];
    for (RawCounter& counter : part.counters) {
      const double factor = factor_to_percent(pool.strings.view(counter.name), version);
      if (factor == 1 || device_of_gpu_counters(pool.strings.view(counter.pid.text)) < 0) continue;
      counter.value *= factor;
      is_changed = true;
    }
  }
  if (is_changed) keep_metadata(std::string(kThroughputsInPercent), "1", raw.info.metadata, raw.losses);
}

}  // namespace firelane::importer
