#include "import/json/categories.h"

#include <array>

namespace firelane::importer {

namespace {

struct Entry {
  std::string_view name;
  Category category;
};

constexpr Category host(HostKind kind) { return {.on_device = false, .host = kind, .known = true}; }
constexpr Category device(DeviceKind kind) { return {.on_device = true, .device = kind, .known = true}; }

constexpr std::array kEntries = {
    Entry{"cpu_op", host(HostKind::kOp)},
    Entry{"user_annotation", host(HostKind::kAnnotation)},
    Entry{"python_function", host(HostKind::kPython)},
    Entry{"module", host(HostKind::kPython)},  // nn.Modules: written by our own export
    Entry{"cuda_runtime", host(HostKind::kRuntime)},
    Entry{"cuda_driver", host(HostKind::kDriver)},
    Entry{"kernel", device(DeviceKind::kKernel)},
    Entry{"gpu_memcpy", device(DeviceKind::kCopy)},
    Entry{"gpu_memset", device(DeviceKind::kSet)},
    Entry{"gpu_user_annotation", device(DeviceKind::kAnnotation)},
    Entry{"cuda_sync", device(DeviceKind::kSync)},
    Entry{"xpu_sync", device(DeviceKind::kSync)},
    Entry{"cuda_event", device(DeviceKind::kEvent)},
    Entry{"collective_comm", device(DeviceKind::kCollective)},
    Entry{"mtia_ccp_events", device(DeviceKind::kOther)},
    Entry{"hpu_op", device(DeviceKind::kOther)},
    Entry{"overhead", host(HostKind::kOverhead)},
    Entry{"Trace", host(HostKind::kSpan)},
    Entry{"cpu_instant_event", host(HostKind::kOther)},
    Entry{"xpu_runtime", host(HostKind::kRuntime)},
    Entry{"xpu_driver", host(HostKind::kDriver)},
    Entry{"mtia_runtime", host(HostKind::kRuntime)},
    Entry{"mtia_insight", host(HostKind::kOther)},
    Entry{"glow_runtime", host(HostKind::kRuntime)},
    Entry{"privateuse1_runtime", host(HostKind::kRuntime)},
    Entry{"privateuse1_driver", host(HostKind::kDriver)},
    Entry{"cuda_profiler_range", host(HostKind::kOther)},
    // torch 1.8 to 1.11
    Entry{"Operator", host(HostKind::kOp)},
    Entry{"Kernel", device(DeviceKind::kKernel)},
    Entry{"Memcpy", device(DeviceKind::kCopy)},
    Entry{"Memset", device(DeviceKind::kSet)},
    Entry{"Runtime", host(HostKind::kRuntime)},
    Entry{"Python", host(HostKind::kPython)},
};

}  // namespace

Category category_of(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.category;
  }
  return {};
}

}  // namespace firelane::importer
