#include "import/xplane/read_xplane.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <string>
#include <thread>

#include "import/xplane/plane_reader.h"
#include "import/xplane/space.h"
#include "import/xplane/wire.h"

namespace firelane::importer {

namespace {

using namespace xplane;  // NOLINT(google-build-using-namespace): the words of this file

class XPlaneReader {
 public:
  Result<RawTrace> run(std::span<const XPlaneFile> hosts) {
    for (const XPlaneFile& host : hosts) {
      SpaceFields fields(*host.content, host.request);
      read_host(fields, host.request.threads);
      if (!fields.fatal().empty()) return Error{host.request.name + ": " + fields.fatal()};
      raw_.info.content_bytes += fields.read_bytes();
      raw_.losses.add(host.content->losses());
      ++place_.host;
      place_.first_device = all_.next_device;
    }
    add_steps();
    if (std::none_of(raw_.parts.begin(), raw_.parts.end(), [](const RawPart& part) { return part.has_slices(); })) {
      return Error{hosts.front().request.name + ": an XPlane file without events" +
                   (raw_.parts.front().losses[Stat::kMessageMalformed] > 0 ? ", damaged or of another format" : "") +
                   "; record again with jax.profiler.trace() or torch_xla's profiler"};
    }
    raw_.info.format = "XPlane" + (hosts.size() > 1 ? ", " + std::to_string(hosts.size()) + " hosts" : std::string());
    raw_.info.origin = Origin::kXPlane;
    raw_.info.accelerator = all_.has_tpu           ? Accelerator::kTpu
                            : all_.has_amd         ? Accelerator::kHip
                            : all_.next_device > 0 ? Accelerator::kCuda
                                                   : Accelerator::kUnknown;
    if (!all_.times_are_unix) raw_.info.base_time_ns = all_.profile_start_ns;
    constexpr size_t kMostDevices = 4096;
    all_.devices.resize(std::min(all_.devices.size(), kMostDevices));
    raw_.info.devices = std::move(all_.devices);
    return std::move(raw_);
  }

 private:
  // A plane that another thread reads.
  struct Beside {
    std::atomic<bool> is_done = false;
    std::jthread thread;
  };

  void read_host(SpaceFields& fields, unsigned threads) {
    while (fields.next(raw_.parts.front().losses)) {
      if (fields.tag() == kSpacePlanes) read_plane(fields.take(), threads);
      if (fields.tag() == kSpaceHosts && place_.host == 0) {
        std::string json = "\"";
        for (const char c : fields.bytes().substr(0, 256))
          json += c >= ' ' && c != '"' && c != '\\' && c < 127 ? c : '?';
        raw_.info.metadata.push_back({"host_name", json + "\""});
      }
    }
    beside_.clear();
    for (PlaneFacts& each : facts_) all_.add(std::move(each));
    facts_.clear();
    is_open_ = false;
  }

  // A large plane has a part and a pool of its own, and another thread if one is free: whatever thread reads it, its
  // place in the trace is that in the file. Small ones share the first part.
  void read_plane(std::string bytes, unsigned threads) {
    constexpr size_t kLargePlane = size_t{1} << 20;
    if (bytes.size() < kLargePlane) {
      if (!is_open_) facts_.emplace_back();
      is_open_ = true;
      return PlaneReader(raw_.pools.front(), raw_.parts.front(), place_, facts_.back()).read(bytes);
    }
    RawPool& pool = raw_.pools.emplace_back();
    RawPart& part = raw_.parts.emplace_back();
    part.pool = static_cast<uint32_t>(raw_.pools.size() - 1);
    PlaneFacts& facts = facts_.emplace_back();
    is_open_ = false;
    reserve(part, bytes.size());
    beside_.remove_if([](const Beside& each) { return each.is_done.load(); });
    if (beside_.size() + 1 >= threads) return PlaneReader(pool, part, place_, facts).read(bytes);
    Beside& beside = beside_.emplace_back();
    beside.thread = std::jthread([&pool, &part, &facts, &beside, place = place_, bytes = std::move(bytes)]() mutable {
      PlaneReader(pool, part, place, facts).read(bytes);
      std::string().swap(bytes);
      beside.is_done = true;
    });
  }

  // Pages that are not touched cost nothing.
  static void reserve(RawPart& part, size_t plane_bytes) {
    constexpr size_t kFewestBytes = 12;  // of an event
    const size_t rows = plane_bytes / kFewestBytes;
    part.plain_work.reserve(rows);
    part.kernel_order.reserve(rows);
    part.device_slices.reserve(rows);
    part.host_slices.reserve(rows);
    part.op_order.reserve(rows);
  }

  // Steps lie on a lane of their own: on the threads that they were marked on they would enclose other things.
  void add_steps() {
    bool is_derived = false;
    const std::vector<Span> steps = all_.steps.steps(is_derived);
    if (steps.empty()) return;
    RawPool& pool = raw_.pools.front();
    RawPart& part = raw_.parts.front();
    const LaneId lane = pool.lane({.number = kHostPid}, pool.text_id("Steps"));
    part.lane_names.push_back(
        {.lane = lane,
         .what = LaneNameKind::kThreadName,
         .text = pool.strings.intern(is_derived ? "Steps (runs of the largest program)" : "Steps")});
    const StringId category = pool.strings.intern(is_derived ? "derived_step" : "step");
    const auto blank = static_cast<Row>(part.op_details.size());
    part.op_details.emplace_back();
    for (const Span& step : steps) {
      part.op_order.push_back(blank);
      part.host_slices.push_back({.start_ns = step.start_ns,
                                  .duration_ns = step.duration_ns,
                                  .lane = lane,
                                  .name = pool.strings.intern("step " + std::to_string(step.number)),
                                  .category = category,
                                  .kind = HostKind::kAnnotation,
                                  .detail = static_cast<Row>(part.op_order.size() - 1)});
    }
  }

  RawTrace raw_{.pools = std::deque<RawPool>(1), .parts = std::deque<RawPart>(1)};
  PlanePlace place_;              // of the host that is being read
  PlaneFacts all_;                // of the hosts that were read
  std::deque<PlaneFacts> facts_;  // of this host's planes, in their order: of a large one, or of small ones in a row
  bool is_open_ = false;          // the last of these is of small ones
  std::list<Beside> beside_;      // last: they use the others
};

Result<RawTrace> read_one(std::unique_ptr<ByteSource> content, const ReadRequest& request) {
  const XPlaneFile file{.request = request, .content = std::move(content)};
  return read_xplane(std::span(&file, 1));
}

}  // namespace

Result<RawTrace> read_xplane(std::span<const XPlaneFile> hosts) { return XPlaneReader().run(hosts); }

Reader xplane_reader() { return {"XPlane", is_xplane, read_one}; }

}  // namespace firelane::importer
