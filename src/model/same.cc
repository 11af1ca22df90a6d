#include "model/same.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "model/columns.h"

namespace firelane {

namespace {

class Comparer {
 public:
  Comparer(const Model& a, const Model& b) : a_(a), b_(b) {}

  std::optional<std::string> run() {
    info();
    table("lanes", kLaneColumns, a_.lanes, b_.lanes);
    host_slices();
    device_slices();
    table("memory_events", kMemoryEventColumns, a_.memory_events, b_.memory_events);
    table("instants", kInstantColumns, a_.instants, b_.instants);
    counters();
    flows();
    table("steps", kStepColumns, a_.steps, b_.steps);
    return std::move(difference_);
  }

 private:
  void report(std::string_view what, size_t row, const std::string& x, const std::string& y) {
    if (difference_) return;
    difference_ = std::string(what) + "[" + std::to_string(row) + "]: " + x + " / " + y;
  }

  std::string words(const Model&, std::integral auto value) const { return std::to_string(value); }
  std::string words(const Model&, std::floating_point auto value) const { return std::to_string(value); }
  std::string words(const Model& m, StringId id) const { return std::string(m.text(id)); }
  std::string words(const Model& m, const TraceId& id) const { return m.id_text(id); }
  std::string words(const Model&, const SliceRef& ref) const {
    return (ref.on_device ? "device " : "host ") + std::to_string(ref.row);
  }
  std::string words(const Model&, const std::string& text) const { return text; }
  template <typename T>
    requires std::is_enum_v<T>
  std::string words(const Model&, T value) const {
    return std::to_string(static_cast<int64_t>(value));
  }

  template <typename T>
  bool equal(const T& x, const T& y) const {
    if constexpr (std::is_same_v<T, StringId>) {
      return a_.text(x) == b_.text(y);
    } else if constexpr (std::is_same_v<T, TraceId>) {
      return x.number == y.number && a_.text(x.text) == b_.text(y.text);
    } else if constexpr (std::is_floating_point_v<T>) {
      return x == y || (std::isnan(x) && std::isnan(y));
    } else {
      return x == y;
    }
  }

  template <typename T>
  void value(std::string_view what, size_t row, const T& x, const T& y) {
    if (!difference_ && !equal(x, y)) report(what, row, words(a_, x), words(b_, y));
  }

  // The same column of both models, where rows have the same number in both.
  template <typename T>
  void column(std::string_view what, const std::vector<T>& x, const std::vector<T>& y) {
    value(std::string(what) + " rows", 0, x.size(), y.size());
    for (size_t row = 0; !difference_ && row < x.size(); ++row) value(what, row, x[row], y[row]);
  }

  // Details are numbered in the order of reading: they are compared through their slices, not by number.
  static bool is_detail_number(std::string_view column) { return column == "detail" || column == "comm"; }

  template <typename Table>
  void table(std::string_view name, const auto& columns, const Table& x, const Table& y) {
    each_column(columns, [&](const auto& c) {
      if (!is_detail_number(c.name)) column(std::string(name) + "." + std::string(c.name), c.of(x), c.of(y));
    });
  }

  // The details of one slice, in row `i` of the one model's table and row `k` of the other's.
  template <typename Table>
  void details(std::string_view name, Row slice, const auto& columns, const Table& x, Row i, const Table& y, Row k) {
    each_column(columns, [&](const auto& c) {
      if (c.name == "slice" || is_detail_number(c.name)) return;
      const auto& ours = c.of(x)[i];
      const auto& theirs = c.of(y)[k];
      if (equal(ours, theirs)) return;
      report(std::string(name) + " " + std::string(c.name) + " of slice", slice, words(a_, ours), words(b_, theirs));
    });
  }

  static std::vector<MetadataEntry> recorded_metadata(const Model& m) {
    std::vector<MetadataEntry> entries;
    for (const MetadataEntry& entry : m.info.metadata) {
      // The last three are compared by their meaning.
      const auto own = {"schemaVersion",    "displayTimeUnit", "traceName",
                        "deviceProperties", "distributedInfo", "baseTimeNanoseconds"};
      if (std::find(own.begin(), own.end(), entry.key) == own.end()) entries.push_back(entry);
    }
    return entries;
  }

  void info() {
    value("info.start_ns", 0, a_.info.start_ns, b_.info.start_ns);
    value("info.duration_ns", 0, a_.info.duration_ns, b_.info.duration_ns);
    value("info.base_time_ns", 0, a_.info.base_time_ns, b_.info.base_time_ns);
    value("info.devices", 0, a_.info.devices.size(), b_.info.devices.size());
    for (size_t i = 0; !difference_ && i < a_.info.devices.size(); ++i) device(i);
    const DistributedInfo& x = a_.info.distributed;
    const DistributedInfo& y = b_.info.distributed;
    value("info.distributed.present", 0, x.present, y.present);
    value("info.distributed.backend", 0, x.backend, y.backend);
    value("info.distributed.rank", 0, x.rank, y.rank);
    value("info.distributed.world_size", 0, x.world_size, y.world_size);
    value("info.distributed.nccl_version", 0, x.nccl_version, y.nccl_version);
    const auto ours = recorded_metadata(a_);
    const auto theirs = recorded_metadata(b_);
    value("info.metadata", 0, ours.size(), theirs.size());
    for (size_t i = 0; !difference_ && i < ours.size(); ++i) {
      value("info.metadata.key", i, ours[i].key, theirs[i].key);
      value("info.metadata.json", i, ours[i].json, theirs[i].json);
    }
  }

