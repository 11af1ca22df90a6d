// What torch knows about a collective while its op `record_param_comms` is open (NCCL's process groups and others
// announce themselves so; gloo's does not): name, dtype, elements, group, ranks, sequence.
#pragma once

#include <ATen/record_function.h>

#include <string>

namespace firelane::torch_hooks {

// A JSON object with the keys that torch.profiler writes; "" when nothing is known. Allocates: collectives are not
// on the hot path.
std::string collective_args(const at::RecordFunction& fn) noexcept;

}  // namespace firelane::torch_hooks
