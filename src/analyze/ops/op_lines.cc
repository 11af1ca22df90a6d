#include "analyze/ops/op_lines.h"

#include <algorithm>
#include <utility>

#include "analyze/common/user_line.h"

namespace firelane::analyze {

namespace {

bool is_op(HostKind kind) { return kind == HostKind::kOp || kind == HostKind::kAnnotation; }

// What was typed, or compiled from a text.
bool is_notebook(std::string_view frame) {
  return frame.starts_with("<stdin>") || frame.starts_with("<string>") || frame.starts_with("<ipython");
}

// "model.py(30): forward" at line 41: "model.py(41): forward".
std::string at_line(std::string_view function, int32_t line) {
  const size_t open = function.find(".py(");
  const size_t close = open == std::string_view::npos ? open : function.find(')', open);
  if (line <= 0 || close == std::string_view::npos) return std::string(function);
  return std::string(function.substr(0, open + 4)) + std::to_string(line) + std::string(function.substr(close));
}

}  // namespace

OpLines::OpLines(const Model& model) : model_(model), of_slice_(model.host_slices.size()) {
  const HostSlices& host = model.host_slices;
  const auto stacks = model.op_details.stack.view().cells();
  const bool may_have_lines =
      std::any_of(stacks.begin(), stacks.end(), [](StringId stack) { return stack != kNoString; }) ||
      std::find(host.kind.begin(), host.kind.end(), HostKind::kPython) != host.kind.end();
  if (!may_have_lines) return;
  std::vector<uint32_t> own(host.size(), kNone);
  std::vector<uint32_t> called_by(host.size(), kNone);
  for (Row row = 0; row < host.size(); ++row) {  // a parent stands before its children
    own[row] = own_line(row);
    called_by[row] = own[row] == kNone && host.parent[row] != kNoRow ? called_by[host.parent[row]] : own[row];
  }
  std::vector<uint32_t> by_forward(host.size(), kNone);
  for (Row row = 0; row < host.size(); ++row) {
    const Row detail = is_op(host.kind[row]) ? model.op_detail(row) : kNoRow;
    const Row forward = detail == kNoRow ? kNoRow : model.op_details.forward[detail];
    if (forward == kNoRow || called_by[forward] == kNone) continue;
    by_forward[row] = called_by[forward];
    const Row frame = host.parent[row];  // the engine's, around the backward function
    if (frame != kNoRow && host.role[frame] == HostRole::kBackwardNode) by_forward[frame] = by_forward[row];
  }
  for (Row row = 0; row < host.size(); ++row) {
    if (by_forward[row] != kNone) {
      of_slice_[row] = {.line = by_forward[row], .by_forward = true};
    } else if (own[row] != kNone) {
      of_slice_[row] = {.line = own[row], .by_forward = false};
    } else if (host.parent[row] != kNoRow) {
      of_slice_[row] = of_slice_[host.parent[row]];
    }
  }
}

Row OpLines::slice_of(Row work) const {
  const DeviceSlices& device = model_.device_slices;
  return device.op[work] != kNoRow ? device.op[work] : device.launch[work];
}

uint32_t OpLines::own_line(Row slice) {
  const HostSlices& host = model_.host_slices;
  const Row detail = is_op(host.kind[slice]) ? model_.op_detail(slice) : kNoRow;
  if (detail != kNoRow && model_.op_details.stack[detail] != kNoString)
    return of_stack(model_.op_details.stack[detail]);
  const Row parent = host.parent[slice];
  const bool is_called = host.kind[slice] != HostKind::kPython && parent != kNoRow;
  return is_called && host.kind[parent] == HostKind::kPython ? of_functions(slice) : kNone;
}

// The innermost function that is the program's, and where in it the call was.
uint32_t OpLines::of_functions(Row slice) {
  const HostSlices& host = model_.host_slices;
  uint32_t found = kNone;
  int32_t line = -1;
  std::vector<Row> on_the_way;  // functions of libraries: who calls from them has the same line
  for (Row row = host.parent[slice]; row != kNoRow && host.kind[row] == HostKind::kPython; row = host.parent[row]) {
    if (const auto known = of_library_.find(row); known != of_library_.end()) {
      found = known->second;
      break;
    }
    const std::string_view name = model_.text(host.name[row]);
    if (!is_of_libraries(name)) {
      found = intern({.line = at_line(name, line), .called_from = "", .caller = ""});
      break;
    }
    on_the_way.push_back(row);
    line = host.call_line[row];
  }
  for (const Row row : on_the_way) of_library_[row] = found;
  return found;
}

uint32_t OpLines::of_stack(StringId stack) {
  const auto [at, is_new] = of_text_.try_emplace(static_cast<uint32_t>(stack), kNone);
  if (!is_new) return at->second;
  // Recorders of whole stacks have frames of torch between those that count.
  ProgramLine line;
  bool in_program = false;
  for (std::string_view rest = model_.text(stack); !rest.empty();) {
    const std::string_view frame = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(rest.size(), frame.size() + 1));
    if (is_of_packages(frame) && !is_of_torch(frame)) {
      if (line.line.empty()) line.line = frame;
      continue;
    }
    if (is_of_libraries(frame) && !is_notebook(frame)) continue;
    if (in_program) {
      line.caller = frame;
      break;
    }
    in_program = true;
    (line.line.empty() ? line.line : line.called_from) = frame;
  }
  return of_text_[static_cast<uint32_t>(stack)] = line.line.empty() ? kNone : intern(std::move(line));
}

uint32_t OpLines::intern(ProgramLine line) {
  const auto [at, is_new] =
      known_.try_emplace(line.line + ";" + line.called_from + ";" + line.caller, static_cast<uint32_t>(lines_.size()));
  if (is_new) lines_.push_back(std::move(line));
  return at->second;
}

OpLines op_lines(const Model& model) { return OpLines(model); }

}  // namespace firelane::analyze
