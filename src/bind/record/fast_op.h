// FastOp: stands in for torch._C._profiler._RecordFunctionFast while we record. Torch's does nothing unless torch's own
// profiler is on; torch.compile announces its kernels with it, with their inputs and launch parameters.
#pragma once

#include <nanobind/nanobind.h>

namespace firelane::bind_record {

void bind_fast_op(nanobind::module_& m);
// Whether inputs and keywords are recorded: with shapes, as in torch.
void set_fast_op_inputs(bool on) noexcept;

}  // namespace firelane::bind_record
