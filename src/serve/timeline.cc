#include "serve/timeline.h"

#include <algorithm>
#include <atomic>

#include "base/parallel.h"

namespace firelane::serve {

namespace {

constexpr uint32_t kNone = UINT32_MAX;
// A lane with more slices at once than this has the rest in its last row, where they hide each other.
constexpr size_t kMostLaneRows = 1024;
constexpr size_t kSlicesPerBin = 4;  // of the grid, on average

// Runs fn(i) for every i below `count`, one after another as threads become free: pieces are of very different size.
template <typename Fn>
void share_out(size_t count, unsigned threads, const Fn& fn) {
  std::atomic<size_t> next{0};
  parallel_ranges(
      std::min<size_t>(count, threads), threads,
      [&](size_t, size_t) {
        for (size_t i = next++; i < count; i = next++) fn(i);
      },
      1);
}

// Gives out rows of one lane, in order of start.
class RowPicker {
 public:
  // The first row from `lowest` on that is free at `start_ns`.
  uint16_t pick(size_t lowest, int64_t start_ns, int64_t end_ns) {
    size_t row = std::min(lowest, kMostLaneRows - 1);
    while (row + 1 < kMostLaneRows && row < busy_until_.size() && busy_until_[row] > start_ns) ++row;
    if (row >= busy_until_.size()) busy_until_.resize(row + 1, INT64_MIN);
    busy_until_[row] = std::max(busy_until_[row], end_ns);
    return static_cast<uint16_t>(row);
  }
  size_t rows() const { return busy_until_.size(); }

