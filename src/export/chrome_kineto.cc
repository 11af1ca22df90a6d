#include "export/chrome_kineto.h"

#include <algorithm>
#include <charconv>

#include "describe/category.h"
#include "describe/kineto_args.h"
#include "export/json_args.h"
#include "model/host_role.h"

namespace firelane::exporter {

namespace {

constexpr int64_t kSpansSortIndex = 0x20000000;

bool is_frame(const Model& model, Row row) {
  return model.host_slices.kind[row] == HostKind::kPython &&
         model.text(model.host_slices.category[row]) == "python_function";
}

// "nn.Module: Linear_3" is the fourth Linear that was seen.
std::string_view number_of_module(const Model& model, Row row) {
  if (model.host_slices.module[row] != ModuleCall::kNumbered) return {};
  const std::string_view name = model.text(model.host_slices.name[row]);
  const std::string_view number = name.substr(name.rfind('_') + 1);
  const bool is_number = std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? number : std::string_view();
}

void add_index(size_t index, std::string& args) {
  if (args.size() > 1) args += ", ";
  args += "\"Ev Idx\": ";
  append_number(args, index);
}

}  // namespace

KinetoExtras::KinetoExtras(const Model& model, TorchRules rules)
    : model_(model),
      is_wanted_(describe::is_our_recording(model)),
      rules_(is_wanted_ ? rules : TorchRules{}),
      adjusts_steps_(is_wanted_ && model.find_metadata("adjust_profiler_step") != nullptr),
      has_call_stacks_(is_wanted_ && model.find_metadata("call_stacks") != nullptr) {
  if (!is_wanted_) return;
  uint32_t last = 0;
  for (Row row = 0; row < model.host_slices.size(); ++row) {
    if (!is_frame(model, row) || is_left_out(row)) continue;
    if (python_ids_.empty()) python_ids_.resize(model.host_slices.size());
    python_ids_[row] = ++last;
  }
}

bool KinetoExtras::is_collection(Row row) const {
  return is_wanted_ && is_of_generation(model_.host_slices.role[row]) && is_frame(model_, row);
}

std::string_view KinetoExtras::host_name(Row row) const {
  return is_collection(row) ? "Python GC" : model_.text(model_.host_slices.name[row]);
}

// As Kineto does with torch 2.15; with 2.13 and older, a quotation mark in a name breaks the file.
std::string_view KinetoExtras::written(std::string_view name, std::string& buffer) const {
  if (!rules_.plain_texts || name.find_first_of("\"\\\n") == std::string_view::npos) return name;
  buffer.assign(name);
  std::erase(buffer, '\n');
  std::ranges::replace(buffer, '"', '\'');
  std::ranges::replace(buffer, '\\', '/');
  return buffer;
}

// A step begins and ends in calls of prof.step(), somewhere inside functions that return later: so that slices nest, it
// is shown from the last of these returns to the last of those. 1 ns apart: readers that add up microseconds as
// floating-point numbers must not see them overlap.
std::pair<int64_t, int64_t> KinetoExtras::host_times(Row row) const {
  const HostSlices& host = model_.host_slices;
  const int64_t start = host.start_ns[row];
  const int64_t end = host.end_ns(row);
  if (!adjusts_steps_ || host.role[row] != HostRole::kStep) return {start, end - start};
  const auto lane = static_cast<size_t>(host.lane[row]);
  int64_t shown_start = start;
  int64_t shown_end = end;
  for (Row other = model_.lanes.host_begin[lane]; other < model_.lanes.host_end[lane]; ++other) {
    const int64_t other_start = host.start_ns[other];
    const int64_t other_end = host.end_ns(other);
    if (other_start >= end) break;
    if (other == row || !is_frame(model_, other)) continue;
    if (other_start <= start && other_end > start && other_end < end)
      shown_start = std::max(shown_start, other_end + 1);
    if (other_start > start && other_end > end) shown_end = std::max(shown_end, other_end + 1);
  }
  return {shown_start, shown_end - shown_start};
}

KinetoExtras::PythonIds KinetoExtras::python_ids(Row row) const {
  PythonIds ids;
  if (!has_python_id(row)) return ids;
  ids.own = python_ids_[row];
  const HostSlices& host = model_.host_slices;
  Row parent = host.parent[row];
  while (parent != kNoRow && python_ids_[parent] == 0) parent = host.parent[parent];
  if (parent != kNoRow) ids.parent = python_ids_[parent];
  const std::string_view module = number_of_module(model_, row);
  std::from_chars(module.data(), module.data() + module.size(), ids.module);
  return ids;
}

void KinetoExtras::add_python_ids(Row row, std::string& args) const {
  if (!has_python_id(row)) return;
  const PythonIds ids = python_ids(row);
  std::string pairs_text;
  JsonPairs pairs(pairs_text);
  pairs.number("Python id", ids.own);
  if (ids.parent < 0) {
    pairs.json("Python parent id", "null");
  } else {
    pairs.number("Python parent id", ids.parent);
  }
  if (ids.module >= 0) pairs.number("Python module id", ids.module);
  const std::string_view name = model_.text(model_.host_slices.name[row]);
  if (is_of_generation(model_.host_slices.role[row])) {
    pairs.json("generation", name.substr(kCollectionName.size()));
  }
  if (args.size() > 1) args += ", ";
  args += pairs_text;
}

// The Python frames around a slice, innermost first, each with a semicolon after it. Long, as Kineto's: every slice has
// all of them.
void KinetoExtras::add_call_stack(Row row, std::string& args) const {
  if (!has_call_stacks_ || python_ids_.empty()) return;
  const bool is_frame_of_python = model_.host_slices.kind[row] == HostKind::kPython;
  const Row detail = is_frame_of_python ? kNoRow : model_.op_detail(row);
  if (detail != kNoRow && model_.op_details.stack[detail] != kNoString)
    return;  // TorchScript's, which is there already
  std::string stack;
  std::string buffer;
  for (Row at = model_.host_slices.parent[row]; at != kNoRow; at = model_.host_slices.parent[at]) {
    if (has_python_id(at)) (stack += written(host_name(at), buffer)) += ';';
  }
  if (stack.empty()) return;
  if (args.size() > 1) args += ", ";
  JsonPairs(args).text("Call stack", stack);
}

void KinetoExtras::add_host_args(Row row, std::string& args) const {
  const HostKind kind = model_.host_slices.kind[row];
  if (kind != HostKind::kOp && kind != HostKind::kAnnotation && kind != HostKind::kPython) return;
  add_python_ids(row, args);
  add_call_stack(row, args);
  add_index(row, args);
}

void KinetoExtras::add_memory_args(Row row, std::string& args) const {
  add_index(model_.host_slices.size() + row, args);
}

std::string KinetoExtras::file_pair(std::string_view file) const {
  if (!is_wanted() || file.empty() || model_.find_metadata("traceName") != nullptr) return {};
  std::string pair;
  JsonPairs(pair).text("traceName", file);
  return ", " + pair + "\n";
}

void KinetoExtras::write_window(ChromeEvents& events) const {
  const int64_t end_ns = model_.info.duration_ns;
  std::string& out = events.out();
  events.begin('X', "Trace", "PyTorch Profiler (0)");
  out += ", \"pid\": \"Spans\", \"tid\": \"PyTorch Profiler\"";
  events.at(0);
  events.time(", \"dur\": ", end_ns);
  out += ", \"args\": {\"Op count\": 0}";
  events.end();
  events.begin('M', "", "process_sort_index");
  events.at(0);
  out += ", \"pid\": \"Spans\", \"tid\": 0, \"args\": {\"sort_index\": ";
  append_number(out, kSpansSortIndex);
  out += '}';
  events.end();
  events.begin('i', "", "Iteration Start: PyTorch Profiler");
  out += ", \"s\": \"g\", \"pid\": \"Traces\", \"tid\": \"Trace PyTorch Profiler\"";
  events.at(0);
  events.end();
  events.begin('i', "", "Record Window End");
  out += ", \"s\": \"g\", \"pid\": \"\", \"tid\": \"\"";
  events.at(end_ns + 1);  // not before the end of an event, also where readers add up floating-point numbers
  events.end();
}

std::string host_metadata_json(const Model& model, const KinetoExtras& kineto, Row row) {
  std::string text = "{";
  JsonArgs args(model, text);
  describe::visit_host_args(model, row, args);
  kineto.add_host_args(row, text);
  return text.substr(1);
}

std::string_view host_activity_type(const Model& model, Row row) { return describe::host_category(model, row); }
std::string_view device_activity_type(const Model& model, Row row) { return describe::device_category(model, row); }

}  // namespace firelane::exporter
