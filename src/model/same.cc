#include "model/same.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/catalog.h"

namespace firelane {

namespace {

bool is_same(const Cell& x, const Cell& y) {
  return x.kind == y.kind && x.integer == y.integer && x.text == y.text &&
         (x.real == y.real || (std::isnan(x.real) && std::isnan(y.real)));
}

std::string words(const Cell& cell) {
  switch (cell.kind) {
    case Cell::Kind::kNull: return "none";
    case Cell::Kind::kInteger: return std::to_string(cell.integer);
    case Cell::Kind::kReal: return std::to_string(cell.real);
    case Cell::Kind::kText: break;
  }
  return std::string(cell.text);
}
std::string words(const std::string& text) { return text; }
std::string words(std::integral auto number) { return std::to_string(number); }

// Details are numbered in the order of reading: they are compared through their slices, not by number.
bool is_number_of_reading(const ColumnInfo& column) {
  return column.name == "detail" || column.name == "comm" || column.use == Use::kSource;
}

class Comparer {
 public:
  Comparer(const Model& a, const Model& b) : a_(a), b_(b) {}

  std::optional<std::string> run() {
    info();
    for (const TableInfo& t : model_tables()) {
      if (t.name == "host_slices" || t.name == "device_slices") {
        table(t);
        slices(t.name == "device_slices");
      } else if (t.name == "flows") {
        flows();
      } else if (t.name == "data_dependencies") {
        data_dependencies();
      } else if (t.name == "counter_samples") {
        counters();
      } else if (t.name.ends_with("_details") || t.name == "counter_tracks") {
        continue;  // compared with what they belong to
      } else {
        table(t);
      }
    }
    return std::move(difference_);
  }

  std::optional<std::string> run(const TableInfo& t) {
    table(t);
    return std::move(difference_);
  }

 private:
  void report(std::string_view what, size_t row, const std::string& x, const std::string& y) {
    if (difference_) return;
    difference_ = std::string(what) + "[" + std::to_string(row) + "]: " + x + " / " + y;
  }

  template <typename T>
  void value(std::string_view what, size_t row, const T& x, const T& y) {
    if (!difference_ && !(x == y)) report(what, row, words(x), words(y));
  }

  Cell ours(const TableInfo& t, const ColumnInfo& column, Row row) { return cell_of(a_, column, t.of(a_), row); }
  Cell theirs(const TableInfo& t, const ColumnInfo& column, Row row) { return cell_of(b_, column, t.of(b_), row); }

  // Rows have the same number in both.
  void table(const TableInfo& t) {
    const std::string name(t.name);
    value(name + " rows", 0, t.size(a_), t.size(b_));
    for (const ColumnInfo& column : t.columns) {
      if (is_number_of_reading(column)) continue;
      for (Row row = 0; !difference_ && row < t.size(a_); ++row) {
        const Cell x = ours(t, column, row);
        const Cell y = theirs(t, column, row);
        if (!is_same(x, y)) report(name + "." + std::string(column.name), row, words(x), words(y));
      }
    }
  }

  // The details of one slice, in row `i` of the one model's table and row `k` of the other's.
  void details(std::string_view name, Row slice, Row i, Row k) {
    const std::string label(name.substr(0, name.find('_')));
    value(label + " present at slice", slice, i == kNoRow, k == kNoRow);
    if (difference_ || i == kNoRow) return;
    const TableInfo& t = *std::find_if(model_tables().begin(), model_tables().end(),
                                       [&](const TableInfo& each) { return each.name == name; });
    for (const ColumnInfo& column : t.columns) {
      if (is_number_of_reading(column) || column.name == "slice") continue;
      const Cell x = ours(t, column, i);
      const Cell y = theirs(t, column, k);
      if (!is_same(x, y)) report(label + " " + std::string(column.name) + " of slice", slice, words(x), words(y));
    }
  }

  static std::string_view details_of(HostKind kind) { return is_call(kind) ? "call_details" : "op_details"; }
  static std::string_view details_of(DeviceKind kind) {
    if (kind == DeviceKind::kKernel) return "kernel_details";
    return kind == DeviceKind::kSync ? "sync_details" : "copy_details";
  }

  // Ops are numbered in the order of reading: by their slices.
  static std::vector<std::tuple<Row, int64_t, DataUse, int64_t>> data_of(const Model& m) {
    std::vector<std::tuple<Row, int64_t, DataUse, int64_t>> rows;
    const DataDependencies& data = m.data_dependencies;
    for (Row i = 0; i < data.size(); ++i)
      rows.emplace_back(m.op_details.slice[data.op[i]], data.producer_node[i], data.use[i], data.bytes[i]);
    std::sort(rows.begin(), rows.end());
    return rows;
  }
  void data_dependencies() {
    const auto x = data_of(a_), y = data_of(b_);
    value("data_dependencies rows", 0, x.size(), y.size());
    for (size_t i = 0; !difference_ && i < x.size(); ++i) {
      if (x[i] != y[i]) report("data_dependencies of slice", std::get<0>(x[i]), "one", "another");
    }
  }

  void slices(bool on_device) { on_device ? slices_of(&Model::device_slices) : slices_of(&Model::host_slices); }

