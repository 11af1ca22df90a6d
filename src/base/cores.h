// How many cores the process may use: by its affinity, and by the CPU limit of its control groups, which containers set
// (docker --cpus, CPU limits of Kubernetes). Affinity does not show the limit, and torch starts a thread for every core
// it sees.
#pragma once

#include <cstdint>
#include <string>

namespace firelane {

// The CPU limit in cores, 1.5 for 150 ms of CPU time in every 100 ms; 0 if there is none, or none can be read. The
// lowest limit of the process's group and of all groups around it, for version 1 and 2 of control groups. `root` is
// where /proc and /sys are.
double cpu_quota(const std::string& root = "");

// At least 1: the cores of the affinity, and no more than a CPU limit of `quota` cores gives time for (0: no limit).
int64_t usable_cores(double quota = cpu_quota());

}  // namespace firelane
