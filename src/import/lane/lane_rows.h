// Turns the records of a .lane file into rows: pairs begins with ends, hangs attributes on
// their slices, draws the arrows from forward to backward ops. Times stay in ticks until
// finish(), which knows both ends of the clock's line. Private to import/lane.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/events.h"
#include "format/notes.h"
#include "import/lane/allocator_rows.h"
#include "import/lane/device_rows.h"
#include "import/lane/light_rows.h"
#include "model/raw.h"

namespace firelane::importer {

class LaneRows {
 public:
  explicit LaneRows(RawTrace& raw);

  void add_notes(std::string_view payload);
  // REQUIRES: the chunk with the start's clock came before, as it does in every file.
  void add_events(std::string_view payload);
  void add_device(std::string_view payload);
  void finish();
  // After finish(): when the recording was light, in order of time.
  const std::vector<LightWindow>& light_windows() const { return light_; }

 private:
  struct Open {
    Row slice;
    format::ScopeGroup group;
  };
  struct Thread {
    LaneId lane{};
    uint32_t thread_id = 0;
    std::vector<Open> open;
    Row last_slice = kNoRow;  // what attributes speak of
    std::string name;
    bool named_by_program = false;
  };
  struct Text {
    std::string bytes;
    bool known = false;
    StringId id{};  // once it was used as a name: inputs are bytes that nobody wants in the string pool
    bool interned = false;
    StringId overload{};  // of ops with this name
  };
  // One end of a range with an id; `slice` of a begin.
  struct AsyncEdge {
    uint64_t id = 0;
    uint64_t ticks = 0;
    Row slice = kNoRow;
    LaneId lane{};
  };
  struct Inputs {
    StringId dims{}, types{}, strides{}, concrete{};
  };

  void note(const format::ProcessNote& n);
  void note(const format::ClockNote& n);
  void note(const format::OptionNote& n);
  void note(const format::MetadataNote& n);
  void note(const format::StepNote& n);
  void note(const format::StepThreadNote& n);
  void note(const format::CostNote& n);
  void note(const format::LossNote& n);
  void note(const format::StoppedNote& n);
  void note(const format::PauseNote& n);
  void note(const format::ThreadNote& n);
  void note(const format::DeviceClockNote& n);
  void note(const format::OverloadNote& n);
  void note(const format::SegmentNote& n);
  void note(const format::DeviceWindowNote& n);
  void note(const format::LevelNote& n);
  Thread& thread(uint32_t index, uint32_t thread_id);
  void record(Thread& t, const format::EventRecord& r);
  Row add_slice(Thread& t, const format::EventRecord& r);
  void end_slice(Thread& t, format::ScopeGroup group, uint64_t ticks);
  void attribute(Thread& t, const format::EventRecord& r);
  void memory(const Thread& t, const format::EventRecord& r);
  void lost(Thread& t, const format::EventRecord& r);
  bool define(format::EventsReader& reader);
  StringId text(uint32_t id);
  void set_overload(uint64_t text_id, std::string_view overload);
  StringId category_of(format::Scope scope) const;
  const Inputs& inputs(uint32_t id);
  StringId tensors(int64_t id);

  void pair_async_edges();
  void close_open_slices(uint64_t stop_ticks);
  void convert_times();
  void link_forward_ops();
  void number_evaluations();
  void name_lanes();
  std::string program() const;

  RawTrace& raw_;
  RawPool& pool_;
  RawPart& part_;
  DeviceRows device_;
  AllocatorRows allocator_;
  std::unordered_map<uint32_t, Thread> threads_;  // by index
  std::deque<Text> texts_;                        // by file id
  std::unordered_map<uint32_t, Inputs> inputs_;
  std::unordered_map<int64_t, StringId> tensors_;  // by file id
  std::vector<AsyncEdge> async_;
  std::vector<uint64_t> pauses_;  // ticks
  struct LightTicks {
    uint64_t begin = 0;
    uint64_t end = 0;  // UINT64_MAX: until the end
  };
  std::vector<LightTicks> light_ticks_;
  std::vector<LightWindow> light_;

  int64_t first_op_id_ = 0;  // ids of the process's earlier recordings are below
  uint32_t pid_ = 0;
  std::string command_;
  double ticks_per_second_ = 1e9;
  ClockPair start_, last_pair_;
  StringId cpu_op_, user_annotation_, python_function_, module_, runtime_, driver_, overhead_, instant_, fwdbwd_;
  uint64_t last_ticks_ = 0;
};

}  // namespace firelane::importer
