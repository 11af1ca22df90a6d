// The inputs of an op as bytes: dims, dtypes, strides and plain values, as torch.profiler shows them.
// Nothing of the inputs is kept: no tensor lives longer because it was recorded.
#pragma once

#include <ATen/core/ivalue.h>

#include "record/core/input_blob.h"

namespace firelane {

enum class InputValues : bool { kLeaveOut, kKeep };

// Never throws; allocates nothing. Inputs that cannot be described leave an entry without content.
void capture_inputs(c10::ArrayRef<const c10::IValue> inputs, InputValues values, InputBlob& blob) noexcept;

}  // namespace firelane
