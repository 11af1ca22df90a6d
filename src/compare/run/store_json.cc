#include <simdjson.h>

#include <algorithm>

#include "base/json_writer.h"
#include "compare/run/store.h"

namespace firelane::compare {

namespace {

constexpr int64_t kStoreVersion = 1;
constexpr size_t kMostWork = 100;
constexpr size_t kMostPlaces = 30;
constexpr size_t kMostSteps = 200;

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Plain numbers of a run, for both ways.
template <typename Visit>
void each_number(Visit&& visit) {
  visit("step_ns", &Run::step_ns);
  visit("recorded_ns", &Run::recorded_ns);
  visit("gpu_ns", &Run::gpu_ns);
  visit("busy_ns", &Run::busy_ns);
  visit("input_wait_ns", &Run::input_wait_ns);
  visit("peak_bytes", &Run::peak_bytes);
  visit("samples", &Run::samples);
  visit("tokens", &Run::tokens);
  visit("launches", &Run::launches);
  visit("kernels", &Run::kernels);
  visit("copies", &Run::copies);
  visit("syncs", &Run::syncs);
  visit("ops", &Run::ops);
  visit("allocator_calls", &Run::allocator_calls);
  visit("flops", &Run::flops);
  visit("mfu_percent", &Run::mfu_percent);
  visit("energy_joules", &Run::energy_joules);
  visit("mean_power_watts", &Run::mean_power_watts);
  visit("has_device_work", &Run::has_device_work);
  visit("has_memory", &Run::has_memory);
  visit("recording_estimated", &Run::recording_estimated);
}

template <typename Visit>
void each_text(Visit&& visit) {
  visit("path", &Run::path);
  visit("format", &Run::format);
  visit("model", &Run::model_name);
  visit("steps_by", &Run::steps_by);
  visit("memory_device", &Run::memory_device);
  visit("samples_are", &Run::samples_are);
  visit("limit", &Run::limit);
  visit("verdict", &Run::verdict);
}

void write_pairs(JsonWriter& json, std::string_view name, const Pairs& pairs) {
  json.key(name).begin_object();
  for (const auto& [key, value] : pairs) json.field(key, value);
  json.end_object();
}

// The largest groups; the others as one a part, so that sums stay.
std::vector<WorkGroup> largest_work(std::vector<WorkGroup> work) {
  if (work.size() <= kMostWork) return work;
  std::stable_sort(work.begin(), work.end(),
                   [](const WorkGroup& a, const WorkGroup& b) { return a.total_ns > b.total_ns; });
  std::vector<WorkGroup> out(work.begin(), work.begin() + kMostWork);
  for (size_t i = kMostWork; i < work.size(); ++i) {
    auto rest = std::find_if(out.begin() + kMostWork, out.end(),
                             [&](const WorkGroup& group) { return group.part == work[i].part; });
    if (rest == out.end()) rest = out.insert(out.end(), {.part = work[i].part, .kernel = "(smaller ones)"});
    rest->calls += work[i].calls;
    rest->total_ns += work[i].total_ns;
    rest->path_ns += work[i].path_ns;
  }
  return out;
}

std::string text_at(simdjson::dom::element object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : "";
}

double number_at(simdjson::dom::element object, std::string_view key) {
  double number = 0;
  return object[key].get(number) == simdjson::SUCCESS ? number : 0;
}

template <typename Visit>
void each_item(simdjson::dom::element object, std::string_view key, const Visit& visit) {
  simdjson::dom::array items;
  if (object[key].get(items) != simdjson::SUCCESS) return;
  for (const simdjson::dom::element item : items) visit(item);
}

void read_pairs(simdjson::dom::element object, std::string_view key, Pairs& out) {
  simdjson::dom::object pairs;
  if (object[key].get(pairs) != simdjson::SUCCESS) return;
  for (const auto& [name, value] : pairs) {
    std::string_view text;
    if (value.get(text) == simdjson::SUCCESS) out.emplace_back(std::string(name), std::string(text));
  }
}

Part part_named(std::string_view name) {
  for (size_t i = 0; i < kPartCount; ++i) {
    if (name_of(static_cast<Part>(i)) == name) return static_cast<Part>(i);
  }
  return Part::kUneven;
}

void read_lists(simdjson::dom::element root, Run& run) {
  each_item(root, "steps_ns", [&](simdjson::dom::element item) {
    int64_t ns = 0;
    if (item.get(ns) == simdjson::SUCCESS) run.steps_ns.push_back(ns);
  });
  each_item(root, "parts", [&](simdjson::dom::element item) {
    run.parts[static_cast<size_t>(part_named(text_at(item, "part")))] += static_cast<int64_t>(number_at(item, "ns"));
  });
  each_item(root, "memory", [&](simdjson::dom::element item) {
    for (size_t i = 0; i < run.memory.size(); ++i) {
      if (analyze::name_of(static_cast<analyze::MemoryCategory>(i)) == text_at(item, "category")) {
        run.memory[i] += static_cast<int64_t>(number_at(item, "bytes"));
      }
    }
  });
  each_item(root, "work", [&](simdjson::dom::element item) {
    run.work.push_back({.part = part_named(text_at(item, "part")),
                        .kernel = text_at(item, "kernel"),
                        .op = text_at(item, "op"),
                        .module = text_at(item, "module"),
                        .dims = text_at(item, "dims"),
                        .types = text_at(item, "types"),
                        .line = text_at(item, "line"),
                        .calls = number_at(item, "calls"),
                        .total_ns = number_at(item, "ns"),
                        .path_ns = number_at(item, "path_ns")});
  });
  each_item(root, "places", [&](simdjson::dom::element item) {
    run.places.push_back(
        {part_named(text_at(item, "part")), text_at(item, "op"), text_at(item, "line"), number_at(item, "ns")});
  });
  each_item(root, "syncs_at", [&](simdjson::dom::element item) {
    run.sync_places.push_back({text_at(item, "reason"), text_at(item, "op"), text_at(item, "line"),
                               number_at(item, "calls"), number_at(item, "ns")});
  });
  each_item(root, "precisions", [&](simdjson::dom::element item) {
    run.precisions.push_back({text_at(item, "precision"), number_at(item, "flops"), number_at(item, "device_ns"),
                              number_at(item, "peak_flops_per_s")});
  });
  each_item(root, "findings", [&](simdjson::dom::element item) {
    run.findings.push_back(
        {text_at(item, "id"), text_at(item, "title"), static_cast<int64_t>(number_at(item, "gain_ns"))});
  });
}

}  // namespace

std::string to_json(const Run& run) {
  JsonWriter json(1);
  json.begin_object().field("firelane_run", kStoreVersion);
  each_text([&](std::string_view name, auto member) { json.field(name, run.*member); });
  each_number([&](std::string_view name, auto member) { json.field(name, run.*member); });
  if (run.reserved_bytes != kNoNumber) json.field("reserved_bytes", run.reserved_bytes);
  write_pairs(json, "environment", run.environment);
  write_pairs(json, "recording", run.recording);
  json.key("numbers").begin_object();
  for (const auto& [name, value] : run.numbers) json.field(name, value);
  json.end_object();
  json.key("steps_ns").begin_array();
  const size_t skipped = run.steps_ns.size() > kMostSteps ? run.steps_ns.size() - kMostSteps : 0;
  for (size_t i = skipped; i < run.steps_ns.size(); ++i) json.value(run.steps_ns[i]);
  json.end_array().key("parts").begin_array();
  for (size_t i = 0; i < kPartCount; ++i) {
    if (run.parts[i] == 0) continue;
    json.begin_object().field("part", name_of(static_cast<Part>(i))).field("ns", run.parts[i]).end_object();
  }
  json.end_array().key("memory").begin_array();
  for (size_t i = 0; i < run.memory.size(); ++i) {
    if (run.memory[i] == 0) continue;
    json.begin_object().field("category", analyze::name_of(static_cast<analyze::MemoryCategory>(i)));
    json.field("bytes", run.memory[i]).end_object();
  }
  json.end_array().key("work").begin_array();
  for (const WorkGroup& group : largest_work(run.work)) {
    json.begin_object().field("part", name_of(group.part));
    const std::pair<std::string_view, const std::string*> texts[] = {{"kernel", &group.kernel}, {"op", &group.op},
                                                                     {"module", &group.module}, {"dims", &group.dims},
                                                                     {"types", &group.types},   {"line", &group.line}};
    for (const auto& [name, text] : texts) {
      if (!text->empty()) json.field(name, *text);
    }
    json.field("calls", group.calls).field("ns", group.total_ns).field("path_ns", group.path_ns).end_object();
  }
  json.end_array().key("places").begin_array();
  for (size_t i = 0; i < std::min(run.places.size(), kMostPlaces); ++i) {
    const HostPlace& place = run.places[i];
    json.begin_object().field("part", name_of(place.part)).field("op", place.op).field("line", place.line);
    json.field("ns", place.ns).end_object();
  }
  json.end_array().key("syncs_at").begin_array();
  for (size_t i = 0; i < std::min(run.sync_places.size(), kMostPlaces); ++i) {
    const SyncPlace& place = run.sync_places[i];
    json.begin_object().field("reason", place.reason).field("op", place.op).field("line", place.line);
    json.field("calls", place.calls).field("ns", place.ns).end_object();
  }
  json.end_array().key("precisions").begin_array();
  for (const PrecisionUse& use : run.precisions) {
    json.begin_object().field("precision", use.precision).field("flops", use.flops).field("device_ns", use.device_ns);
    json.field("peak_flops_per_s", use.peak_flops_per_s).end_object();
  }
  json.end_array().key("findings").begin_array();
  for (const FindingMark& finding : run.findings) {
    json.begin_object().field("id", finding.id).field("title", finding.title);
    json.field("gain_ns", finding.gain_ns).end_object();
  }
  return json.end_array().end_object().take() + "\n";
}

Result<Run> run_from_json(std::string_view text, const std::string& name) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS || !root.is_object()) {
    return Error{name + ": not a stored run: no JSON object; add it again with firelane baseline add"};
  }
  int64_t version = 0;
  if (root["firelane_run"].get(version) != simdjson::SUCCESS) {
    return Error{name + ": not a stored run: no field firelane_run; firelane baseline add writes such files"};
  }
  if (version > kStoreVersion) return Error{name + ": written by a newer firelane; update this one"};
  Run run;
  each_text([&](std::string_view key, auto member) { run.*member = text_at(root, key); });
  each_number([&](std::string_view key, auto member) {
    using T = std::decay_t<decltype(run.*member)>;
    if constexpr (std::is_same_v<T, bool>) {
      bool truth = false;
      if (root[key].get(truth) == simdjson::SUCCESS) run.*member = truth;
    } else {
      double number = 0;
      if (root[key].get(number) == simdjson::SUCCESS) run.*member = static_cast<T>(number);
    }
  });
  int64_t reserved = 0;
  if (root["reserved_bytes"].get(reserved) == simdjson::SUCCESS) run.reserved_bytes = reserved;
  read_pairs(root, "environment", run.environment);
  read_pairs(root, "recording", run.recording);
  simdjson::dom::object numbers;
  if (root["numbers"].get(numbers) == simdjson::SUCCESS) {
    for (const auto& [key, value] : numbers) {
      double number = 0;
      if (value.get(number) == simdjson::SUCCESS) run.numbers.emplace_back(std::string(key), number);
    }
  }
  read_lists(root, run);
  // A damaged file must not break the promise that parts add up.
  int64_t given = 0;
  for (const int64_t part : run.parts) given += part;
  run.parts[static_cast<size_t>(Part::kUneven)] += run.step_ns - given;
  return run;
}

}  // namespace firelane::compare
