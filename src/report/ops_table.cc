#include "report/ops_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/utf8.h"
#include "base/visible_text.h"

namespace firelane::report {

namespace {

struct OrderName {
  OpsOrder order;
  std::string_view name;
  double (*value)(const analyze::OpsRow& row);
};

template <int64_t analyze::OpsRow::* Field>
double field(const analyze::OpsRow& row) {
  return static_cast<double>(row.*Field);
}

constexpr std::array kOrders = {
    OrderName{OpsOrder::kCpuTime, "cpu_time", [](const analyze::OpsRow& row) { return row.cpu_time_ns(); }},
    OrderName{OpsOrder::kDeviceTime, "device_time", [](const analyze::OpsRow& row) { return row.device_time_ns(); }},
    OrderName{OpsOrder::kCpuTimeTotal, "cpu_time_total", field<&analyze::OpsRow::cpu_time_total_ns>},
    OrderName{OpsOrder::kDeviceTimeTotal, "device_time_total", field<&analyze::OpsRow::device_time_total_ns>},
    OrderName{OpsOrder::kSelfCpuTimeTotal, "self_cpu_time_total", field<&analyze::OpsRow::self_cpu_time_total_ns>},
    OrderName{OpsOrder::kSelfDeviceTimeTotal, "self_device_time_total",
              field<&analyze::OpsRow::self_device_time_total_ns>},
    OrderName{OpsOrder::kCpuMemoryUsage, "cpu_memory_usage", field<&analyze::OpsRow::cpu_memory_usage_bytes>},
    OrderName{OpsOrder::kDeviceMemoryUsage, "device_memory_usage", field<&analyze::OpsRow::device_memory_usage_bytes>},
    OrderName{OpsOrder::kSelfCpuMemoryUsage, "self_cpu_memory_usage",
              field<&analyze::OpsRow::self_cpu_memory_usage_bytes>},
    OrderName{OpsOrder::kSelfDeviceMemoryUsage, "self_device_memory_usage",
              field<&analyze::OpsRow::self_device_memory_usage_bytes>},
    OrderName{OpsOrder::kCount, "count", field<&analyze::OpsRow::count>},
    OrderName{OpsOrder::kFlops, "flops", field<&analyze::OpsRow::flops>},
    OrderName{OpsOrder::kFlopsTotal, "flops_total", field<&analyze::OpsRow::flops_total>},
    OrderName{OpsOrder::kSelfFlops, "self_flops", field<&analyze::OpsRow::self_flops>},
};

// Lengths are in characters, as Python's len().
size_t length_of(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += std::max<size_t>(utf8_length(text.substr(at)), 1)) ++count;
  return count;
}

std::string_view first_characters(std::string_view text, size_t count) {
  size_t at = 0;
  for (; count > 0 && at < text.size(); --count) at += std::max<size_t>(utf8_length(text.substr(at)), 1);
  return text.substr(0, at);
}

std::string_view last_characters(std::string_view text, size_t count) {
  const size_t length = length_of(text);
  return length <= count ? text : text.substr(first_characters(text, length - count).size());
}

std::string time_text(double ns, TimeUnit unit) {
  const double us = ns / 1000;
  if (unit == TimeUnit::kSeconds || (unit == TimeUnit::kBest && us >= 1e6)) return fmt::format("{:.3f}s", us / 1e6);
  if (unit == TimeUnit::kMilliseconds || (unit == TimeUnit::kBest && us >= 1e3))
    return fmt::format("{:.3f}ms", us / 1e3);
  return fmt::format("{:.3f}us", us);
}

std::string share_text(int64_t part_ns, int64_t whole_ns) {
  if (whole_ns == 0) return "NaN";
  return fmt::format("{:.2f}%", static_cast<double>(part_ns) * 100.0 / static_cast<double>(whole_ns));
}

std::string memory_text(int64_t bytes) {
  constexpr double kKilo = 1024;
  const auto number = static_cast<double>(bytes);
  const double size = std::abs(number);
  if (size >= kKilo * kKilo * kKilo) return fmt::format("{:.2f} GB", number / (kKilo * kKilo * kKilo));
  if (size >= kKilo * kKilo) return fmt::format("{:.2f} MB", number / (kKilo * kKilo));
  if (size >= kKilo) return fmt::format("{:.2f} KB", number / kKilo);
  return fmt::format("{} B", bytes);
}

struct FlopsScale {
  double factor;
  std::string_view unit;
};

// One scale for the column, by its smallest number.
FlopsScale flops_scale(int64_t smallest) {
  constexpr std::array<std::string_view, 6> kUnits = {"FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"};
  const double thousands = std::clamp(std::log10(static_cast<double>(smallest)) / 3, 0.0, 5.0);
  return {std::pow(10, std::floor(thousands) * -3.0), kUnits[static_cast<size_t>(thousands)]};
}

// Lays out text: columns of a fixed width, two spaces after each.
class Layout {
 public:
  void add_column(std::string label, size_t width, bool left = false) {
    columns_.push_back({std::move(label), width, left});
  }
  size_t size() const { return columns_.size(); }
  size_t line_length() const {
    size_t length = 0;
    for (const ColumnShape& column : columns_) length += column.width + 2;
    return length - 2;
  }
  std::string rule() const {
    std::string line;
    for (const ColumnShape& column : columns_) line += std::string(column.width, '-') + "  ";
    return line + "\n";
  }
  std::string heading() const {
    std::vector<std::string> labels;
    for (const ColumnShape& column : columns_) labels.push_back(column.label);
    return row(labels);
  }
  std::string row(const std::vector<std::string>& cells) const {
    std::string line;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const size_t length = length_of(cells[c]);
      const std::string padding(columns_[c].width > length ? columns_[c].width - length : 0, ' ');
      line += columns_[c].left ? cells[c] + padding : padding + cells[c];
      line += "  ";
    }
    return line + "\n";
  }

