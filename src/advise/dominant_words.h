// What rules and notes say about an operator or kernel that takes a large part of a step.
#pragma once

#include <string>
#include <string_view>

#include "analyze/device/kernel_traits.h"
#include "model/model.h"

namespace firelane::advise {

// Kernels this near to the device's peak are where a well-tuned program spends its time.
inline constexpr double kNearRoofPercent = 60;

struct Advice {
  const char* could_be;
  const char* code;
};
Advice advice_for(analyze::KernelClass what, std::string_view name);

// What a tuned program is mostly made of.
bool is_meant_to_dominate(analyze::KernelClass what);
bool joins(std::string_view name);     // cat, stack
bool looks_up(std::string_view name);  // sorting, indexing

// The module or the Python function that called an op, or its forward op; "" when neither was recorded.
std::string caller_of(const Model& model, Row op);
// The shapes of its inputs, shortened; "" when they were not recorded.
std::string dims_text(const Model& model, Row op);

}  // namespace firelane::advise
