// Packets of a Perfetto trace into tracks and events, with names, clocks and compressed packets resolved.
#pragma once

#include <cstdint>
#include <string_view>

#include "import/perfetto/packets.h"
#include "model/raw.h"

namespace firelane::importer::pftrace {

class EventHandler {
 public:
  virtual ~EventHandler() = default;
  virtual void on_track(uint64_t uuid, Track track) = 0;
  virtual void on_event(TrackEvent event, int64_t time_ns) = 0;
};

struct PacketContext {
  EventHandler& handler;
  RawPart& part;          // for its losses, and the number of events
  int64_t& base_time_ns;  // set where a snapshot has the time of day
  uint64_t most_bytes;    // that compressed packets may unpack to
};

// What is damaged is counted, and the packets behind it are read.
void read_packets(std::string_view bytes, const PacketContext& context);

// A text as a JSON token.
std::string json_text_of(std::string_view text);

}  // namespace firelane::importer::pftrace