 private:
  struct ColumnShape {
    std::string label;
    size_t width;
    bool left;
  };
  std::vector<ColumnShape> columns_;
};

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

bool is_on_side(const analyze::OpsRow& row, OpsSide side) {
  return side == OpsSide::kBoth || row.on_device == (side == OpsSide::kDevice);
}

// Which columns there are; decided by all rows, whether shown or not.
class OpsTablePrinter {
 public:
  OpsTablePrinter(const analyze::OpsResult& result, const OpsTableOptions& options)
      : result_(result), options_(options), device_(upper(result.device_name)) {
    size_t longest_name = 0;
    size_t longest_shapes = 0;
    size_t longest_frame = 0;
    int64_t smallest_flops = 0;
    for (const analyze::OpsRow& row : result.rows) {
      if (!is_on_side(row, options.side)) continue;
      has_device_time_ |= row.self_device_time_total_ns > 0;
      has_device_memory_ |= row.self_device_memory_usage_bytes > 0;
      has_shapes_ |= !row.input_shapes.empty() && row.input_shapes != "[]";
      longest_name = std::max(longest_name, length_of(visible_text(row.name)));
      longest_shapes = std::max(longest_shapes, length_of(row.input_shapes));
      for (const std::string& frame : row.stack)
        longest_frame = std::max(longest_frame, length_of(visible_text(frame)));
      if (row.flops > 0) smallest_flops = smallest_flops == 0 ? row.flops : std::min(smallest_flops, row.flops);
    }
    const auto width = [](size_t longest, std::optional<size_t> limit) {
      return std::min(longest + 4, limit.value_or(longest + 4));
    };
    has_stack_ = longest_frame > 0;
    has_flops_ = options.with_flops && smallest_flops > 0;
    shapes_width_ = width(longest_shapes, options.max_shapes_width);
    source_width_ = width(longest_frame, options.max_source_width);
    add_columns(width(longest_name, options.max_name_width), smallest_flops);
  }

  std::string print() const {
    std::string out;
    const std::string bar = std::string(layout_.line_length(), '=') + "\n";
    if (options_.header) out += bar + *options_.header + "\n";
    if (options_.top_level_only) out += bar + "This report only display top-level ops statistics\n";
    out += layout_.rule() + layout_.heading() + layout_.rule();
    for (const analyze::OpsRow* row : shown_ops(result_, options_)) out += row_text(*row);
    out += layout_.rule();
    out += fmt::format("Self CPU time total: {}\n", time(result_.self_cpu_time_total_ns));
    if (has_device_time_)
      out += fmt::format("Self {} time total: {}\n", device_, time(result_.self_device_time_total_ns));
    return out;
  }

 private:
  void add_columns(size_t name_width, int64_t smallest_flops) {
    constexpr size_t kWidth = 12;
    layout_.add_column("Name", name_width);
    for (const char* label : {"Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"})
      layout_.add_column(label, kWidth);
    if (has_device_time_) {
      layout_.add_column("Self " + device_, kWidth);
      layout_.add_column("Self " + device_ + " %", kWidth);
      layout_.add_column(device_ + " total", kWidth);
      layout_.add_column(device_ + " time avg", kWidth);
    }
    if (result_.has_memory) {
      layout_.add_column("CPU Mem", kWidth);
      layout_.add_column("Self CPU Mem", kWidth);
      if (shows_device_memory()) {
        layout_.add_column(device_ + " Mem", kWidth);
        layout_.add_column("Self " + device_ + " Mem", kWidth);
      }
    }
    layout_.add_column("# of Calls", kWidth);
    if (has_shapes_) layout_.add_column("Input Shapes", shapes_width_);
    if (has_stack_) {
      source_column_ = layout_.size();
      layout_.add_column("Source Location", source_width_, /*left=*/true);
    }
    if (has_flops_) {
      flops_ = flops_scale(smallest_flops);
      layout_.add_column(fmt::format("Total {}", flops_.unit), kWidth);
    }
  }

  bool shows_device_memory() const { return has_device_memory_ && !result_.device_name.empty(); }
  std::string time(int64_t ns) const { return time_text(static_cast<double>(ns), options_.time_unit); }

