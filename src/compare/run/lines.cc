#include <array>
#include <string_view>

#include "compare/run/pieces.h"

namespace firelane::compare {

namespace {

// Functions of libraries say less than those that call them.
bool is_of_libraries(std::string_view name) {
  if (name.starts_with("<")) return true;  // <built-in method ...>, <string>
  for (const std::string_view part :
       {"torch/", "site-packages/", "lib/python", "threading.py(", "contextlib.py(", "nn.Module: ", "runpy.py("}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return name.find(".py(") == std::string_view::npos;
}

std::string_view shortened(std::string_view name) {
  const size_t place = name.find(".py(");
  const size_t slash = name.rfind('/', place);
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

}  // namespace

std::string line_of(const Model& model, Row host_row) {
  const HostSlices& host = model.host_slices;
  for (Row row = host_row; row != kNoRow; row = host.parent[row]) {
    const std::string_view name = model.text(host.name[row]);
    if (host.kind[row] == HostKind::kPython && !is_of_libraries(name)) return std::string(shortened(name));
    if (host.kind[row] != HostKind::kOp || model.op_detail(row) == kNoRow) continue;
    std::string_view stack = model.text(model.op_details.stack[model.op_detail(row)]);
    while (!stack.empty()) {
      const size_t end = stack.find(';');
      const std::string_view frame = stack.substr(0, end);
      if (!is_of_libraries(frame)) return std::string(shortened(frame));
      if (end == std::string_view::npos) break;
      stack.remove_prefix(end + 1);
    }
  }
  return "";
}

}  // namespace firelane::compare
