// Where device activity (record/cupti) meets the drain: a source that the drain asks on its own thread,
// and the sink that turns what it gives into chunks of the file.
#pragma once

#include <cstdint>
#include <string_view>

#include "format/device.h"

namespace firelane::record {

class DeviceSink {
 public:
  virtual ~DeviceSink() = default;
  // The file's id of a text; stays good until the recording ends.
  virtual uint32_t text(std::string_view bytes) = 0;
  virtual format::DeviceWriter& rows() = 0;
  // Writes a chunk when enough has come together. Call it once in a while, between rows.
  virtual void checkpoint() = 0;
};

class DeviceSource {
 public:
  virtual ~DeviceSource() = default;
  // Hands over what has come since the last call. Called by the drain's thread at every pass, the last time while
  // the file is completed.
  virtual void drain(DeviceSink& sink) = 0;
};

}  // namespace firelane::record
