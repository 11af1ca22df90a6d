// CUPTI's records -> rows of the file. Runs on the drain's thread.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "record/core/device_source.h"
#include "record/cupti/api.h"
#include "record/cupti/buffers.h"

namespace firelane::cupti {

class ActivityDecoder {
 public:
  explicit ActivityDecoder(const CuptiApi& api);

  // `from_ns`: what ended before is left out (the warm-up).
  void decode(const BufferQueue::Full& buffer, uint64_t from_ns, record::DeviceSink& sink);

  // Since the last take: records that were cut off or of a kind that was not asked for; work without timestamps.
  uint64_t take_broken() { return std::exchange(broken_, 0); }
  uint64_t take_untimed() { return std::exchange(untimed_, 0); }

 private:
  struct CallName {
    uint32_t text = 0;
    bool wanted = true;
  };
  struct Record {
    const CUpti_Activity* activity;
    size_t room;  // bytes from there to the end of the buffer
    uint64_t from_ns;
    record::DeviceSink& sink;
  };
  void record(const Record& r);
  // One kind each; false: cut off.
  bool kernel(const Record& r);
  bool copy(const Record& r);
  bool peer_copy(const Record& r);
  bool set(const Record& r);
  bool sync(const Record& r);
  bool event(const Record& r);
  bool call(const Record& r);
  bool overhead(const Record& r);
  bool is_timed(uint64_t start, uint64_t end, uint64_t from_ns);
  const CallName& call_name(bool driver, CUpti_CallbackId id, record::DeviceSink& sink);
  uint32_t kernel_name(const char* name, record::DeviceSink& sink);

  const CuptiApi api_;
  bool has_event_sync_ = false;  // the library's records say which recording of an event a wait was for
  std::unordered_map<uint64_t, CallName> call_names_;
  std::unordered_map<std::string, uint32_t> kernel_names_;
  std::string key_;
  uint64_t broken_ = 0;
  uint64_t untimed_ = 0;
};

}  // namespace firelane::cupti
