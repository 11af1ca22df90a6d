// /api/t/T/memory/...: the curve by category, what is alive at a moment, and where it lies.
#include <string>
#include <vector>

#include "analyze/memory/memory_at.h"
#include "report/described.h"
#include "report/memory_report.h"
#include "serve/counters.h"
#include "serve/handlers.h"

namespace firelane::serve {

namespace {

constexpr size_t kMostPieces = 50'000;

// The device that was asked for; the first when none was. nullptr: there is none of that name, or no memory at all.
const analyze::DeviceMemory* wanted_device(const ServedTrace& trace, Parameters& wanted) {
  const std::string name = wanted.text("device");
  for (const analyze::DeviceMemory& device : trace.memory().devices) {
    if (name.empty() || analyze::device_label(device) == name) return &device;
  }
  return nullptr;
}

constexpr std::string_view kNoMemory =
    "no memory of that device in this trace; record with profile_memory=True, and see devices of memory/curve";

void write_numbers(JsonWriter& json, std::string_view name, const std::vector<int64_t>& numbers) {
  json.key(name).begin_array();
  for (const int64_t number : numbers) {
    if (number == kNoNumber) {
      json.null();
    } else {
      json.value(number);
    }
  }
  json.end_array();
}

// What the allocator holds but nobody uses, in all and in one piece: the least of each bin, and nothing before the
// first state.
void write_free(JsonWriter& json, const analyze::DeviceAllocator& allocator, const analyze::MemoryBins& bins) {
  CounterTrack free;
  CounterTrack largest;
  for (const analyze::AllocatorMoment& at : allocator.curve) {
    for (CounterTrack* track : {&free, &largest}) track->times_ns.push_back(at.time_ns);
    free.values.push_back(static_cast<double>(at.free_bytes()));
    largest.values.push_back(static_cast<double>(at.largest_free_bytes));
  }
  for (const auto& [name, track] : {std::pair{"free_bytes", &free}, {"largest_free_bytes", &largest}}) {
    std::vector<int64_t> least;
    for (const auto& bin : counter_bins(*track, bins.from_ns, bins.bin_ns, bins.allocated_bytes.size())) {
      least.push_back(bin ? static_cast<int64_t>(bin->min) : kNoNumber);
    }
    write_numbers(json, name, least);
  }
}

std::string owner_text(const Model& model, const analyze::MemorySegment::Piece& piece) {
  if (piece.state == AllocatorBlockState::kWaiting) return "freed, but a stream may still use it";
  if (piece.block == nullptr) return std::string(analyze::name_of(analyze::MemoryCategory::kBeforeRecording));
  const analyze::MemoryOwner owner = analyze::owner_of(model, *piece.block);
  std::string text(analyze::name_of(owner.category));
  if (!owner.op.empty()) text += ": " + owner.op;
  if (!owner.place.empty()) text += ", " + owner.place;
  return text;
}

}  // namespace

Answer memory_curve(const ServedTrace& trace, const Request& request) {
  Parameters wanted(request);
  const Window window = wanted_window(wanted, trace);
  const analyze::DeviceMemory* device = wanted_device(trace, wanted);
  if (!wanted.ok()) return bad_request(wanted);
  if (device == nullptr && !trace.memory().devices.empty()) return refusal(404, kNoMemory);
  JsonWriter json;
  json.begin_object().key("devices").begin_array();
  for (const analyze::DeviceMemory& each : trace.memory().devices) json.value(analyze::device_label(each));
  json.end_array().key("device");
  if (device == nullptr) {
    json.null();
  } else {
    json.value(analyze::device_label(*device));
  }
  analyze::MemoryBins bins{.from_ns = window.from_ns, .bin_ns = window.bin_ns};
  if (device != nullptr) bins = analyze::memory_bins(*device, window.from_ns, window.to_ns, window.bins);
  json.field("from_ns", bins.from_ns).field("bin_ns", bins.bin_ns);
  write_numbers(json, "allocated_bytes", bins.allocated_bytes);
  write_numbers(json, "reserved_bytes", bins.reserved_bytes);
  for (const analyze::DeviceAllocator& allocator : trace.memory().allocators) {
    const bool is_it =
        device != nullptr && allocator.device_type == device->device_type && allocator.device == device->device;
    if (is_it) write_free(json, allocator, bins);
  }
  json.key("categories").begin_object();
  for (size_t i = 0; i < analyze::kMemoryCategoryCount; ++i) {
    const std::vector<int64_t>& category = bins.categories[i];
    const bool is_there = std::any_of(category.begin(), category.end(), [](int64_t bytes) { return bytes != 0; });
    if (is_there) write_numbers(json, analyze::name_of(static_cast<analyze::MemoryCategory>(i)), category);
  }
  json.end_object().end_object();
  return json_answer(std::move(json));
}

Answer memory_alive(const ServedTrace& trace, const Request& request) {
  Parameters wanted(request);
  const int64_t at_ns = wanted.integer("at_ns", 0, INT64_MIN, INT64_MAX);
  const size_t rows = wanted_rows(wanted);
  const analyze::DeviceMemory* device = wanted_device(trace, wanted);
  if (!wanted.ok()) return bad_request(wanted);
  if (device == nullptr) return refusal(404, kNoMemory);
  const analyze::MemoryMoment moment = analyze::memory_at(trace.model(), *device, at_ns);
  return {.body = report::described(report::alive_report(trace.model(), *device, moment, at_ns, rows), rows)};
}

Answer memory_segments(const ServedTrace& trace, const Request& request) {
  Parameters wanted(request);
  const int64_t at_ns = wanted.integer("at_ns", 0, INT64_MIN, INT64_MAX);
  const analyze::DeviceMemory* device = wanted_device(trace, wanted);
  if (!wanted.ok()) return bad_request(wanted);
  JsonWriter json;
  json.begin_object().key("segments").begin_array();
  std::vector<std::string> notes;
  if (device == nullptr) {
    notes.emplace_back(kNoMemory);
  } else if (device->device_type == 0) {
    notes.emplace_back("memory of the CPU has no segments: its allocator is the C library's");
  } else {
    size_t pieces = 0;
    for (const analyze::MemorySegment& segment : firelane::analyze::memory_segments(trace.model(), *device, at_ns)) {
      pieces += segment.pieces.size();
      if (pieces > kMostPieces) {
        notes.emplace_back("there are too many blocks to show all of them");
        break;
      }
      json.begin_object().field("address", segment.address).field("bytes", segment.bytes).key("blocks").begin_array();
      for (const analyze::MemorySegment::Piece& piece : segment.pieces) {
        json.begin_object().field("offset", piece.offset).field("bytes", piece.bytes);
        const bool is_free = piece.state == AllocatorBlockState::kFree;
        json.field("state", is_free ? "free" : "allocated").key("owner");
        if (is_free) {
          json.null();
        } else {
          json.value(owner_text(trace.model(), piece));
        }
        json.end_object();
      }
      json.end_array().end_object();
    }
    if (!analyze::has_recorded_segments(trace.model(), *device))
      notes.emplace_back(
          "segments are inferred from addresses, in units of 2 MiB that blocks of the trace touched; memory "
          "allocated "
          "before "
          "recording looks free");
  }
  json.end_array().key("notes").begin_array();
  for (const std::string& note : notes) json.value(note);
  json.end_array().end_object();
  return json_answer(std::move(json));
}

}  // namespace firelane::serve
