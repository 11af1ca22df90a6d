// Inverses and decompositions of matrices in the analyzed steps, and which part of their results is read.
#pragma once

#include <cstdint>
#include <vector>

#include "advise/context.h"
#include "analyze/ops/op_inputs.h"

namespace firelane::advise {

enum class DecompositionKind : uint8_t { kInverse, kPseudoInverse, kSingular, kSymmetric, kGeneral };

// What the program does with it, as far as the trace tells.
enum class DecompositionUse : uint8_t {
  kUnknown,   // or all of it
  kProduct,   // an inverse is multiplied with something, and read by nothing else
  kLargest,   // the largest singular value or eigenvalue, or the few largest
  kFew,       // few of the vectors, with their values
  kNoVectors  // the values, and vectors that were computed as well are not read
};

struct Decomposition {
  Row op = kNoRow;  // outermost of those that do it: aten::linalg_inv, aten::linalg_matrix_norm
  DecompositionKind kind = DecompositionKind::kInverse;
  DecompositionUse use = DecompositionUse::kUnknown;
  analyze::Dims matrix;       // the shape of one
  double columns = 0;         // kProduct: of what the inverse is multiplied with
  std::vector<Row> products;  // kProduct
};

std::vector<Decomposition> find_decompositions(const Context& context);

}  // namespace firelane::advise
