// The inputs of an op as bytes: dims, dtypes, strides and plain values, as torch.profiler shows them.
// Nothing of the inputs is kept: no tensor lives longer because it was recorded.
#pragma once

#include <ATen/core/ivalue.h>

#include "record/core/input_blob.h"

namespace firelane::torch_hooks {

enum class InputValues : bool { kLeaveOut, kKeep };

// A key for what capture_inputs() would write: the same inputs have the same key, and inputs that it writes differently
// have different ones (except for collisions of 64 bits). Most calls of an op repeat an earlier call's inputs and need
// no more than this, which copies nothing.
uint64_t key_of_inputs(c10::ArrayRef<const c10::IValue> inputs, InputValues values) noexcept;

// Never throws; allocates nothing. Inputs that cannot be described leave an entry without content.
void capture_inputs(c10::ArrayRef<const c10::IValue> inputs, InputValues values, record::InputBlob& blob) noexcept;

}  // namespace firelane::torch_hooks
