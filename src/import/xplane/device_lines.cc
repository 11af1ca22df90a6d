#include "import/xplane/device_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "model/copy_name.h"

namespace firelane::importer::xplane {

namespace {

struct Collective {
  std::string_view hlo, name;
};
constexpr std::array kCollectives = {
    Collective{"all-reduce", "allreduce"},
    Collective{"all-gather", "allgather"},
    Collective{"reduce-scatter", "reduce_scatter"},
    Collective{"all-to-all", "all_to_all"},
    Collective{"ragged-all-to-all", "all_to_all"},
    Collective{"collective-permute", "send_recv"},
    Collective{"collective-broadcast", "broadcast"},
    Collective{"send", "send"},
    Collective{"recv", "recv"},
};

// The op's own word: "all-reduce" of "all-reduce-start.3" and of "%all-reduce.1 = f32[] ...".
bool is_op(std::string_view name, std::string_view op) {
  if (name.starts_with('%')) name.remove_prefix(1);
  if (!name.starts_with(op)) return false;
  const std::string_view rest = name.substr(op.size());
  return rest.empty() || rest[0] == '.' || rest[0] == ' ' || rest.starts_with("-start") || rest.starts_with("-done");
}

// The number behind `key`; kNoNumber if there is none.
int64_t number_of(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at > 0 && text[at - 1] != ' ') continue;
    int64_t number = 0;
    const char* const begin = text.data() + at + key.size();
    return std::from_chars(begin, text.data() + text.size(), number).ec == std::errc{} ? number : kNoNumber;
  }
  return kNoNumber;
}

void three_numbers(std::string_view text, std::string_view key, int32_t& x, int32_t& y, int32_t& z) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return;
  const char* from = text.data() + at + key.size();
  const char* const end = text.data() + text.size();
  for (int32_t* number : {&x, &y, &z}) {
    const auto parsed = std::from_chars(from, end, *number);
    if (parsed.ec != std::errc{}) return;
    from = parsed.ptr;
    if (from != end && *from == ',') ++from;
  }
}

MemoryKind memory_named(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return MemoryKind::kUnknown;
  std::string_view word = text.substr(at + key.size());
  word = word.substr(0, word.find(' '));
  constexpr std::pair<std::string_view, MemoryKind> kKinds[] = {
      {"pageable", MemoryKind::kPageable}, {"pinned", MemoryKind::kPinned},   {"device", MemoryKind::kDevice},
      {"array", MemoryKind::kArray},       {"managed", MemoryKind::kManaged},
  };
  for (const auto& [name, kind] : kKinds) {
    if (word == name) return kind;
  }
  return MemoryKind::kUnknown;
}

}  // namespace

LineKind line_kind(std::string_view name) {
  if (name == "XLA Ops" || name == "Sparse Core Ops" || name == "SparseCore Ops") return LineKind::kOps;
  if (name.starts_with("Async XLA Ops")) return LineKind::kAsyncOps;
  if (name == "Steps" || name == "Step" || name == "Sparse Core Steps") return LineKind::kSteps;
  if (name == "XLA Modules" || name == "Sparse Core Modules") return LineKind::kModules;
  if (name == "XLA TraceMe") return LineKind::kWaits;
  for (const std::string_view derived :
       {"Framework Ops", "Framework Name Scope", "TensorFlow Ops", "TensorFlow Name Scope", "Source code", "Source",
        "Overlay", "Host Offload Ops", "Counters", "Kernel Launches", "Scalar Unit", "HLO", "Launch Stats",
        "Power Management", "Tensor Core"}) {
    if (name.starts_with(derived)) return LineKind::kDerived;
  }
  return name.starts_with("Stream #") || name.starts_with("stream:") ? LineKind::kStream : LineKind::kUnknown;
}

std::string_view collective_name(std::string_view category, std::string_view name) {
  for (const Collective& each : kCollectives) {
    if (is_op(category, each.hlo) || category == std::string(each.hlo) + " fusion") return each.name;
    if (category.empty() && is_op(name, each.hlo)) return each.name;
  }
  return {};
}

