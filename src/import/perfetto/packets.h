// Perfetto's messages as far as they are read: field numbers, what a sequence of packets has said before, and tracks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace firelane::importer::pftrace {

inline constexpr uint32_t kTracePacket = 1;
inline constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12,
                          kSequenceFlags = 13, kStateCleared = 41, kCompressed = 50, kClockId = 58, kDefaults = 59,
                          kTrackDescriptor = 60;

// For one sequence: what its packets refer to.
struct Sequence {
  std::unordered_map<uint64_t, std::string> names, categories, keys, texts;
  uint64_t default_track = 0;
  uint64_t default_clock = 0;
  struct Clock {
    bool is_incremental = false;
    uint64_t unit_ns = 1;
    uint64_t now = 0;       // of an incremental one
    int64_t offset_ns = 0;  // to the trace's clock
  };
  std::map<uint64_t, Clock> clocks;  // 64 and above

  void forget() {
    names.clear();
    categories.clear();
    keys.clear();
    texts.clear();
    default_track = default_clock = 0;
  }
};

struct Track {
  std::string name;
  uint64_t parent = 0;
  int64_t pid = -1, tid = -1;  // of a process or thread
  std::string process_name, thread_name;
  bool is_thread = false;
  bool is_process = false;
  bool is_counter = false;
};

// An event with what it refers to resolved.
struct Annotation {
  std::string key;
  std::string json;  // a token: a number, or a text with quotes
};
struct TrackEvent {
  int64_t type = 0;
  uint64_t track = 0;
  std::string name;
  std::string category;
  std::vector<Annotation> annotations;
  std::vector<uint64_t> flows, ending_flows;
  bool has_value = false;
  double value = 0;
};

}  // namespace firelane::importer::pftrace
