// What the trace says about where and how it was recorded, as far as advice depends on it.
#pragma once

#include <cstdint>
#include <string>

#include "model/model.h"

namespace firelane::advise {

// Cores that the process could use; kNoNumber when the trace does not say.
int64_t cores_allowed(const Model& model);

// How whoever recorded this asks for stacks: "--stacks", "stacks=True" or "with_stack=True".
std::string stacks_flag(const Model& model);

}  // namespace firelane::advise
