// The data dependencies of ops (model.data_dependencies), looked up by op.
#pragma once

#include <utility>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

class OpData {
 public:
  explicit OpData(const Model& model);

  // Whether an execution trace says all that the op reads and writes. `op`: a row of host_slices.
  bool is_known(Row op) const;
  // Its rows of data_dependencies: [begin, end).
  std::pair<Row, Row> rows_of(Row op) const;

 private:
  Row detail_of(Row op) const;

  const Model& model_;
  std::vector<bool> opaque_;  // by row of op_details
};

}  // namespace firelane::analyze
