#include <simdjson.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "import/cut_json.h"
#include "import/rocprof/read_rocprof.h"
#include "import/rocprof/rocprof_rows.h"
#include "import/whole.h"

namespace firelane::importer {

namespace {

namespace dom = simdjson::dom;

constexpr std::string_view kRoot = "rocprofiler-sdk-tool";

// What records of one process refer to.
struct RocprofNames {
  int64_t pid = 0;
  std::unordered_map<int64_t, std::pair<std::string, int64_t>> kernels;  // name, registers
  std::unordered_map<int64_t, int64_t> devices;                          // agent -> index among the GPUs
  std::vector<std::vector<std::string>> operations;                      // by kind and number
  std::unordered_map<int64_t, std::string> markers;                      // by correlation id
};

// Calls visit(parent, key, value) for every number and text of an object, inside of inner objects too; `parent` is the
// key of the innermost one.
template <typename Visit>
void each_scalar(const dom::object& object, std::string_view parent, const Visit& visit, int depth = 0) {
  for (const dom::key_value_pair& field : object) {
    dom::object inner;
    if (field.value.get(inner) == simdjson::SUCCESS) {
      if (depth < 8) each_scalar(inner, field.key, visit, depth + 1);
    } else if (!field.value.is_array()) {
      visit(parent, field.key, field.value);
    }
  }
}

// Calls visit(object) for the objects of a list; of anything else there are none.
template <typename Visit>
void each_object(const dom::element& value, const Visit& visit) {
  dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return;
  for (const dom::element each : list) {
    dom::object object;
    if (each.get(object) == simdjson::SUCCESS) visit(object);
  }
}

int64_t number_in(const dom::element& value) {
  int64_t number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  uint64_t large = 0;
  return value.get(large) == simdjson::SUCCESS ? static_cast<int64_t>(large) : kNoNumber;
}

std::string text_in(const dom::element& value) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

class RocprofJson {
 public:
  Result<RawTrace> run(std::string bytes, const ReadRequest& request) {
    raw_.info.content_bytes = bytes.size();
    bytes.reserve(bytes.size() + simdjson::SIMDJSON_PADDING);
    dom::parser parser;
    dom::element root;
    auto error = parser.parse(bytes.data(), bytes.size(), false).get(root);
    if (error && close_cut_json(bytes)) {
      ++raw_.losses[Stat::kTruncated];
      bytes.reserve(bytes.size() + simdjson::SIMDJSON_PADDING);
      error = parser.parse(bytes.data(), bytes.size(), false).get(root);
    }
    if (error) {
      return Error{request.name + ": JSON of rocprofv3 that is cut off or damaged: " + simdjson::error_message(error)};
    }
    bytes = std::string();  // the parser keeps what it needs
    dom::element tools;
    if (root[kRoot].get(tools) == simdjson::SUCCESS) {
      each_object(tools, [&](const dom::object& tool) { read_tool(tool); });
    }
    if (rows_.empty() && raw_.losses[Stat::kTruncated] > 0) {
      return Error{request.name + ": JSON of rocprofv3 that ends before its events; copy the file again"};
    }
    if (rows_.empty()) {
      return Error{request.name + ": JSON of rocprofv3 without events; record with --kernel-trace or --sys-trace"};
    }
    describe_rocprof(raw_.info, "JSON");
    return std::move(raw_);
  }

 private:
  void read_tool(const dom::object& tool) {
    names_ = RocprofNames();
    for (const dom::key_value_pair& field : tool) read_names(field.key, field.value);
    dom::object lists;
    if (tool["buffer_records"].get(lists) == simdjson::SUCCESS) read_records(lists);
    ++tool_;
  }

  void read_names(std::string_view key, const dom::element& value) {
    if (key == "metadata") {
      dom::element pid;
      if (value["pid"].get(pid) == simdjson::SUCCESS) names_.pid = number_in(pid);
    } else if (key == "agents") {
      each_object(value, [&](const dom::object& object) { read_agent(object); });
    } else if (key == "kernel_symbols") {
      each_object(value, [&](const dom::object& object) { read_symbol(object); });
    } else if (key == "strings") {
      read_strings(value);
    }
  }

  void read_symbol(const dom::object& object) {
    int64_t id = kNoNumber;
    int64_t registers = kNoNumber;
    std::string formatted, plain;
    each_scalar(object, "", [&](std::string_view, std::string_view key, const dom::element& value) {
      if (key == "kernel_id") id = number_in(value);
      if (key == "arch_vgpr_count") registers = number_in(value);
      if (key == "formatted_kernel_name") formatted = text_in(value);
      if (key == "kernel_name") plain = text_in(value);
    });
    names_.kernels[id] = {formatted.empty() ? plain : formatted, registers};
  }

