#include <simdjson.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "analyze/trace/info.h"
#include "compare/run/pieces.h"

namespace firelane::compare {

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// What is different in every recording, or said elsewhere.
constexpr std::array<std::string_view, 16> kNotEnvironment = {"trace_id",
                                                              "schemaVersion",
                                                              "displayTimeUnit",
                                                              "baseTimeNanoseconds",
                                                              "traceName",
                                                              "deviceProperties",
                                                              "distributedInfo",
                                                              "record_shapes",
                                                              "profile_memory",
                                                              "with_stack",
                                                              "with_flops",
                                                              "with_modules",
                                                              "with_modules_hierarchy",
                                                              "front",
                                                              "cuda_calls_by",
                                                              "host_name"};

// Notes about what happened in the run, and not about where and with what it ran.
bool is_note(std::string_view key) {
  for (const std::string_view prefix :
       {"compile_", "cores_used", "steps_with_", "cuda_memory_at_", "unfinished_step"}) {
    if (key.starts_with(prefix)) return true;
  }
  return false;
}

void add_value(const std::string& name, simdjson::dom::element value, Pairs& out, int depth) {
  if (std::find(kNotEnvironment.begin(), kNotEnvironment.end(), name) != kNotEnvironment.end()) return;
  if (value.is_object()) {
    if (depth > 2) return;
    for (const auto& [key, inner] : simdjson::dom::object(value)) {
      add_value(depth == 0 ? std::string(key) : name + "." + std::string(key), inner, out, depth + 1);
    }
    return;
  }
  if (value.is_string()) {
    out.emplace_back(name, std::string(std::string_view(value)));
  } else if (!value.is_null() && !value.is_array()) {
    out.emplace_back(name, simdjson::minify(value));
  }
}

}  // namespace

Pairs environment_of(const Model& model) {
  Pairs out;
  simdjson::dom::parser parser;
  for (const MetadataEntry& entry : model.info.metadata) {
    if (is_note(entry.key)) continue;
    simdjson::dom::element value;
    if (parser.parse(entry.json).get(value) != simdjson::SUCCESS) continue;
    add_value(entry.key, value, out, entry.key == "machine" ? 0 : 1);
  }
  std::string devices;
  for (const DeviceProperties& device : model.info.devices) {
    if (devices.find(device.name) == std::string::npos) devices += (devices.empty() ? "" : ", ") + device.name;
  }
  if (!devices.empty()) {
    out.emplace_back("gpu", devices);
    out.emplace_back("gpu_count", std::to_string(model.info.devices.size()));
  }
  if (model.info.distributed.present) {
    out.emplace_back("distributed_backend", model.info.distributed.backend);
    if (model.info.distributed.world_size != kNoNumber)
      out.emplace_back("world_size", std::to_string(model.info.distributed.world_size));
    if (!model.info.distributed.nccl_version.empty())
      out.emplace_back("nccl_version", model.info.distributed.nccl_version);
  }
  if (!model.info.recorder.host_name.empty()) out.emplace_back("host", model.info.recorder.host_name);
  if (!model.info.recorder.command.empty()) out.emplace_back("command", model.info.recorder.command);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
            out.end());
  return out;
}

Pairs recording_of(const Model& model) {
  Pairs out;
  for (const analyze::RecordingOption& option : analyze::recording_options(model)) {
    if (option.state == analyze::Switch::kUnknown) continue;
    out.emplace_back(std::string(option.name), std::string(analyze::name_of(option.state)));
  }
  return out;
}

}  // namespace firelane::compare