  void device(size_t i) {
    const auto fields = [](const DeviceProperties& d) {
      return std::vector<int64_t>{d.id,
                                  d.total_memory_bytes,
                                  d.compute_major,
                                  d.compute_minor,
                                  d.multiprocessors,
                                  d.max_threads_per_multiprocessor,
                                  d.registers_per_multiprocessor,
                                  d.shared_memory_per_multiprocessor_bytes,
                                  d.warp_size};
    };
    value("info.devices.name", i, a_.info.devices[i].name, b_.info.devices[i].name);
    column("info.devices", fields(a_.info.devices[i]), fields(b_.info.devices[i]));
  }

  void host_slices() {
    const HostSlices& x = a_.host_slices;
    const HostSlices& y = b_.host_slices;
    table("host_slices", kHostSliceColumns, x, y);
    for (Row row = 0; !difference_ && row < x.size(); ++row) {
      value("host_slices.detail present", row, x.detail[row] == kNoRow, y.detail[row] == kNoRow);
      if (difference_ || x.detail[row] == kNoRow) continue;
      const Row i = x.detail[row];
      const Row k = y.detail[row];
      if (is_call(x.kind[row])) {
        details("call", row, kCallDetailColumns, a_.call_details, i, b_.call_details, k);
      } else {
        details("op", row, kOpDetailColumns, a_.op_details, i, b_.op_details, k);
        comm(row, a_.op_details.comm[i], b_.op_details.comm[k]);
      }
    }
  }

  void comm(Row row, Row i, Row k) {
    value("comm present at slice", row, i == kNoRow, k == kNoRow);
    if (difference_ || i == kNoRow) return;
    details("comm", row, kCommDetailColumns, a_.comm_details, i, b_.comm_details, k);
  }

  void device_slices() {
    const DeviceSlices& x = a_.device_slices;
    const DeviceSlices& y = b_.device_slices;
    table("device_slices", kDeviceSliceColumns, x, y);
    for (Row row = 0; !difference_ && row < x.size(); ++row) {
      comm(row, x.comm[row], y.comm[row]);
      value("device_slices.detail present", row, x.detail[row] == kNoRow, y.detail[row] == kNoRow);
      if (difference_ || x.detail[row] == kNoRow) continue;
      const Row i = x.detail[row];
      const Row k = y.detail[row];
      const DeviceKind kind = x.kind[row];
      if (kind == DeviceKind::kKernel)
        details("kernel", row, kKernelDetailColumns, a_.kernel_details, i, b_.kernel_details, k);
      if (kind == DeviceKind::kCopy || kind == DeviceKind::kSet)
        details("copy", row, kCopyDetailColumns, a_.copy_details, i, b_.copy_details, k);
      if (kind == DeviceKind::kSync) details("sync", row, kSyncDetailColumns, a_.sync_details, i, b_.sync_details, k);
    }
  }

  // Tracks are numbered in the order in which they were met: compared by what they are.
  void counters() {
    using Sample = std::tuple<int64_t, std::string, std::string_view, std::string_view, double>;
    const auto samples = [](const Model& m) {
      std::vector<Sample> result;
      for (size_t i = 0; i < m.counter_samples.size(); ++i) {
        const uint32_t track = m.counter_samples.track[i];
        result.emplace_back(m.counter_samples.time_ns[i], m.id_text(m.counter_tracks.pid[track]),
                            m.text(m.counter_tracks.name[track]), m.text(m.counter_tracks.series[track]),
                            m.counter_samples.value[i]);
      }
      std::sort(result.begin(), result.end());
      return result;
    };
    const auto ours = samples(a_);
    const auto theirs = samples(b_);
    value("counter_samples rows", 0, ours.size(), theirs.size());
    for (size_t i = 0; !difference_ && i < ours.size(); ++i) {
      value("counter_samples.time_ns", i, std::get<0>(ours[i]), std::get<0>(theirs[i]));
      value("counter_tracks.pid of sample", i, std::get<1>(ours[i]), std::get<1>(theirs[i]));
      value("counter_tracks.name of sample", i, std::string(std::get<2>(ours[i])), std::string(std::get<2>(theirs[i])));
      value("counter_tracks.series of sample", i, std::string(std::get<3>(ours[i])),
            std::string(std::get<3>(theirs[i])));
      value("counter_samples.value", i, std::get<4>(ours[i]), std::get<4>(theirs[i]));
    }
  }

  // Sorted by category, which is numbered in the order of reading: compared in an order of its own.
  void flows() {
    const auto order = [](const Model& m) {
      std::vector<size_t> rows(m.flows.size());
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
      const auto key = [&](size_t i) {
        const Flows& f = m.flows;
        return std::tuple(m.text(f.category[i]), m.text(f.name[i]), f.id[i], f.from[i].on_device, f.from[i].row,
                          f.to[i].on_device, f.to[i].row);
      };
      std::sort(rows.begin(), rows.end(), [&](size_t i, size_t k) { return key(i) < key(k); });
      return rows;
    };
    value("flows rows", 0, a_.flows.size(), b_.flows.size());
    if (difference_) return;
    const auto ours = order(a_);
    const auto theirs = order(b_);
    for (size_t i = 0; !difference_ && i < ours.size(); ++i) {
      const size_t x = ours[i];
      const size_t y = theirs[i];
      value("flows.category", i, a_.flows.category[x], b_.flows.category[y]);
      value("flows.name", i, a_.flows.name[x], b_.flows.name[y]);
      value("flows.id", i, a_.flows.id[x], b_.flows.id[y]);
      value("flows.from", i, a_.flows.from[x], b_.flows.from[y]);
      value("flows.to", i, a_.flows.to[x], b_.flows.to[y]);
    }
  }

  const Model& a_;
  const Model& b_;
  std::optional<std::string> difference_;
};

}  // namespace

std::optional<std::string> first_difference(const Model& a, const Model& b) { return Comparer(a, b).run(); }

}  // namespace firelane