  void read_agent(const dom::object& object) {
    DeviceProperties device;
    int64_t handle = kNoNumber;
    int64_t type = kNoNumber;
    int64_t waves_per_simd = kNoNumber;
    int64_t simd_per_cu = kNoNumber;
    std::string name, product;
    each_scalar(object, "", [&](std::string_view parent, std::string_view key, const dom::element& value) {
      if (parent == "id" && key == "handle") handle = number_in(value);
      if (!parent.empty()) return;
      if (key == "type") type = number_in(value);
      if (key == "cu_count") device.multiprocessors = number_in(value);
      if (key == "wave_front_size") device.warp_size = number_in(value);
      if (key == "max_waves_per_simd") waves_per_simd = number_in(value);
      if (key == "simd_per_cu") simd_per_cu = number_in(value);
      if (key == "lds_size_in_kb") device.shared_memory_per_multiprocessor_bytes = number_in(value);
      if (key == "gfx_target_version") {
        const int64_t version = number_in(value);
        device.compute_major = version < 0 ? kNoNumber : version / 10000;
        device.compute_minor = version < 0 ? kNoNumber : version / 100 % 100;
      }
      if (key == "name") name = text_in(value);
      if (key == "product_name") product = text_in(value);
    });
    constexpr int64_t kGpu = 2;
    if (type != kGpu) return;
    device.id = static_cast<int64_t>(names_.devices.size());
    device.name = product.empty() ? name : product;
    int64_t& shared = device.shared_memory_per_multiprocessor_bytes;
    shared = shared > 0 && shared < 1 << 20 ? shared * 1024 : kNoNumber;
    const bool has_waves = waves_per_simd > 0 && waves_per_simd < 1024 && simd_per_cu > 0 && simd_per_cu < 1024 &&
                           device.warp_size > 0 && device.warp_size < 1024;
    if (has_waves) device.max_threads_per_multiprocessor = waves_per_simd * simd_per_cu * device.warp_size;
    names_.devices[handle] = device.id;
    if (tool_ == 0 && raw_.info.devices.size() < 1024) raw_.info.devices.push_back(std::move(device));
  }

  // Names of kinds of records and of their operations, and the texts of markers.
  void read_strings(const dom::element& value) {
    dom::element list;
    if (value["buffer_records"].get(list) == simdjson::SUCCESS) {
      each_object(list, [&](const dom::object& object) {
        std::vector<std::string>& operations = names_.operations.emplace_back();
        dom::array names;
        if (object["operations"].get(names) != simdjson::SUCCESS) return;
        for (const dom::element each : names) operations.push_back(text_in(each));
      });
    }
    if (value["marker_api"].get(list) == simdjson::SUCCESS) {
      each_object(list, [&](const dom::object& object) {
        dom::element key, text;
        if (object["key"].get(key) || object["value"].get(text)) return;
        names_.markers[number_in(key)] = text_in(text);
      });
    }
  }

  // ---- records

  struct Record {
    int64_t kind = kNoNumber, operation = kNoNumber, thread = 0, from = kNoNumber, to = kNoNumber, kernel = kNoNumber;
    int64_t bytes = kNoNumber;
    RocprofDispatch dispatch;
  };

  void read_records(const dom::object& lists) {
    for (const dom::key_value_pair& field : lists) {
      const bool is_used = field.key == "kernel_dispatch" || field.key == "memory_copy" || field.key.ends_with("_api");
      each_object(field.value, [&](const dom::object& object) {
        if (!is_used) {
          ++rows_.losses()[Stat::kEventNotUsed];
          return;
        }
        Record record;
        read_record(object, record);
        add(field.key, record);
      });
    }
  }

