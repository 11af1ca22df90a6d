// One plane of an XPlane file: bytes -> rows of a part of the trace.
//
// Planes do not know of each other, so that several are read side by side, each into a part and a pool of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "import/xplane/allocations.h"
#include "import/xplane/device_lines.h"
#include "import/xplane/names.h"
#include "import/xplane/steps.h"
#include "model/raw.h"

namespace firelane::importer::xplane {

inline constexpr int64_t kHostPid = 100000;  // devices have the small numbers

// What planes tell beside their rows.
struct PlaneFacts {
  StepFinder steps;
  std::vector<DeviceProperties> devices;
  int32_t next_device = 0;  // one more than the largest number
  bool has_tpu = false;
  bool has_amd = false;
  bool times_are_unix = false;
  int64_t profile_start_ns = 0;

  // REQUIRES: `later` was read from what follows in the file.
  void add(PlaneFacts&& later);
};

// Where a plane belongs.
struct PlanePlace {
  int32_t host = 0;
  int32_t first_device = 0;  // of this host, in the whole trace
};

class PlaneReader {
 public:
  PlaneReader(RawPool& pool, RawPart& part, const PlanePlace& place, PlaneFacts& facts)
      : pool_(pool), part_(part), place_(place), facts_(facts) {}

  void read(std::string_view plane);

 private:
  struct Line {
    int64_t id = 0;
    std::string_view name;
    int64_t start_ns = 0;
  };
  struct Event;

  void read_device_facts(std::string_view plane, std::string_view name);
  Line read_line_head(std::string_view bytes);
  template <typename Visit>
  void each_event(std::string_view bytes, const Line& line, const Visit& visit);
  void read_event(std::string_view bytes, Event& event);
  void name_lane(LaneId lane, std::string_view name);

  void read_device_line(std::string_view bytes);
  void add_plain_work(const EventName& name, RawPlainWork& work);
  void read_stream(std::string_view bytes, const Line& line, LaneId lane);
  void add_program_run(const RawKernel& details, int64_t start_ns, int64_t duration_ns);
  void close_program_run();
  int64_t correlation(int64_t id) const;

  void read_host_line(std::string_view bytes, std::string_view plane);
  void add_memory_mark(MemoryMark mark, LaneId lane, int64_t time_ns);
  void classify(const EventName& name, int64_t correlation_id, bool is_hlo, RawHostSlice& slice);

  RawPool& pool_;
  RawPart& part_;
  PlanePlace place_;
  PlaneFacts& facts_;
  Names names_{pool_};
  EventName no_name_;
  std::vector<std::string_view> stats_;   // of the event that is being read
  int32_t device_ = -1;                   // of the plane
  int32_t line_ = 0;                      // how many were begun
  Row blank_op_ = kNoRow;                 // of op_details: what marks of the user have
  std::unordered_set<StringId> hlo_ops_;  // that calls of the host were made for
  Allocations allocations_;
  std::optional<Span> run_;
  StringId run_program_{};
  StringId run_first_op_{};
};

}  // namespace firelane::importer::xplane
