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
constexpr Category of(Accelerator accelerator, Category category) {
  category.accelerator = accelerator;
  return category;
}

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
    Entry{"xpu_sync", of(Accelerator::kXpu, device(DeviceKind::kSync))},
    Entry{"cuda_event", device(DeviceKind::kEvent)},
    Entry{"collective_comm", device(DeviceKind::kCollective)},
    Entry{"mtia_ccp_events", of(Accelerator::kMtia, device(DeviceKind::kOther))},  // their names say what they are
    Entry{"mtia_workloadd", of(Accelerator::kMtia, device(DeviceKind::kOther))},
    Entry{"hpu_op", of(Accelerator::kHpu, host(HostKind::kRuntime))},  // on lanes of a device: its work
    Entry{"device_other", device(DeviceKind::kOther)},                 // our own export, of what no reader knew
    Entry{"overhead", host(HostKind::kOverhead)},
    Entry{"Trace", host(HostKind::kSpan)},
    Entry{"cpu_instant_event", host(HostKind::kOther)},
    Entry{"xpu_runtime", of(Accelerator::kXpu, host(HostKind::kRuntime))},
    Entry{"xpu_driver", of(Accelerator::kXpu, host(HostKind::kDriver))},
    Entry{"xpu_scope_profiler", of(Accelerator::kXpu, host(HostKind::kSpan))},
    Entry{"mtia_runtime", of(Accelerator::kMtia, host(HostKind::kRuntime))},
    Entry{"mtia_insight", of(Accelerator::kMtia, host(HostKind::kOther))},
    Entry{"glow_runtime", host(HostKind::kRuntime)},
    Entry{"privateuse1_runtime", of(Accelerator::kPrivateUse1, host(HostKind::kRuntime))},
    Entry{"privateuse1_driver", of(Accelerator::kPrivateUse1, host(HostKind::kDriver))},
    // Ascend: what the queue between Python's thread and the one that calls CANN takes and gives.
    Entry{"enqueue", of(Accelerator::kNpu, host(HostKind::kOther))},
    Entry{"dequeue", of(Accelerator::kNpu, host(HostKind::kOther))},
    Entry{"cuda_profiler_range", host(HostKind::kOther)},
    // torch 1.8 to 1.11
    Entry{"Operator", host(HostKind::kOp)},
    Entry{"Kernel", device(DeviceKind::kKernel)},
    Entry{"Memcpy", device(DeviceKind::kCopy)},
    Entry{"Memset", device(DeviceKind::kSet)},
    Entry{"Runtime", host(HostKind::kRuntime)},
    Entry{"Python", host(HostKind::kPython)},
};

// Other backends of PyTorch name their categories after Kineto's: npu_kernel, privateuse1_memcpy.
constexpr std::array kEndings = {
    Entry{"_runtime", host(HostKind::kRuntime)},   Entry{"_driver", host(HostKind::kDriver)},
    Entry{"_kernel", device(DeviceKind::kKernel)}, Entry{"_kernels", device(DeviceKind::kKernel)},
    Entry{"_memcpy", device(DeviceKind::kCopy)},   Entry{"_memset", device(DeviceKind::kSet)},
    Entry{"_sync", device(DeviceKind::kSync)},
};

}  // namespace

Category category_of(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.category;
  }
  for (const Entry& entry : kEndings) {
    if (!name.ends_with(entry.name)) continue;
    const bool is_private = name.starts_with("privateuse1");
    return is_private ? of(Accelerator::kPrivateUse1, entry.category) : entry.category;
  }
  return {};
}

}  // namespace firelane::importer
