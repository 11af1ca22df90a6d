// Advice in the terms of the trace's device and framework.
//
// Rules are written for PyTorch on NVIDIA GPUs, where most traces come from. For other devices their texts are
// translated: HIP for CUDA, torch.xpu for torch.cuda, XMX for tensor cores; JAX's own calls in traces of XLA. Advice
// without such a translation is not given.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "advise/finding.h"
#include "model/model.h"

namespace firelane::advise {

// The matrix unit of the device by the name its maker gives it: "tensor cores", "matrix cores", "MXU".
std::string_view matrix_unit(Accelerator accelerator);

// "CUDA graphs" -> "HIP graphs", 'cuda' -> 'xpu'; the text itself for NVIDIA's.
std::string in_device_words(std::string text, Accelerator accelerator);

// The same, and in the words of the framework: traces of XLA have JAX functions, not operators.
std::string fit_words(Origin origin, Accelerator accelerator, std::string text);

// What to do so that a trace has steps, by the tool that wrote this one.
inline constexpr std::string_view kCallStep = "call prof.step() after each iteration";
std::string_view how_to_mark_steps(Origin origin);

// Puts findings and notes into the words of the trace's device and framework, and leaves out what does not fit it.
void fit_to_device(const TraceInfo& info, std::vector<Finding>& findings);
std::string fit_note(const TraceInfo& info, std::string note);
// What a verdict means, of a GPU: "A faster TPU would not help."
std::string fit_meaning(const TraceInfo& info, std::string meaning);

}  // namespace firelane::advise
