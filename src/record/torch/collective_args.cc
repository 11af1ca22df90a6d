#include "record/torch/collective_args.h"

#include <torch/csrc/profiler/util.h>

#include <exception>
#include <map>

namespace firelane::torch_hooks {

std::string collective_args(const at::RecordFunction& fn) noexcept {
  try {
    // torch gives each value as JSON text.
    const auto found = torch::profiler::impl::saveNcclMeta(fn);
    const std::map<std::string, std::string> sorted(found.begin(), found.end());
    std::string json;
    for (const auto& [key, value] : sorted) {
      if (value.empty()) continue;
      json.append(json.empty() ? "{\"" : ", \"").append(key).append("\": ").append(value);
    }
    return json.empty() ? json : json + "}";
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace firelane::torch_hooks
