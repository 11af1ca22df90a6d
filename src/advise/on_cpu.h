// The rules about kernels on a trace without a device, where operators do the work themselves.
#pragma once

#include <vector>

#include "advise/case.h"
#include "advise/finding.h"

namespace firelane::advise {

std::vector<Finding> cpu_unfused_attention(const Case& the_case);
std::vector<Finding> cpu_unfused_chains(const Case& the_case);

}  // namespace firelane::advise
