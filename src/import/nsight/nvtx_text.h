// What the text of an NVTX range says: PyTorch's emit_nvtx() and nsys --pytorch write operators as
//   aten::mm, seq = 12, op_id = 34, sizes = [[2, 3], [3, 4]]
#pragma once

#include <cstdint>
#include <string_view>

#include "model/values.h"

namespace firelane::importer {

struct NvtxText {
  std::string_view name;
  int64_t sequence_number = kNoNumber;
  int64_t op_id = kNoNumber;
  std::string_view sizes;  // JSON
  bool is_op = false;      // of PyTorch: it has an op_id or a seq, or is in the namespace of an operator
};

NvtxText read_nvtx_text(std::string_view text);

// "cudaLaunchKernel_v7000" -> "cudaLaunchKernel".
std::string_view without_version(std::string_view api_name);

}  // namespace firelane::importer
