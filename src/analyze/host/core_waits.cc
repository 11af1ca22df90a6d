#include "analyze/host/core_waits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "analyze/common/median.h"

namespace firelane::analyze {

namespace {

// Share of the cores available to this thread that other programs used. A recording of less than 50 ms has
// no notes about it: then it is theirs if torch computes with one thread.
double others_part(const Model& model) {
  const MetadataEntry* others = model.find_metadata("cores_used_by_others");
  const MetadataEntry* own = model.find_metadata("cores_used");
  if (others == nullptr || own == nullptr) return model.info.environment.torch_threads == 1 ? 1 : 0;
  const double theirs = std::max(0.0, others->number.value_or(0));
  const double beside = std::max(0.0, own->number.value_or(0) - 1);
  return theirs <= 0 ? 0 : theirs / (theirs + beside);
}

}  // namespace

CoreWaits::CoreWaits(const Model& model) : timed_(model.timed_steps), by_others_(others_part(model)) {
  if (timed_.waited_ns.size() < timed_.size()) return;    // made by hand
  std::map<StepDisturbance, std::vector<int64_t>> waits;  // recorded steps are longer, and wait longer
  double waited = 0;
  double lasted = 0;
  for (Row row = 0; row < timed_.size(); ++row) {
    const int64_t waited_ns = timed_.waited_ns[row];
    if (waited_ns == kNoNumber) continue;
    ++known_;
    waited += static_cast<double>(waited_ns);
    lasted += static_cast<double>(timed_.duration_ns[row]);
    waits[timed_.disturbance[row]].push_back(waited_ns);
  }
  if (known_ == 0) return;
  waited_share_ = std::clamp(by_others_ * waited / std::max(1.0, lasted), 0.0, 1.0);
  std::map<StepDisturbance, int64_t> usual;
  for (auto& [kind, all] : waits) usual[kind] = median(std::move(all));
  lost_.assign(timed_.size(), 0);
  for (Row row = 0; row < timed_.size(); ++row) {
    const int64_t waited_ns = timed_.waited_ns[row];
    if (waited_ns == kNoNumber) continue;
    const int64_t beyond_ns = std::max<int64_t>(0, waited_ns - usual.at(timed_.disturbance[row]));
    const auto lost_ns = static_cast<int64_t>(std::llround(by_others_ * static_cast<double>(beyond_ns)));
    lost_[row] = std::min(timed_.duration_ns[row], lost_ns);
  }
}

int64_t CoreWaits::lost_in(int64_t start_ns, int64_t end_ns) const {
  if (lost_.empty() || end_ns <= start_ns) return 0;
  const auto begin = timed_.start_ns.begin();
  const auto after = std::upper_bound(begin, timed_.start_ns.end(), start_ns + (end_ns - start_ns) / 2);
  if (after == begin) return 0;
  const auto row = static_cast<Row>(after - begin - 1);
  const int64_t timed_end = timed_.start_ns[row] + timed_.duration_ns[row];
  return timed_end > start_ns + (end_ns - start_ns) / 2 ? lost_[row] : 0;
}

}  // namespace firelane::analyze
