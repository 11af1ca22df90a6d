#include "analyze/common/op_data.h"

#include <algorithm>

namespace firelane::analyze {

OpData::OpData(const Model& model) : model_(model), opaque_(model.op_details.size(), false) {
  const DataDependencies& data = model.data_dependencies;
  for (Row row = 0; row < data.size(); ++row) {
    if (data.use[row] == DataUse::kUnknown && data.op[row] < opaque_.size()) opaque_[data.op[row]] = true;
  }
}

Row OpData::detail_of(Row op) const {
  const HostKind kind = model_.host_slices.kind[op];
  return kind == HostKind::kOp || kind == HostKind::kAnnotation ? model_.host_slices.detail[op] : kNoRow;
}

bool OpData::is_known(Row op) const {
  const Row detail = detail_of(op);
  return detail != kNoRow && model_.op_details.data_node[detail] != kNoNumber && !opaque_[detail];
}

std::pair<Row, Row> OpData::rows_of(Row op) const {
  const Row detail = detail_of(op);
  if (detail == kNoRow) return {0, 0};
  const Cells<Row>& ops = model_.data_dependencies.op;
  const auto [begin, end] = std::equal_range(ops.begin(), ops.end(), detail);
  return {static_cast<Row>(begin - ops.begin()), static_cast<Row>(end - ops.begin())};
}

}  // namespace firelane::analyze
