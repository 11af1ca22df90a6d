#include "record/core/machine.h"

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string_view>

#include "base/cores.h"
#include "base/json_writer.h"

namespace firelane::record {

namespace {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    return colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  return "";
}

}  // namespace

std::string machine_json() {
  JsonWriter json;
  json.begin_object();
  if (const std::string cpu = cpu_name(); !cpu.empty()) json.field("cpu", cpu);
  if (const long cores = ::sysconf(_SC_NPROCESSORS_ONLN); cores > 0) json.field("cores", static_cast<int64_t>(cores));
  const double quota = cpu_quota();
  json.field("cores_allowed", usable_cores(quota));
  if (quota > 0) json.field("cpu_quota", quota);
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) json.field("memory_bytes", static_cast<int64_t>(pages) * page_bytes);
  return json.end_object().take();
}

}  // namespace firelane::record