 private:
  std::vector<int64_t> busy_until_;
};

// Rows of the slices of one lane, and which slices each row holds.
std::vector<std::vector<uint32_t>> lay_out(const Model& model, size_t lane, std::vector<uint16_t>& host_rows,
                                           std::vector<uint16_t>& device_rows) {
  const HostSlices& host = model.host_slices;
  const DeviceSlices& device = model.device_slices;
  RowPicker host_picker;
  for (Row row = model.lanes.host_begin[lane]; row < model.lanes.host_end[lane]; ++row) {
    const Row parent = host.parent[row];
    host_rows[row] =
        host_picker.pick(parent == kNoRow ? 0 : size_t{host_rows[parent]} + 1, host.start_ns[row], host.end_ns(row));
  }
  RowPicker device_picker;
  for (Row row = model.lanes.device_begin[lane]; row < model.lanes.device_end[lane]; ++row) {
    const uint16_t below = device_picker.pick(0, device.start_ns[row], device.end_ns(row));
    device_rows[row] = static_cast<uint16_t>(host_picker.rows() + below);
  }
  std::vector<std::vector<uint32_t>> refs(host_picker.rows() + device_picker.rows());
  std::vector<size_t> counts(refs.size());
  for (Row row = model.lanes.host_begin[lane]; row < model.lanes.host_end[lane]; ++row) ++counts[host_rows[row]];
  for (Row row = model.lanes.device_begin[lane]; row < model.lanes.device_end[lane]; ++row) ++counts[device_rows[row]];
  for (size_t i = 0; i < refs.size(); ++i) refs[i].reserve(counts[i]);
  for (Row row = model.lanes.host_begin[lane]; row < model.lanes.host_end[lane]; ++row) {
    refs[host_rows[row]].push_back(row);
  }
  for (Row row = model.lanes.device_begin[lane]; row < model.lanes.device_end[lane]; ++row) {
    refs[device_rows[row]].push_back(row | kDeviceBit);
  }
  return refs;
}

}  // namespace

TimelineRow::TimelineRow(const Model& model, std::vector<uint32_t> refs) : refs_(std::move(refs)) {
  starts_.resize(refs_.size());
  sums_.resize(refs_.size() + 1);
  for (size_t i = 0; i < refs_.size(); ++i) {
    const SliceRef slice = slice_of(refs_[i]);
    starts_[i] = slice.on_device ? model.device_slices.start_ns[slice.row] : model.host_slices.start_ns[slice.row];
    const int64_t duration =
        slice.on_device ? model.device_slices.duration_ns[slice.row] : model.host_slices.duration_ns[slice.row];
    sums_[i + 1] = sums_[i] + static_cast<uint64_t>(duration);
  }
  build_grid();
  build_longest();
}

void TimelineRow::build_grid() {
  const auto last = static_cast<uint64_t>(starts_.empty() ? 0 : starts_.back());
  const uint64_t most_bins = std::max<uint64_t>(16, refs_.size() / kSlicesPerBin);
  while ((last >> grid_level_) + 2 > most_bins) ++grid_level_;
  grid_.resize((last >> grid_level_) + 2);
  uint32_t slice = 0;
  for (uint64_t bin = 0; bin < grid_.size(); ++bin) {
    while (slice < starts_.size() && (static_cast<uint64_t>(starts_[slice]) >> grid_level_) < bin) ++slice;
    grid_[bin] = slice;
  }
}

void TimelineRow::build_longest() {
  if (refs_.empty()) return;
  const size_t bins = grid_.size() - 1;
  const auto longer = [this](uint32_t a, uint32_t b) {
    if (a == kNone || b == kNone) return a == kNone ? b : a;
    return duration_ns(b) > duration_ns(a) ? b : a;
  };
  std::vector<uint32_t>& finest = longest_.emplace_back(bins, kNone);
  for (size_t bin = 0; bin < bins; ++bin) {
    for (uint32_t i = grid_[bin]; i < grid_[bin + 1]; ++i) {
      if (!is_long(i, grid_level_)) finest[bin] = longer(finest[bin], i);
    }
  }
  // A bin of the next level: the two longest of its halves, and their last slices if they are short by its measure. The
  // last level has one bin by whose measure every slice is short.
  while (longest_.back().size() > 1 ||
         is_long(refs_.size() - 1, grid_level_ + static_cast<uint32_t>(longest_.size()) - 1)) {
    const uint32_t level = grid_level_ + static_cast<uint32_t>(longest_.size());
    const std::vector<uint32_t>& finer = longest_.back();
    std::vector<uint32_t> coarser((finer.size() + 1) / 2, kNone);
    for (size_t half = 0; half < finer.size(); ++half) {
      uint32_t& best = coarser[half / 2];
      best = longer(best, finer[half]);
      const size_t end = first_in(half + 1, level - 1);
      if (end == first_in(half, level - 1)) continue;
      const auto last = static_cast<uint32_t>(end - 1);
      if (!is_long(last, level)) best = longer(best, last);
    }
    longest_.push_back(std::move(coarser));
  }
}

size_t TimelineRow::first_in(uint64_t bin, uint32_t level) const {
  if (level >= grid_level_) {
    const uint32_t shift = level - grid_level_;
    const uint64_t last = grid_.size() - 1;
    return bin > (last >> shift) ? refs_.size() : grid_[std::min(bin << shift, last)];
  }
  const uint64_t coarse = bin >> (grid_level_ - level);
  if (coarse + 1 >= grid_.size()) return refs_.size();
  const auto begin = starts_.begin() + grid_[coarse];
  const auto end = starts_.begin() + grid_[coarse + 1];
  return static_cast<size_t>(std::lower_bound(begin, end, static_cast<int64_t>(bin << level)) - starts_.begin());
}

size_t TimelineRow::longest_in(uint64_t bin, uint32_t level, size_t begin, size_t end) const {
  if (level >= grid_level_) {
    const std::vector<uint32_t>& bins = longest_[std::min<size_t>(level - grid_level_, longest_.size() - 1)];
    if (bin < bins.size() && bins[bin] != kNone) return bins[bin];
  }
  size_t best = begin;
  for (size_t i = begin + 1; i < end; ++i) {
    if (duration_ns(i) > duration_ns(best)) best = i;
  }
  return best;
}

Timeline::Timeline(const Model& model, unsigned threads)
    : lanes_(model.lanes.size()), host_rows_(model.host_slices.size()), device_rows_(model.device_slices.size()) {
  std::vector<std::vector<std::vector<uint32_t>>> refs(model.lanes.size());
  share_out(refs.size(), threads, [&](size_t lane) { refs[lane] = lay_out(model, lane, host_rows_, device_rows_); });
  struct Place {
    size_t lane;
    size_t row;
  };
  std::vector<Place> places;
  for (size_t lane = 0; lane < refs.size(); ++lane) {
    for (size_t row = 0; row < refs[lane].size(); ++row) places.push_back({lane, row});
    lanes_[lane].rows.reserve(refs[lane].size());
  }
  std::vector<std::vector<TimelineRow>> built(
      places.size());  // each by one thread; a vector, as a row has no empty state
  share_out(places.size(), threads,
            [&](size_t i) { built[i].emplace_back(model, std::move(refs[places[i].lane][places[i].row])); });
  for (size_t i = 0; i < places.size(); ++i) lanes_[places[i].lane].rows.push_back(std::move(built[i].front()));

  for (Row row = 0; row < model.host_slices.size(); ++row) end_ns_ = std::max(end_ns_, model.host_slices.end_ns(row));
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    end_ns_ = std::max(end_ns_, model.device_slices.end_ns(row));
  }
}

}  // namespace firelane::serve