  std::string name_text(const analyze::OpsRow& row) const {
    std::string name = visible_text(row.name);
    if (!options_.max_name_width) return name;
    const size_t limit = *options_.max_name_width;
    const size_t kept = limit > 3 ? limit - 3 : 0;
    return length_of(name) + 3 >= limit ? std::string(first_characters(name, kept)) + "..." : name;
  }

  std::string frame_text(const std::string& frame) const {
    const std::string text = visible_text(frame);
    if (length_of(text) <= source_width_) return text;
    const std::string_view end = last_characters(text, source_width_);
    return length_of(end) > 3 ? "..." + std::string(end.substr(first_characters(end, 3).size())) : std::string(end);
  }

  std::string row_text(const analyze::OpsRow& row) const {
    std::vector<std::string> cells = {
        name_text(row),
        share_text(row.self_cpu_time_total_ns, result_.self_cpu_time_total_ns),
        time(row.self_cpu_time_total_ns),
        row.is_async ? "0" : share_text(row.cpu_time_total_ns, result_.self_cpu_time_total_ns),
        time(row.cpu_time_total_ns),
        time_text(row.cpu_time_ns(), options_.time_unit),
    };
    if (has_device_time_) {
      cells.push_back(time(row.self_device_time_total_ns));
      cells.push_back(share_text(row.self_device_time_total_ns, result_.self_device_time_total_ns));
      cells.push_back(time(row.device_time_total_ns));
      cells.push_back(time_text(row.device_time_ns(), options_.time_unit));
    }
    if (result_.has_memory) {
      cells.push_back(memory_text(row.cpu_memory_usage_bytes));
      cells.push_back(memory_text(row.self_cpu_memory_usage_bytes));
      if (shows_device_memory()) {
        cells.push_back(memory_text(row.device_memory_usage_bytes));
        cells.push_back(memory_text(row.self_device_memory_usage_bytes));
      }
    }
    cells.push_back(std::to_string(row.count));
    if (has_shapes_) cells.emplace_back(first_characters(row.input_shapes, shapes_width_));
    if (has_stack_) cells.push_back(row.stack.empty() ? "" : frame_text(row.stack[0]));
    if (has_flops_)
      cells.push_back(row.flops > 0 ? fmt::format("{:8.3f}", static_cast<double>(row.flops) * flops_.factor) : "--");
    return layout_.row(cells) + (has_stack_ ? more_frames(row) : "");
  }

  // The other frames of the stack below each other, then an empty line.
  std::string more_frames(const analyze::OpsRow& row) const {
    std::string out;
    std::vector<std::string> cells(layout_.size());
    for (size_t i = 1; i < row.stack.size(); ++i) {
      cells[source_column_] = frame_text(row.stack[i]);
      out += layout_.row(cells);
    }
    cells[source_column_].clear();
    return out + layout_.row(cells);
  }

  const analyze::OpsResult& result_;
  const OpsTableOptions& options_;
  std::string device_;
  bool has_device_time_ = false;
  bool has_device_memory_ = false;
  bool has_shapes_ = false;
  bool has_stack_ = false;
  bool has_flops_ = false;
  size_t shapes_width_ = 0;
  size_t source_width_ = 0;
  size_t source_column_ = 0;
  FlopsScale flops_{1, ""};
  Layout layout_;
};

}  // namespace

Result<OpsOrder> parse_ops_order(std::string_view name) {
  std::string wanted(name);
  for (const std::string_view device : {"cuda", "xpu", "privateuse1"}) {
    for (size_t at = wanted.find(device); at != std::string::npos; at = wanted.find(device, at + 1))
      wanted.replace(at, device.size(), "device");
  }
  for (const OrderName& order : kOrders)
    if (order.name == wanted) return order.order;
  return Error{fmt::format("must be one of {}", fmt::join(ops_order_names(), ", "))};
}

std::vector<std::string> ops_order_names() {
  std::vector<std::string> names;
  for (const OrderName& order : kOrders) names.emplace_back(order.name);
  return names;
}

std::vector<const analyze::OpsRow*> shown_ops(const analyze::OpsResult& result, const OpsTableOptions& options) {
  std::vector<const analyze::OpsRow*> rows;
  for (const analyze::OpsRow& row : result.rows) {
    if (options.top_level_only && !row.is_top_level) continue;
    if (is_on_side(row, options.side)) rows.push_back(&row);
  }
  for (const OrderName& order : kOrders) {
    if (order.order != options.order) continue;
    std::stable_sort(rows.begin(), rows.end(), [&](const analyze::OpsRow* a, const analyze::OpsRow* b) {
      return order.value(*a) > order.value(*b);
    });
  }
  if (options.row_limit >= 0 && rows.size() > static_cast<size_t>(options.row_limit))
    rows.resize(static_cast<size_t>(options.row_limit));
  return rows;
}

std::string ops_table(const analyze::OpsResult& result, const OpsTableOptions& options) {
  return result.rows.empty() ? "" : OpsTablePrinter(result, options).print();
}

}  // namespace firelane::report
