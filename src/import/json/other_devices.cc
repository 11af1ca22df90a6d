#include "import/json/other_devices.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string>
#include <utility>

namespace firelane::importer {

namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// Task types and names of tasks on Ascend's hardware lanes.
DeviceKind ascend_kind(std::string_view name, std::string_view task_type) {
  for (const std::string_view text : {task_type, name}) {
    if (has_any(text, {"EVENT_RECORD", "NOTIFY_RECORD", "Notify_Record", "PROFILER_TRACE", "EVENT_RESET"}))
      return DeviceKind::kEvent;
    if (has_any(text, {"EVENT_WAIT", "NOTIFY_WAIT", "Notify_Wait", "WAIT_SQE"})) return DeviceKind::kSync;
    if (has_any(text, {"MEMCPY", "Memcpy", "SDMA"})) return DeviceKind::kCopy;
  }
  return name.starts_with("hcom_") ? DeviceKind::kCollective : DeviceKind::kKernel;
}

using ProcessKey = std::pair<int64_t, std::string>;
using LaneKey = std::pair<ProcessKey, ProcessKey>;

enum class ProcessKind : uint8_t {
  kProgram,
  kDevice,         // labelled as one: "MTIA 17"
  kDerived,        // made from other lanes: no work of its own
  kCommunication,  // Ascend: collectives, and the pieces they consist of
};

struct Process {
  std::string name;
  std::string labels;
};

ProcessKind kind_of(const Process& process) {
  if (process.name == "Overlap Analysis") return ProcessKind::kDerived;
  if (process.labels.starts_with("NPU") && (process.name == "Communication" || process.name == "HCCL"))
    return ProcessKind::kCommunication;
  for (const std::string_view word : {"MTIA", "HPU", "NPU", "XPU"}) {
    if (process.labels.starts_with(word)) return ProcessKind::kDevice;
  }
  return ProcessKind::kProgram;
}

// "NPU 3" is device 3; without a number there is one.
int32_t device_index(std::string_view labels) {
  const size_t at = labels.find_first_of("0123456789");
  int32_t number = 0;
  if (at != std::string_view::npos) std::from_chars(labels.data() + at, labels.data() + labels.size(), number);
  return number;
}

class Settler {
 public:
  explicit Settler(RawTrace& raw) : raw_(raw) {}

  void run() {
    read_names();
    join_threads();
    for (RawPart& part : raw_.parts) {
      find_accelerator(part.accelerator);
      pool_ = &raw_.pools[part.pool];
      kinds_.assign(pool_->lanes.size(), nullptr);
      if (any_special_) settle(part);
    }
    if (raw_.info.accelerator == Accelerator::kUnknown) by_names();
    if (raw_.info.accelerator == Accelerator::kNpu && raw_.info.origin == Origin::kOther)
      raw_.info.origin = Origin::kAscend;
  }

 private:
  struct Special {
    ProcessKind kind = ProcessKind::kProgram;
    int32_t device = 0;
  };

  ProcessKey key_of(const RawPool& pool, const TraceId& id) const {
    return {id.number, std::string(pool.strings.view(id.text))};
  }

  void read_names() {
    for (const RawPart& part : raw_.parts) {
      const RawPool& pool = raw_.pools[part.pool];
      for (const RawLaneName& row : part.lane_names) {
        const RawPool::Lane& lane = pool.lanes[static_cast<uint32_t>(row.lane)];
        const std::string text(pool.strings.view(row.text));
        if (row.what == LaneNameKind::kProcessName) processes_[key_of(pool, lane.pid)].name = text;
        if (row.what == LaneNameKind::kProcessLabels) processes_[key_of(pool, lane.pid)].labels = text;
        if (row.what == LaneNameKind::kThreadName) lane_names_[{key_of(pool, lane.pid), key_of(pool, lane.tid)}] = text;
      }
    }
    for (const auto& [key, process] : processes_) {
      const ProcessKind kind = kind_of(process);
      if (kind == ProcessKind::kProgram) continue;
      any_special_ = true;
      special_[key] = {kind, device_index(process.labels)};
    }
  }

  // Ascend's exporter puts the calls of CANN into a process of their own, on threads with the numbers of the program's:
  // they are the same threads, and what called CANN is what is open in them.
  void join_threads() {
    const ProcessKey* program = nullptr;
    const ProcessKey* calls = nullptr;
    for (const auto& [key, process] : processes_) {
      const ProcessKey*& named = process.name == "Python" ? program : calls;
      if (process.name != "Python" && process.name != "CANN") continue;
      if (named != nullptr) return;  // whose calls they are is not known
      named = &key;
    }
    if (program == nullptr || calls == nullptr || !program->second.empty()) return;
    for (RawPart& part : raw_.parts) {
      const RawPool& pool = raw_.pools[part.pool];
      std::erase_if(part.lane_names, [&](const RawLaneName& row) {
        const bool is_of_process = row.what == LaneNameKind::kProcessName || row.what == LaneNameKind::kProcessLabels ||
                                   row.what == LaneNameKind::kProcessSortIndex;
        return is_of_process && key_of(pool, pool.lanes[static_cast<uint32_t>(row.lane)].pid) == *calls;
      });
    }
    for (RawPool& pool : raw_.pools) {
      for (RawPool::Lane& lane : pool.lanes) {
        if (key_of(pool, lane.pid) == *calls) lane.pid = {.number = program->first};
      }
    }
  }

  void find_accelerator(Accelerator seen) {
    if (seen != Accelerator::kUnknown) raw_.info.accelerator = seen;
  }

