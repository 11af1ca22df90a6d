#include "always/step_log.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <system_error>

namespace firelane::always {
namespace fs = std::filesystem;
namespace {

struct Column {
  std::string_view name;
  int64_t StepRow::* field;
};
constexpr Column kColumns[] = {
    {"number", &StepRow::number},
    {"count", &StepRow::count},
    {"start_unix_ns", &StepRow::start_unix_ns},
    {"host_ns", &StepRow::host_ns},
    {"device_ns", &StepRow::device_ns},
    {"cpu_ns", &StepRow::cpu_ns},
    {"gc_ns", &StepRow::gc_ns},
    {"input_ns", &StepRow::input_ns},
    {"save_ns", &StepRow::save_ns},
    {"rss_bytes", &StepRow::rss_bytes},
    {"cuda_bytes", &StepRow::cuda_bytes},
};
constexpr int64_t kMost = 1'000'000'000'000'000'000;  // larger numbers are damage

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const size_t comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

bool parse_row(const std::vector<std::string_view>& names, const std::vector<std::string_view>& cells, StepRow& row) {
  if (cells.size() != names.size()) return false;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (names[i] == "phase") row.recorded = cells[i] != "unrecorded";
    for (const Column& column : kColumns) {
      if (column.name != names[i] || cells[i].empty()) continue;
      int64_t value = 0;
      const auto parsed = std::from_chars(cells[i].data(), cells[i].data() + cells[i].size(), value);
      const bool is_time = column.field == &StepRow::start_unix_ns;
      if (parsed.ec != std::errc{} || parsed.ptr != cells[i].data() + cells[i].size()) return false;
      if (value < -1 || value > (is_time ? 4 * kMost : kMost)) return false;
      row.*column.field = value;
    }
  }
  return row.number >= 0 && row.host_ns >= 0 && row.count > 0;
}

}  // namespace

std::vector<StepRow> parse_steps(std::string_view csv) {
  std::vector<StepRow> rows;
  const std::vector<std::string_view> names = split(take_line(csv));
  while (!csv.empty()) {
    StepRow row;
    if (parse_row(names, split(take_line(csv)), row)) rows.push_back(row);
  }
  return rows;
}

Result<std::vector<StepRow>> read_steps(const fs::path& run) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("steps-") && name.ends_with(".csv")) files.push_back(entry.path());
  }
  if (error) return Error{run.string() + ": " + error.message()};
  std::sort(files.begin(), files.end());
  std::vector<StepRow> rows;
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::vector<StepRow> some = parse_steps(text);
    rows.insert(rows.end(), some.begin(), some.end());
  }
  if (rows.empty() && fs::is_directory(run / "rank0", error))
    return Error{run.string() + ": has several ranks; name one of them: " + (run / "rank0").string()};
  if (rows.empty())
    return Error{run.string() + ": no steps of an always-on recording; firelane record --always -o RUN makes one"};
  std::stable_sort(rows.begin(), rows.end(), [](const StepRow& a, const StepRow& b) { return a.number < b.number; });
  return rows;
}

}  // namespace firelane::always
