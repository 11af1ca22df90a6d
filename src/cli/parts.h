// firelane --version --parts: what this installation has, so that nothing is missing in silence.
#pragma once

#include <string>

namespace firelane::cli {

std::string parts_text();

}  // namespace firelane::cli
