// What every fuzz target does with bytes: load them, and when that gives a model, walk it.
#pragma once

#include <string>

namespace firelane::fuzz {

// Loads `bytes` as a trace, checks what model.h promises, and runs the analyses.
void load_and_use(std::string bytes);

}  // namespace firelane::fuzz
