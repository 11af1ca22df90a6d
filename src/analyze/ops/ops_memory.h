// Memory that was allocated or freed while a slice was open: sums over any stretch of time.
//
// torch gives an event the sum of all records from its start to its end, both included, on
// any thread. Two running sums make that two look-ups; slices come in the order of their
// starts and mostly hold few records, so the look-ups walk a few steps from the last place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/wrapping.h"
#include "model/model.h"

namespace firelane::analyze {

struct MemoryUse {
  int64_t cpu_bytes = 0;
  int64_t device_bytes = 0;
  MemoryUse& operator+=(const MemoryUse& other) {
    cpu_bytes = wrap_add(cpu_bytes, other.cpu_bytes);
    device_bytes = wrap_add(device_bytes, other.device_bytes);
    return *this;
  }
  friend MemoryUse operator-(const MemoryUse& a, const MemoryUse& b) {
    return {wrap_sub(a.cpu_bytes, b.cpu_bytes), wrap_sub(a.device_bytes, b.device_bytes)};
  }
};

// What a record counts for: CPU memory, device memory, or neither.
inline MemoryUse use_of(int32_t device_type, int64_t bytes) {
  switch (device_type) {                      // c10::DeviceType
    case 0:                                   // CPU
    case 2:                                   // MKLDNN
    case 5: return {.cpu_bytes = bytes};      // IDEEP
    case 1:                                   // CUDA
    case 6:                                   // HIP
    case 12:                                  // XPU
    case 20: return {.device_bytes = bytes};  // PrivateUse1
    default: return {};
  }
}

class MemoryIndex {
 public:
  explicit MemoryIndex(const MemoryEvents& events) {
    sums_.emplace_back();
    for (Row row = 0; row < events.size(); ++row) {
      if (events.kind[row] == MemoryEventKind::kOutOfMemory) continue;
      times_.push_back(events.time_ns[row]);
      rows_.push_back(row);
      MemoryUse sum = sums_.back();
      sums_.push_back(sum += use_of(events.device_type[row], events.bytes[row]));
    }
    opened_.assign(times_.size() + 1, 0);
  }

  bool empty() const { return times_.empty(); }
  // Starts of the following calls of during() ascend from here on.
  void restart() { at_ = 0; }

  // All records in [start, end]; they now belong to somebody.
  MemoryUse during(int64_t start_ns, int64_t end_ns) {
    at_ = gallop(at_, [&](int64_t time) { return time < start_ns; });
    const size_t end = gallop(at_, [&](int64_t time) { return time <= end_ns; });
    if (end == at_) return {};
    ++opened_[at_];
    --opened_[end];
    return sums_[end] - sums_[at_];
  }

  // Rows of memory_events that no call of during() held, in order of time.
  std::vector<Row> unclaimed() const {
    std::vector<Row> rows;
    int64_t open = 0;
    for (size_t i = 0; i < times_.size(); ++i) {
      open += opened_[i];
      if (open == 0) rows.push_back(rows_[i]);
    }
    return rows;
  }

 private:
  // The first place at or after `from` where `before` does not hold.
  template <typename Before>
  size_t gallop(size_t from, const Before& before) const {
    size_t step = 1;
    size_t low = from;
    while (low + step <= times_.size() && before(times_[low + step - 1])) {
      low += step;
      step *= 2;
    }
    const auto begin = times_.begin() + static_cast<ptrdiff_t>(low);
    const auto end = times_.begin() + static_cast<ptrdiff_t>(std::min(low + step, times_.size()));
    return static_cast<size_t>(std::partition_point(begin, end, before) - times_.begin());
  }

  std::vector<int64_t> times_;
  std::vector<Row> rows_;
  std::vector<MemoryUse> sums_;  // of all records before
  std::vector<int64_t> opened_;  // slices that begin, less those that end, at a record
  size_t at_ = 0;
};

}  // namespace firelane::analyze
