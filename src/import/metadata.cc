#include "import/metadata.h"

#include <simdjson.h>

#include <algorithm>

#include "import/distributed.h"

namespace firelane::importer {

namespace dom = simdjson::dom;

namespace {

constexpr size_t kMaxKeys = 4096;

int64_t int_of(const dom::element& object, std::string_view key) {
  int64_t number = 0;
  return object[key].get(number) == simdjson::SUCCESS ? number : kNoNumber;
}

double number_of(const dom::element& object, std::string_view key) {
  double number = 0;
  return object[key].get(number) == simdjson::SUCCESS ? number : 0;
}

std::string text_of(const dom::element& object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : "";
}

std::string text_of(const dom::element& value) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? std::string(text) : "";
}

std::vector<double> numbers_of(const dom::element& value) {
  std::vector<double> numbers;
  dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return numbers;
  for (const dom::element each : list) {
    double number = 0;
    if (each.get(number) == simdjson::SUCCESS) numbers.push_back(number);
  }
  return numbers;
}

int64_t truth_of(const dom::element& object, std::string_view key) {
  bool truth = false;
  return object[key].get(truth) == simdjson::SUCCESS ? int64_t{truth} : kNoNumber;
}

void read_torch(const dom::element& torch, Environment& out) {
  out.torch = text_of(torch, "version");
  out.torch_threads = int_of(torch, "threads");
  out.torch_interop_threads = int_of(torch, "interop_threads");
  out.deterministic_algorithms = truth_of(torch, "deterministic_algorithms");
  out.cudnn_benchmark = truth_of(torch, "cudnn_benchmark");
  out.cudnn_deterministic = truth_of(torch, "cudnn_deterministic");
  out.matmul_tf32 = truth_of(torch, "matmul_tf32");
}

void read_devices(const dom::element& list, TraceInfo& info) {
  dom::array devices;
  if (list.get(devices) != simdjson::SUCCESS) return;
  for (const dom::element device : devices) {
    DeviceProperties& out = info.devices.emplace_back();
    out.id = int_of(device, "id");
    out.name = text_of(device, "name");
    out.total_memory_bytes = int_of(device, "totalGlobalMem");
    out.compute_major = int_of(device, "computeMajor");
    out.compute_minor = int_of(device, "computeMinor");
    out.multiprocessors = int_of(device, "numSms");
    if (out.multiprocessors == kNoNumber) out.multiprocessors = int_of(device, "maxComputeUnits");
    out.max_threads_per_multiprocessor = int_of(device, "maxThreadsPerMultiprocessor");
    out.registers_per_multiprocessor = int_of(device, "regsPerMultiprocessor");
    out.shared_memory_per_multiprocessor_bytes = int_of(device, "sharedMemPerMultiprocessor");
    if (out.shared_memory_per_multiprocessor_bytes == kNoNumber) {
      out.shared_memory_per_multiprocessor_bytes = int_of(device, "maxSharedMemoryPerMultiProcessor");
    }
    out.warp_size = int_of(device, "warpSize");
  }
}

// The kind with that word; the first one if there is none.
template <IsKind Kind>
Kind word_named(std::string_view word) {
  const auto words = words_of(Kind{});
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() ? Kind{} : static_cast<Kind>(found - words.begin());
}

}  // namespace

void keep_metadata(std::string key, std::string json, std::vector<MetadataEntry>& metadata, LossCounts& losses) {
  const auto same =
      std::find_if(metadata.begin(), metadata.end(), [&](const MetadataEntry& e) { return e.key == key; });
  if (same != metadata.end()) {
    same->json = std::move(json);
  } else if (metadata.size() >= kMaxKeys) {
    ++losses[Stat::kMetadataTooLarge];
  } else {
    metadata.push_back({std::move(key), std::move(json)});
  }
}

void interpret_metadata(TraceInfo& info) {
  dom::parser parser;
  for (MetadataEntry& entry : info.metadata) {
    dom::element value;
    if (parser.parse(entry.json).get(value) != simdjson::SUCCESS) continue;
    double plain = 0;
    if (value.get(plain) == simdjson::SUCCESS) entry.number = plain;
    entry.text = text_of(value);
    entry.numbers = numbers_of(value);
    if (entry.key == "deviceProperties") {
      read_devices(value, info);
    } else if (entry.key == "baseTimeNanoseconds") {
      int64_t number = 0;
      if (value.get(number) == simdjson::SUCCESS) info.base_time_ns = number;
    } else if (read_distributed(entry.key, entry.json, info.distributed)) {
      continue;
    } else if (entry.key == "machine") {
      info.environment.cpu = text_of(value, "cpu");
      info.environment.cores = int_of(value, "cores");
      info.environment.cores_allowed = int_of(value, "cores_allowed");
      if (info.environment.cores_allowed == kNoNumber) info.environment.cores_allowed = info.environment.cores;
      info.environment.cpu_quota = number_of(value, "cpu_quota");
      info.environment.memory_bytes = int_of(value, "memory_bytes");
    } else if (entry.key == "torch") {
      read_torch(value, info.environment);
    } else if (entry.key == "front") {
      info.environment.front_name = entry.text;
      info.environment.front = front_named(info.environment.front_name);
    } else if (entry.key == "firelane_source") {
      info.format = text_of(value, "format");
      info.origin = word_named<Origin>(text_of(value, "origin"));
      info.has_order_only = text_of(value, "times") == "order of calls";
      info.accelerator = word_named<Accelerator>(text_of(value, "accelerator"));
    } else if (entry.key == "python") {
      info.environment.python = entry.text;
    } else if (entry.key == "commit") {
      info.environment.commit = entry.text;
    }
  }
  finish_distributed(info.distributed);
}

}  // namespace firelane::importer
