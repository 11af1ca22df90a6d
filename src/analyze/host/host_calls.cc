#include "analyze/host/host_calls.h"

#include <algorithm>
#include <initializer_list>

namespace firelane::analyze {

namespace {

bool has(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

}  // namespace

CallKind call_kind(std::string_view name) {
  // cuda..., cu..., hip...: the rest of the name says what it does.
  if (has(name, {"StreamSynchronize"})) return CallKind::kStreamSync;
  if (has(name, {"EventSynchronize"})) return CallKind::kEventSync;
  if (has(name, {"DeviceSynchronize", "CtxSynchronize", "ContextSynchronize"})) return CallKind::kDeviceSync;
  if (has(name, {"ModuleLoad", "LibraryLoad", "ModuleGetFunction", "LibraryGetKernel", "LinkComplete"})) {
    return CallKind::kLoading;
  }
  if (has(name, {"Memcpy"})) return CallKind::kCopy;
  if (has(name, {"LaunchKernel", "LaunchCooperative", "GraphLaunch", "Memset", "LaunchHostFunc"})) {
    return CallKind::kLaunch;
  }
  if (has(name, {"MemGetInfo", "MemGetAttribute", "MemPoolGet", "MallocFromPoolQuery"})) return CallKind::kOther;
  if (has(name, {"FreeAsync"})) return CallKind::kOther;
  if (has(name, {"Malloc", "MemAlloc", "HostAlloc", "HostRegister", "MemCreate", "MemMap", "MemAddressReserve"})) {
    return CallKind::kAllocation;
  }
  if (has(name, {"Free", "HostUnregister", "MemUnmap", "MemRelease"})) return CallKind::kFree;
  return CallKind::kOther;
}

}  // namespace firelane::analyze
