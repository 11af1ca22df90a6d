#include <string>
#include <string_view>

#include "analyze/common/user_line.h"
#include "compare/run/pieces.h"

namespace firelane::compare {

std::string line_of(const Model& model, Row host_row) {
  const HostSlices& host = model.host_slices;
  for (Row row = host_row; row != kNoRow; row = host.parent[row]) {
    const std::string_view name = model.text(host.name[row]);
    if (host.kind[row] == HostKind::kPython && !analyze::is_of_libraries(name))
      return std::string(analyze::without_folder(name));
    if (host.kind[row] != HostKind::kOp || model.op_detail(row) == kNoRow) continue;
    std::string line = analyze::user_line(model.text(model.op_details.stack[model.op_detail(row)]));
    if (!line.empty()) return line;
  }
  return "";
}

}  // namespace firelane::compare