DeviceKind op_kind(std::string_view category, std::string_view name, LineKind line) {
  const std::string_view what = category.empty() ? name : category;
  // They enclose the ops that they run, and the compute core waits in what ends an asynchronous op.
  for (const std::string_view around : {"while", "conditional", "call"}) {
    if (is_op(what, around)) return DeviceKind::kAnnotation;
  }
  const bool is_done = what.find("-done") != std::string_view::npos;
  if (is_done && line == LineKind::kOps) return DeviceKind::kSync;
  if (!collective_name(category, name).empty()) return DeviceKind::kCollective;
  if (line == LineKind::kAsyncOps) {
    const bool is_copy = what.find("copy") != std::string_view::npos || what.find("slice") != std::string_view::npos;
    return is_copy ? DeviceKind::kCopy : DeviceKind::kKernel;
  }
  return DeviceKind::kKernel;
}

// "%copy-start.2 = (f32[8]{0:T(128)}, f32[8]{0:T(128)S(5)}, u32[]) copy-start(...)": to, from. S(5) is the memory of
// the host.
CopyDirection copy_direction(std::string_view name) {
  const size_t open = name.find(" = (");
  if (open == std::string_view::npos || name.find(" copy-start(") == std::string_view::npos) {
    return CopyDirection::kUnknown;
  }
  const std::string_view shapes = name.substr(open + 4);
  const size_t first = shapes.find('}');
  if (first == std::string_view::npos) return CopyDirection::kUnknown;
  const size_t second = shapes.find('}', first + 1);
  if (second == std::string_view::npos) return CopyDirection::kUnknown;
  const auto is_host = [](std::string_view shape) { return shape.find("S(5)") != std::string_view::npos; };
  const bool to_host = is_host(shapes.substr(0, first));
  const bool from_host = is_host(shapes.substr(first, second - first));
  if (to_host && from_host) return CopyDirection::kUnknown;
  return to_host ? CopyDirection::kDtoH : from_host ? CopyDirection::kHtoD : CopyDirection::kDtoD;
}

DeviceKind stream_kind(std::string_view name, std::string_view line) {
  if (name.starts_with("Memcpy") || name.starts_with("memcpy") || name.starts_with("CopyDevice"))
    return DeviceKind::kCopy;
  if (name.starts_with("Memset") || name.starts_with("memset") || name.starts_with("FillBuffer"))
    return DeviceKind::kSet;
  if (name.starts_with("CudaEventRecord") || line.find("(Event") != std::string_view::npos) return DeviceKind::kEvent;
  return DeviceKind::kKernel;
}

void read_kernel_details(std::string_view text, RawKernel& out) {
  three_numbers(text, "grid:", out.grid_x, out.grid_y, out.grid_z);
  three_numbers(text, "block:", out.block_x, out.block_y, out.block_z);
  const int64_t registers = number_of(text, "regs:");
  if (registers > 0 && registers < INT32_MAX) out.registers = static_cast<int32_t>(registers);
  int64_t shared = kNoNumber;
  for (const std::string_view key : {"static_shared:", "dynamic_shared:", "group_mem:"}) {
    const int64_t bytes = number_of(text, key);
    if (bytes >= 0 && bytes < INT32_MAX) shared = (shared == kNoNumber ? 0 : shared) + bytes;
  }
  out.shared_memory_bytes = shared;
  const int64_t occupancy = number_of(text, "occ_pct:");
  if (occupancy > 0 && occupancy <= 100) out.occupancy_percent = static_cast<float>(occupancy);
}

void read_memcpy_details(std::string_view text, RawCopy& out) {
  const int64_t bytes = number_of(text, "size:");
  if (bytes >= 0) out.bytes = bytes;
  out.source_memory = memory_named(text, "kind_src:");
  out.target_memory = memory_named(text, "kind_dst:");
}

int32_t device_number(std::string_view plane_name) {
  constexpr std::string_view kPrefix = "/device:";
  if (!plane_name.starts_with(kPrefix)) return -1;
  const size_t colon = plane_name.find(':', kPrefix.size());
  if (colon == std::string_view::npos) return -1;
  int32_t number = -1;
  std::from_chars(plane_name.data() + colon + 1, plane_name.data() + plane_name.size(), number);
  return number >= 0 && number < 65536 ? number : -1;
}

}  // namespace firelane::importer::xplane