  void by_names() {
    const auto& devices = raw_.info.devices;
    const bool has_device_rows = std::any_of(raw_.parts.begin(), raw_.parts.end(), [](const RawPart& part) {
      return !part.device_slices.empty() || !part.call_details.empty();
    });
    if (devices.empty() && !has_device_rows) return;
    const bool is_amd = std::any_of(devices.begin(), devices.end(), [](const DeviceProperties& device) {
      return has_any(device.name, {"AMD", "Radeon", "Instinct"});
    });
    const bool has_roctracer =
        std::any_of(raw_.info.metadata.begin(), raw_.info.metadata.end(), [](const MetadataEntry& entry) {
          return entry.key == "hip_runtime_version" || entry.key == "roctracer_version";
        });
    raw_.info.accelerator = is_amd || has_roctracer ? Accelerator::kHip : Accelerator::kCuda;
  }

  // Null for lanes of the program.
  const Special* special_of(LaneId id) {
    const auto index = static_cast<uint32_t>(id);
    if (kinds_[index] == nullptr) {
      const auto found = special_.find(key_of(*pool_, pool_->lanes[index].pid));
      kinds_[index] = found == special_.end() ? &program_ : &found->second;
    }
    return kinds_[index] == &program_ ? nullptr : kinds_[index];
  }

  std::string_view lane_name(LaneId id) const {
    const RawPool::Lane& lane = pool_->lanes[static_cast<uint32_t>(id)];
    const auto found = lane_names_.find({key_of(*pool_, lane.pid), key_of(*pool_, lane.tid)});
    return found == lane_names_.end() ? std::string_view{} : std::string_view(found->second);
  }

  void settle(RawPart& part) {
    for (RawDeviceSlice& row : part.device_slices) {
      const Special* special = special_of(row.lane);
      const bool is_npu = special != nullptr && raw_.info.accelerator == Accelerator::kNpu;
      if (is_npu) row.device = special->device;
    }
    size_t kept = 0;
    for (RawHostSlice& row : part.host_slices) {
      const Special* special = special_of(row.lane);
      if (special == nullptr || !moves(part, row, *special)) part.host_slices[kept++] = row;
    }
    part.host_slices.resize(kept);
  }

  // Whether the slice belongs to the device, and was moved to it.
  bool moves(RawPart& part, RawHostSlice& row, const Special& special) {
    if (special.kind == ProcessKind::kDerived) {
      row.kind = HostKind::kSpan;
      row.detail = {};
      return false;
    }
    RawDeviceSlice out{.start_ns = row.start_ns,
                       .duration_ns = row.duration_ns,
                       .source = row.source,
                       .lane = row.lane,
                       .name = row.name,
                       .category = row.category};
    out.device = special.device;
    out.stream = pool_->lanes[static_cast<uint32_t>(row.lane)].tid.number;
    if (special.kind == ProcessKind::kCommunication) {
      // A collective, on the lane of its group; lanes called "Plane" hold the pieces it consists of.
      if (row.kind != HostKind::kOther) return false;
      out.kind = has_any(lane_name(row.lane), {"Plane"}) ? DeviceKind::kAnnotation : DeviceKind::kCollective;
    } else if (row.kind == HostKind::kRuntime) {
      const std::string_view category = pool_->strings.view(row.category);
      if (category != "mtia_runtime" && category != "hpu_op") return false;
      // The queue of a stream as the host sees it repeats the host's calls; hpu_op is what ran.
      out.kind = category == "hpu_op" ? DeviceKind::kKernel : DeviceKind::kSync;
      if (row.detail != kNoRow) out.correlation = part.call_details[row.detail].correlation;
      if (row.detail != kNoRow) out.external_id = part.call_details[row.detail].external_id;
    } else {
      return false;
    }
    part.device_slices.push_back(out);
    return true;
  }

  RawTrace& raw_;
  RawPool* pool_ = nullptr;
  std::map<ProcessKey, Process> processes_;
  std::map<ProcessKey, Special> special_;
  std::map<LaneKey, std::string> lane_names_;
  std::vector<const Special*> kinds_;  // by lane of the pool; null = not looked up yet
  Special program_;
  bool any_special_ = false;
};

}  // namespace

DeviceKind mtia_kind(std::string_view name) {
  if (name.starts_with("dma_")) return DeviceKind::kCopy;
  if (name == "event_wait") return DeviceKind::kSync;
  if (name == "event_record") return DeviceKind::kEvent;
  return DeviceKind::kKernel;  // pe_exe, or a function of the model
}

Category ascend_category(std::string_view name, std::string_view task_type, std::string_view level) {
  if (!task_type.empty()) {
    return {.on_device = true, .device = ascend_kind(name, task_type), .known = true, .accelerator = Accelerator::kNpu};
  }
  for (const std::string_view layer : {"acl", "model", "node", "hccl", "runtime"}) {
    if (level == layer) return {.host = HostKind::kRuntime, .known = true, .accelerator = Accelerator::kNpu};
  }
  return {};
}

CopyDirection direction_in_words(std::string_view text) {
  std::string word;
  for (const char c : text) word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '_' ? ' ' : c;
  if (word == "host to device") return CopyDirection::kHtoD;
  if (word == "device to host") return CopyDirection::kDtoH;
  if (word == "device to device") return CopyDirection::kDtoD;
  if (word == "host to host") return CopyDirection::kHtoH;
  return CopyDirection::kUnknown;
}

void settle_devices(RawTrace& raw) { Settler(raw).run(); }

}  // namespace firelane::importer