  static void read_record(const dom::object& object, Record& out) {
    RocprofDispatch& dispatch = out.dispatch;
    each_scalar(object, "", [&](std::string_view parent, std::string_view key, const dom::element& value) {
      if (parent.empty()) {
        if (key == "start_timestamp") dispatch.start_ns = number_in(value);
        if (key == "end_timestamp") dispatch.end_ns = number_in(value);
        if (key == "thread_id") out.thread = number_in(value);
        if (key == "kind") out.kind = number_in(value);
        if (key == "operation") out.operation = number_in(value);
        if (key == "bytes") out.bytes = number_in(value);
        return;
      }
      if (parent == "dispatch_info" && key == "kernel_id") out.kernel = number_in(value);
      if (parent == "dispatch_info" && key == "group_segment_size") dispatch.group_segment_bytes = number_in(value);
      if (parent == "correlation_id" && key == "internal") dispatch.correlation = number_in(value);
      if (key == "handle") {
        const int64_t handle = number_in(value);
        if (parent == "agent_id" || parent == "src_agent_id") out.from = handle;
        if (parent == "dst_agent_id") out.to = handle;
        if (parent == "queue_id") dispatch.queue = handle;
        if (parent == "stream_id") dispatch.stream = handle;
      }
      if (key.size() != 1 || key[0] < 'x' || key[0] > 'z') return;
      const size_t axis = static_cast<size_t>(key[0] - 'x');
      if (parent == "grid_size") dispatch.grid[axis] = number_in(value);
      if (parent == "workgroup_size") dispatch.workgroup[axis] = number_in(value);
    });
  }

  int64_t device_of(int64_t agent) const {
    const auto found = names_.devices.find(agent);
    return found == names_.devices.end() ? kNoNumber : found->second;
  }

  int64_t joined(int64_t id) const {
    return id <= 0 || id >= int64_t{1} << 40 ? kNoNumber : static_cast<int64_t>(tool_) << 40 | id;
  }

  std::string_view operation_of(const Record& record) const {
    if (record.kind < 0 || record.kind >= static_cast<int64_t>(names_.operations.size())) return "?";
    const std::vector<std::string>& operations = names_.operations[static_cast<size_t>(record.kind)];
    return record.operation < 0 || record.operation >= static_cast<int64_t>(operations.size())
               ? std::string_view("?")
               : std::string_view(operations[static_cast<size_t>(record.operation)]);
  }

  void add(std::string_view list, Record& record) {
    const int64_t correlation = record.dispatch.correlation;
    record.dispatch.correlation = joined(correlation);
    const int64_t from = device_of(record.from);
    if (list == "kernel_dispatch") {
      record.dispatch.device = from == kNoNumber ? 0 : from;
      if (const auto kernel = names_.kernels.find(record.kernel); kernel != names_.kernels.end()) {
        record.dispatch.kernel = kernel->second.first;
        record.dispatch.registers = kernel->second.second;
      }
      rows_.add(record.dispatch);
      return;
    }
    if (list == "memory_copy") {
      const int64_t to = device_of(record.to);
      rows_.add(RocprofCopy{.start_ns = record.dispatch.start_ns,
                            .end_ns = record.dispatch.end_ns,
                            .device = to != kNoNumber     ? to
                                      : from != kNoNumber ? from
                                                          : 0,
                            .stream = record.dispatch.stream,
                            .correlation = record.dispatch.correlation,
                            .bytes = record.bytes,
                            .direction = operation_of(record)});
      return;
    }
    const std::string category = list == "hip_api"      ? "HIP_RUNTIME_API"
                                 : list == "hsa_api"    ? "HSA_CORE_API"
                                 : list == "marker_api" ? "MARKER_CORE_API"
                                                        : std::string(list);
    const auto marker = names_.markers.find(correlation);
    const bool has_text = list == "marker_api" && marker != names_.markers.end();
    rows_.add(RocprofRegion{.start_ns = record.dispatch.start_ns,
                            .end_ns = record.dispatch.end_ns,
                            .pid = names_.pid,
                            .tid = record.thread,
                            .correlation = record.dispatch.correlation,
                            .category = category,
                            .name = has_text ? std::string_view(marker->second) : operation_of(record)});
  }

  RawTrace raw_;
  RocprofRows rows_{raw_};
  RocprofNames names_;
  size_t tool_ = 0;
};

}  // namespace

bool is_rocprof_json(std::string_view begin) {
  const size_t at = begin.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && begin[at] == '{' &&
         begin.substr(at, 64).find("\"rocprofiler-sdk-tool\"") != std::string_view::npos;
}

Reader rocprof_json_reader() {
  return {"rocprofv3 JSON", is_rocprof_json,
          [](std::unique_ptr<ByteSource> content, const ReadRequest& request) -> Result<RawTrace> {
            FL_TRY(std::string bytes, read_whole_content(*content, request));
            FL_TRY(RawTrace raw, RocprofJson().run(std::move(bytes), request));
            raw.losses.add(content->losses());
            return raw;
          }};
}

}  // namespace firelane::importer
