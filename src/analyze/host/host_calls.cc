#include "analyze/host/host_calls.h"

#include <algorithm>
#include <initializer_list>

namespace firelane::analyze {

namespace {

bool has(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

// Names that the words below do not tell, by the start of what each runtime calls them. The first that fits decides.
struct OwnName {
  std::string_view begin;
  CallKind kind;
};
constexpr OwnName kOwnNames[] = {
    // Intel: Unified Runtime, its predecessor, Level Zero.
    {"urQueueFinish", CallKind::kStreamSync},
    {"piQueueFinish", CallKind::kStreamSync},
    {"zeCommandQueueSynchronize", CallKind::kStreamSync},
    {"zeCommandListHostSynchronize", CallKind::kStreamSync},
    {"urEventWait", CallKind::kEventSync},
    {"piEventsWait", CallKind::kEventSync},
    {"zeEventHostSynchronize", CallKind::kEventSync},
    {"zeFenceHostSynchronize", CallKind::kEventSync},
    {"urEnqueueKernelLaunch", CallKind::kLaunch},
    {"piEnqueueKernelLaunch", CallKind::kLaunch},
    {"zeCommandListAppendLaunch", CallKind::kLaunch},
    {"urEnqueueUSMFill", CallKind::kLaunch},
    {"piextUSMEnqueueFill", CallKind::kLaunch},
    {"piextUSMEnqueueMemset", CallKind::kLaunch},
    {"zeCommandListAppendMemoryFill", CallKind::kLaunch},
    {"urEnqueueMemBuffer", CallKind::kCopy},
    {"piEnqueueMemBuffer", CallKind::kCopy},
    {"zeCommandListAppendMemoryCopy", CallKind::kCopy},
    {"urUSMDeviceAlloc", CallKind::kAllocation},
    {"urUSMHostAlloc", CallKind::kAllocation},
    {"urUSMSharedAlloc", CallKind::kAllocation},
    {"piextUSMDeviceAlloc", CallKind::kAllocation},
    {"piextUSMHostAlloc", CallKind::kAllocation},
    {"urProgramBuild", CallKind::kLoading},
    {"piProgramBuild", CallKind::kLoading},
    {"zeModuleCreate", CallKind::kLoading},
    // AMD: HSA.
    {"hsa_signal_wait", CallKind::kEventSync},
    {"hsa_amd_signal_wait", CallKind::kEventSync},
    {"hsa_amd_memory_async_copy", CallKind::kCopy},
    {"hsa_memory_copy", CallKind::kCopy},
    {"hsa_amd_memory_pool_allocate", CallKind::kAllocation},
    // Gaudi.
    {"synLaunch", CallKind::kLaunch},
    {"synMemCopy", CallKind::kCopy},
    {"synMemset", CallKind::kLaunch},
    // MTIA.
    {"runFunction", CallKind::kLaunch},
    // Ascend's ACL: operators that are compiled in the program, unless torch_npu uses those of the operator package.
    {"opCompile", CallKind::kLoading},
    {"aclopCompile", CallKind::kLoading},
    {"aclnn", CallKind::kOther},
};

// When CUDA and HIP release an allocation, they wait for all streams; for others this is unknown.
bool waits_when_freed(std::string_view name) { return name.starts_with("cu") || name.starts_with("hip"); }

}  // namespace

CallKind call_kind(std::string_view name) {
  if (name.starts_with("AscendCL@")) name.remove_prefix(9);
  for (const OwnName& own : kOwnNames) {
    if (name.starts_with(own.begin)) return own.kind;
  }
  // cuda..., cu..., hip..., syn..., aclrt...: the rest of the name says what it does. Some say it the other way round.
  if (has(name, {"StreamSynchronize", "ynchronizeStream"})) return CallKind::kStreamSync;
  if (has(name, {"EventSynchronize", "ynchronizeEvent"})) return CallKind::kEventSync;
  if (has(name, {"DeviceSynchronize", "CtxSynchronize", "ContextSynchronize", "ynchronizeDevice"})) {
    return CallKind::kDeviceSync;
  }
  if (has(name, {"ModuleLoad", "LibraryLoad", "ModuleGetFunction", "LibraryGetKernel", "LinkComplete"})) {
    return CallKind::kLoading;
  }
  if (has(name, {"Memcpy", "memcpy"})) return CallKind::kCopy;
  if (has(name, {"LaunchKernel", "LaunchCooperative", "GraphLaunch", "Memset", "LaunchHostFunc"})) {
    return CallKind::kLaunch;
  }
  if (has(name, {"MemGetInfo", "MemGetAttribute", "MemPoolGet", "MallocFromPoolQuery"})) return CallKind::kOther;
  if (has(name, {"FreeAsync"})) return CallKind::kOther;
  if (has(name, {"Malloc", "MemAlloc", "HostAlloc", "HostRegister", "MemCreate", "MemMap", "MemAddressReserve"})) {
    return CallKind::kAllocation;
  }
  if (has(name, {"Free", "HostUnregister", "MemUnmap", "MemRelease"})) {
    return waits_when_freed(name) ? CallKind::kFree : CallKind::kOther;
  }
  return CallKind::kOther;
}

}  // namespace firelane::analyze
