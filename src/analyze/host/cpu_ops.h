// The operators that a program without a device asks for, one after another: what each does, by its name, and on how
// much.
//
// On a CPU an operator is its own kernel. What kernels' names tell on a device, the operators' names tell here; only
// those that no other operator called are looked at (aten::linear, not the addmm in it), and those that only make
// another view of the same memory are left out.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analyze/device/kernel_traits.h"
#include "analyze/host/host_time.h"
#include "model/model.h"

namespace firelane::analyze {

// By the operator's name ("aten::gelu" is pointwise); kOther when we do not know it.
KernelClass op_class(std::string_view op_name);

// Whether the operator only looks at the same memory in another way.
bool is_view_op(std::string_view op_name);

struct CpuOp {
  Row row = kNoRow;
  KernelClass op_class = KernelClass::kOther;
  int64_t elements = 0;  // of its largest input; 0 when the trace gives no shapes
};

// For the chain's threads, in order of time.
std::vector<CpuOp> outermost_ops(const Model& model, const HostChain& chain, const Interval& window);

// Pointwise, normalization and reduction ops in a row on as many elements: one loop could do what they do, also where
// it reduces each row and goes over the row again with the result, as norms do. Equal size stands for "the same data".
std::vector<std::vector<CpuOp>> fusible_chains(const Model& model, std::span<const CpuOp> ops);

}  // namespace firelane::analyze