  template <typename Slices>
  void slices_of(Slices Model::* table) {
    const Slices& x = a_.*table;
    const Slices& y = b_.*table;
    for (Row row = 0; !difference_ && row < x.size(); ++row) {
      details(details_of(x.kind[row]), row, x.detail[row], y.detail[row]);
      if (!difference_) details("comm_details", row, comm_of(a_, x, row), comm_of(b_, y, row));
    }
  }

  static Row comm_of(const Model&, const DeviceSlices& slices, Row row) { return slices.comm[row]; }
  static Row comm_of(const Model& m, const HostSlices& slices, Row row) {
    const bool has_op = slices.detail[row] != kNoRow && !is_call(slices.kind[row]);
    return has_op ? m.op_details.comm[slices.detail[row]] : kNoRow;
  }

  static std::vector<MetadataEntry> recorded_metadata(const Model& m) {
    std::vector<MetadataEntry> entries;
    for (const MetadataEntry& entry : m.info.metadata) {
      // The last three are compared by their meaning; the host's name is a note of ours elsewhere.
      const auto own = {"schemaVersion",    "displayTimeUnit", "traceName",          "host_name",
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
    const CatalogTable& devices = *find_catalog_table("devices");
    for (Row row = 0; !difference_ && row < a_.info.devices.size(); ++row) {
      for (const CatalogColumn& column : devices.columns) {
        const Cell x = column.cell(a_, row);
        const Cell y = column.cell(b_, row);
        if (!is_same(x, y)) report("info.devices." + column.name, row, words(x), words(y));
      }
    }
    const DistributedInfo& x = a_.info.distributed;
    const DistributedInfo& y = b_.info.distributed;
    value("info.distributed.present", 0, x.present, y.present);
    value("info.distributed.backend", 0, x.backend, y.backend);
    value("info.distributed.rank", 0, x.rank, y.rank);
    value("info.distributed.world_size", 0, x.world_size, y.world_size);
    value("info.distributed.nccl_version", 0, x.nccl_version, y.nccl_version);
    value("info.distributed.local_rank", 0, x.local_rank, y.local_rank);
    value("info.distributed.groups", 0, x.groups.size(), y.groups.size());
    for (size_t i = 0; !difference_ && i < x.groups.size(); ++i) {
      value("info.distributed.groups.name", i, x.groups[i].name, y.groups[i].name);
      value("info.distributed.groups.size", i, x.groups[i].size, y.groups[i].size);
      value("info.distributed.groups.first_sequence", i, x.groups[i].first_sequence, y.groups[i].first_sequence);
    }
    const auto ours = recorded_metadata(a_);
    const auto theirs = recorded_metadata(b_);
    value("info.metadata", 0, ours.size(), theirs.size());
    for (size_t i = 0; !difference_ && i < ours.size(); ++i) {
      value("info.metadata.key", i, ours[i].key, theirs[i].key);
      value("info.metadata.json", i, ours[i].json, theirs[i].json);
    }
  }

  // Tracks are numbered in the order in which they were met: samples are compared with what their track is, in an order
  // of their own.
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
    const auto text = [](const Sample& s) {
      const auto& [time_ns, pid, name, series, value] = s;
      return std::to_string(time_ns) + " " + pid + " " + std::string(name) + " " + std::string(series) + " " +
             std::to_string(value);
    };
    compare_sorted("counter_samples", samples(a_), samples(b_), text);
  }

  // Sorted by category, which is numbered in the order of reading: compared in an order of its own.
  void flows() {
    using Flow = std::tuple<std::string_view, std::string_view, int64_t, bool, Row, bool, Row>;
    const auto arrows = [](const Model& m) {
      std::vector<Flow> result;
      const Flows& f = m.flows;
      for (size_t i = 0; i < f.size(); ++i) {
        result.emplace_back(m.text(f.category[i]), m.text(f.name[i]), f.flow_id[i], f.from[i].on_device, f.from[i].row,
                            f.to[i].on_device, f.to[i].row);
      }
      std::sort(result.begin(), result.end());
      return result;
    };
    const auto text = [](const Flow& flow) {
      const auto& [category, name, id, from_device, from, to_device, to] = flow;
      return std::string(category) + " " + std::string(name) + " " + std::to_string(id) +
             (from_device ? " device " : " host ") + std::to_string(from) + (to_device ? " device " : " host ") +
             std::to_string(to);
    };
    compare_sorted("flows", arrows(a_), arrows(b_), text);
  }

  template <typename T, typename Text>
  void compare_sorted(std::string_view name, const std::vector<T>& ours, const std::vector<T>& theirs,
                      const Text& text) {
    value(std::string(name) + " rows", 0, ours.size(), theirs.size());
    for (size_t i = 0; !difference_ && i < ours.size(); ++i) {
      if (ours[i] != theirs[i]) report(name, i, text(ours[i]), text(theirs[i]));
    }
  }

  const Model& a_;
  const Model& b_;
  std::optional<std::string> difference_;
};

}  // namespace

std::optional<std::string> first_difference(const Model& a, const Model& b) { return Comparer(a, b).run(); }
std::optional<std::string> first_difference(const Model& a, const Model& b, const TableInfo& table) {
  return Comparer(a, b).run(table);
}

}  // namespace firelane
