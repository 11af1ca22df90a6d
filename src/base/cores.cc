#include "base/cores.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <thread>

namespace firelane {

namespace {

// The group in a line of /proc/self/cgroup, "4:cpu,cpuacct:/docker/8d2" or "0::/user.slice"; "" in lines of other
// controllers.
struct Group {
  std::string path;
  bool is_v2 = false;
};
Group group_in(std::string_view line) {
  const size_t first = line.find(':');
  const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
  if (second == std::string_view::npos) return {};
  const std::string_view controllers = line.substr(first + 1, second - first - 1);
  const std::string path(line.substr(second + 1));
  if (!path.starts_with('/')) return {};
  if (controllers.empty()) return {path, true};
  for (size_t start = 0; start <= controllers.size();) {
    const size_t end = std::min(controllers.find(',', start), controllers.size());
    if (controllers.substr(start, end - start) == "cpu") return {path, false};
    start = end + 1;
  }
  return {};
}

double number_in(const std::string& path) {
  std::ifstream file(path);
  double number = 0;
  return file >> number ? number : 0;
}

// cpu.max of version 2: "150000 100000", or "max 100000".
double limit_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || period <= 0) return 0;
  return std::max(0.0, std::strtod(quota.c_str(), nullptr)) / period;  // strtod makes 0 of "max"
}

double limit_v1(const std::string& folder) {
  const double period = number_in(folder + "/cpu.cfs_period_us");
  const double quota = number_in(folder + "/cpu.cfs_quota_us");  // -1: none
  return period > 0 && quota > 0 ? quota / period : 0;
}

void lower(double& lowest, double limit) {
  if (limit > 0 && (lowest == 0 || limit < lowest)) lowest = limit;
}

}  // namespace

double cpu_quota(const std::string& root) {
  constexpr std::array kMounts = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"};
  double lowest = 0;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    Group group = group_in(line);
    // Up to the mount itself: a container often sees its own group there, and still the host's path in /proc.
    for (std::string& path = group.path; !path.empty();) {
      const std::string below = path == "/" ? "" : path;
      if (group.is_v2) {
        lower(lowest, limit_v2(root + "/sys/fs/cgroup" + below));
      } else {
        for (const char* mount : kMounts) lower(lowest, limit_v1(root + mount + below));
      }
      if (below.empty()) break;
      path.resize(path.rfind('/'));
      if (path.empty()) path = "/";
    }
  }
  return lowest;
}

int64_t usable_cores(double quota) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  // A machine with more cores than the set has places for refuses the call.
  const bool is_known = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  const auto cores =
      std::max<int64_t>(1, is_known ? int64_t{CPU_COUNT(&allowed)} : int64_t{std::thread::hardware_concurrency()});
  return quota > 0 && quota < static_cast<double>(cores) ? std::llround(std::ceil(quota)) : cores;
}

}  // namespace firelane
