// What advice must know about the machine: how many cores there are, how many of them the process may use, how much
// memory.
#pragma once

#include <string>

namespace firelane::record {

// {"cpu":"AMD EPYC 9654","cores":192,"cores_allowed":8,"cpu_quota":7.5,"memory_bytes":811748818944}; what is not known
// is left out. cores_allowed: by affinity, and no more than a container's CPU limit (cpu_quota, in cores) gives time
// for.
std::string machine_json();

}  // namespace firelane::record
