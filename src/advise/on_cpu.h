// The rules about kernels on a trace without a device, where operators do the work themselves.
#pragma once

#include <vector>

#include "advise/context.h"
#include "advise/finding.h"

namespace firelane::advise {

std::vector<Finding> cpu_unfused_attention(const Context& context);
std::vector<Finding> cpu_unfused_chains(const Context& context);

}  // namespace firelane::advise
