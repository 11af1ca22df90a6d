// The device chunks of a .lane file as rows: kernels, memcpys, memsets, synchronizations, the calls that queued them,
// hardware metrics, and the user's ranges as the device saw them. Device times are mapped to the recorder's clock at
// the end, by the line through its paired readings. Private to import/lane.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "format/device.h"
#include "format/notes.h"
#include "model/raw.h"

namespace firelane::importer {

class DeviceRows {
 public:
  DeviceRows(RawTrace& raw, RawPool& pool, RawPart& part);

  // `text`: the file's text of an id, as a string of the pool.
  void add(format::DeviceReader reader, const std::function<StringId(uint32_t)>& text);
  void add_clock(const format::DeviceClockNote& note);
  void add_window(const format::DeviceWindowNote& note);
  // REQUIRES: all other rows of the part have their final times. `line` gives Unix time. Lanes of GPUs are named by the
  // `program`, as Kineto does.
  void finish(const TickConverter& line, int64_t base_ns, uint32_t pid, std::string_view program);
  // REQUIRES: raw.info.devices is filled.

 private:
  struct Reading {
    uint64_t ticks = 0;
    int64_t device_ns = 0;
    uint64_t width_ticks = 0;
  };
  struct EventRecorded {
    int64_t stream = kNoNumber;
    int64_t correlation = kNoNumber;
  };

  RawDeviceSlice& slice(int64_t start_ns, int64_t duration_ns, int64_t device, int64_t stream, int64_t correlation);
  void kernel(const format::DeviceKernelRow& row, StringId name);
  void copy(const format::DeviceCopyRow& row);
  void set(const format::DeviceSetRow& row);
  void call(const format::DeviceCallRow& row, StringId name);
  void overhead(const format::DeviceOverheadRow& row);
  void metric(const format::DeviceMetricRow& row, StringId name);
  void add_syncs();
  void convert_times(const TickConverter& line, int64_t base_ns);
  void add_calls(uint32_t pid);
  void add_annotations();
  void name_lanes(std::string_view program);
  StringId readable(StringId mangled);

  RawTrace& raw_;
  RawPool& pool_;
  RawPart& part_;
  std::vector<Reading> readings_;
  std::vector<RawHostSlice> calls_;  // lane: not yet set; detail: thread id
  std::vector<RawCall> call_details_;
  std::vector<RawHostSlice> overheads_;
  std::vector<RawCounter> metrics_;
  int64_t opened_ns_ = kNoNumber;  // the recording's window, by the device's clock
  int64_t closed_ns_ = kNoNumber;
  std::vector<format::DeviceSyncRow> syncs_;
  std::unordered_map<int64_t, EventRecorded> events_;  // by the number that ties a wait to its record
  std::unordered_map<int64_t, int32_t> device_of_context_;
  std::unordered_map<uint32_t, StringId> readable_;
  StringId kernel_, copy_, set_, sync_, annotation_, runtime_, driver_, overhead_;
};

}  // namespace firelane::importer
