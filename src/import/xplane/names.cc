#include "import/xplane/names.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "import/xplane/device_lines.h"

namespace firelane::importer::xplane {

namespace {

struct KeyName {
  std::string_view name;
  StatKey key;
};

constexpr std::array kKeys = {
    KeyName{"correlation_id", StatKey::kCorrelation},
    KeyName{"kernel_details", StatKey::kKernelDetails},
    KeyName{"memcpy_details", StatKey::kMemcpyDetails},
    KeyName{"memset_details", StatKey::kMemsetDetails},
    KeyName{"hlo_op", StatKey::kHloOp},
    KeyName{"hlo_module", StatKey::kHloModule},
    KeyName{"hlo_category", StatKey::kHloCategory},
    KeyName{"program_id", StatKey::kProgram},
    KeyName{"flops", StatKey::kFlops},
    KeyName{"bytes_accessed", StatKey::kBytes},
    KeyName{"tf_op", StatKey::kOpName},
    KeyName{"step_num", StatKey::kStepNumber},
    KeyName{"device_type_string", StatKey::kDeviceType},
    KeyName{"device_vendor", StatKey::kVendor},
    KeyName{"core_count", StatKey::kCores},
    KeyName{"memory_size", StatKey::kMemory},
    KeyName{"compute_cap_major", StatKey::kMajor},
    KeyName{"compute_cap_minor", StatKey::kMinor},
    KeyName{"profile_start_time", StatKey::kProfileStart},
    KeyName{"allocator_name", StatKey::kAllocator},
    KeyName{"index_on_host", StatKey::kDeviceIndex},
    KeyName{"bytes_allocated", StatKey::kInUse},
    KeyName{"allocation_bytes", StatKey::kAllocationBytes},
    KeyName{"addr", StatKey::kAddress},
};

constexpr int64_t kSmallKeys = 1024;

StatKey key_named(std::string_view name) {
  for (const KeyName& each : kKeys) {
    if (each.name == name) return each.key;
  }
  return StatKey::kNone;
}

int64_t whole(double value) { return std::fabs(value) < 9e18 ? static_cast<int64_t>(value) : kNoNumber; }

}  // namespace

std::string_view without_suffix(std::string_view text, std::string_view suffix) {
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return text;
}

void Names::read(std::string_view plane, LossCounts& losses) {
  keys_.clear();
  small_keys_.assign(kSmallKeys, StatKey::kNone);
  texts_.clear();
  events_.clear();
  LossCounts again;  // the same damage is met, and counted, when the lines are read
  each_field(plane, again, [&](Message& field) {
    if (field.tag() != kPlaneStatNames) return field.skip();
    int64_t id = 0;
    std::string_view name;
    each_field(bytes_or_none(field), losses, [&](Message& entry) {
      if (entry.tag() == kMapKey) {
        id = integer(entry);
      } else if (entry.tag() == kMapValue) {
        each_field(bytes_or_none(entry), losses, [&](Message& meta) {
          if (meta.tag() != kMetaName) return meta.skip();
          name = bytes_or_none(meta);
        });
      } else {
        entry.skip();
      }
    });
    texts_[id] = name;
    if (const StatKey key = key_named(name); key != StatKey::kNone) {
      (id >= 0 && id < kSmallKeys ? small_keys_[static_cast<size_t>(id)] : keys_[id]) = key;
    }
  });
  each_field(plane, again, [&](Message& field) {
    if (field.tag() != kPlaneEvents) return field.skip();
    read_event(bytes_or_none(field), losses);
  });
  constexpr int64_t kMostSmall = 1 << 20;
  int64_t largest = -1;
  for (const auto& [id, name] : events_) {
    if (id >= 0 && id < kMostSmall) largest = std::max(largest, id);
  }
  small_ids_.assign(static_cast<size_t>(largest + 1), nullptr);
  for (const auto& [id, name] : events_) {
    if (id >= 0 && id < kMostSmall) small_ids_[static_cast<size_t>(id)] = &name;
  }
}

void Names::read_event(std::string_view bytes, LossCounts& losses) {
  int64_t id = 0;
  EventName out;
  std::string_view name;
  std::string_view shown;
  int64_t program = kNoNumber;
  each_field(bytes, losses, [&](Message& entry) {
    if (entry.tag() == kMapKey) {
      id = integer(entry);
      return;
    }
    if (entry.tag() != kMapValue) return entry.skip();
    each_field(bytes_or_none(entry), losses, [&](Message& meta) {
      switch (meta.tag()) {
        case kMetaName: name = bytes_or_none(meta); break;
        case kMetaShownName: shown = bytes_or_none(meta); break;
        case kMetaStats: {
          const StatValue value = stat(bytes_or_none(meta), losses);
          if (value.key == StatKey::kHloCategory) out.category = pool_.strings.intern(value.text);
          if (value.key == StatKey::kOpName) out.op_name = pool_.strings.intern(without_suffix(value.text, ":"));
          if (value.key == StatKey::kFlops) out.flops = value.number;
          if (value.key == StatKey::kBytes) out.bytes = value.number;
          if (value.key == StatKey::kProgram) program = value.number;
          break;
        }
        default: meta.skip();
      }
    });
  });
  out.long_name = name;
  out.name = pool_.strings.intern(shown.empty() ? without_suffix(name, ".kd") : shown);
  if (program != kNoNumber)
    out.program = pool_.strings.intern("program " + std::to_string(static_cast<uint64_t>(program)));
  const std::string_view category = pool_.strings.view(out.category);
  out.kind = op_kind(category, name, LineKind::kOps);
  out.async_kind = op_kind(category, name, LineKind::kAsyncOps);
  out.is_start = (category.empty() ? name : category).find("-start") != std::string_view::npos;
  out.direction = copy_direction(name);
  out.memory = memory_mark(name);
  const std::string collective(collective_name(category, name));
  out.collective = pool_.strings.intern(collective);
  events_[id] = out;
}

StatValue Names::stat(std::string_view bytes, LossCounts& losses) const {
  StatValue out;
  each_field(bytes, losses, [&](Message& field) {
    using Wire = protozero::pbf_wire_type;
    switch (field.tag()) {
      case kStatName: {
        out.key = key(integer(field));
        break;
      }
      case kStatDouble:
        if (field.wire_type() != Wire::fixed64) return field.skip();
        out.real = field.get_double();
        out.number = whole(out.real);
        break;
      case kStatUint:
      case kStatInt:
        out.number = integer(field, kNoNumber);
        out.real = static_cast<double>(out.number);
        break;
      case kStatText: out.text = bytes_or_none(field); break;
      case kStatRef: {
        const auto found = texts_.find(integer(field));
        if (found != texts_.end()) out.text = found->second;
        break;
      }
      default: field.skip();
    }
  });
  return out;
}

StatKey Names::key(int64_t id) const {
  if (id >= 0 && static_cast<size_t>(id) < small_keys_.size()) return small_keys_[static_cast<size_t>(id)];
  const auto found = keys_.find(id);
  return found == keys_.end() ? StatKey::kNone : found->second;
}

HostLook host_look(std::string_view name, bool is_hlo, RawPool& pool) {
  const bool is_hip = name.starts_with("hip");
  const bool is_runtime = is_hip || name.starts_with("cuda");
  const bool is_driver = name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
  if (is_runtime || is_driver) {
    return {.kind = is_driver ? HostKind::kDriver : HostKind::kRuntime,
            .category = pool.strings.intern(is_driver ? "cuda_driver"
                                            : is_hip  ? "hip_runtime"
                                                      : "cuda_runtime")};
  }
  if (name.starts_with('$')) {  // "$file.py:12 function"
    return {.kind = HostKind::kPython, .category = pool.strings.intern("python_function")};
  }
  // What a framework's own code marks ("PjRtClient::Execute") is an operator as PjitFunction(f) is: what it did is
  // known.
  const bool is_op = is_hlo || name.starts_with("PjitFunction(") || name.find("::") != std::string_view::npos;
  return {.kind = is_op ? HostKind::kOp : HostKind::kAnnotation,
          .category = pool.strings.intern(is_op ? "cpu_op" : "TraceMe")};
}

const EventName* Names::event(int64_t id) const {
  if (id >= 0 && static_cast<size_t>(id) < small_ids_.size()) return small_ids_[static_cast<size_t>(id)];
  const auto found = events_.find(id);
  return found == events_.end() ? nullptr : &found->second;
}

}  // namespace firelane::importer::xplane
