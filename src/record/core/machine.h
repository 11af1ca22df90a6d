// What advice must know about the machine: how many cores there are, how many of them the process may use, how much
// memory.
#pragma once

#include <string>

namespace firelane::record {

// {"cpu":"AMD EPYC 9654","cores":192,"cores_allowed":8,"memory_bytes":811748818944}; what is not known is left out.
std::string machine_json();

}  // namespace firelane::record
