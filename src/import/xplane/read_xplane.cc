#include "import/xplane/read_xplane.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "import/xplane/device_lines.h"
#include "import/xplane/names.h"
#include "import/xplane/space.h"
#include "import/xplane/steps.h"
#include "import/xplane/wire.h"
#include "model/copy_name.h"

namespace firelane::importer {

namespace {

using namespace xplane;  // NOLINT(google-build-using-namespace): the words of this file

constexpr int64_t kYear2000Ns = 946'684'800'000'000'000;
constexpr int64_t kHostPid = 100000;  // devices have the small numbers

struct Line {
  int64_t id = 0;
  std::string_view name;
  int64_t start_ns = 0;
};

struct Event {
  int64_t name = 0;
  int64_t offset_ps = 0;
  int64_t duration_ps = 0;
  bool has_place = true;  // not only a count of how often it happened
};

class XPlaneReader {
 public:
  Result<RawTrace> run(std::span<const XPlaneFile> hosts) {
    for (const XPlaneFile& host : hosts) {
      SpaceFields fields(*host.content, host.request);
      read_host(fields);
      if (!fields.fatal().empty()) return Error{host.request.name + ": " + fields.fatal()};
      raw_.info.content_bytes += fields.read_bytes();
      raw_.losses.add(host.content->losses());
      ++host_index_;
      device_base_ = next_device_;
    }
    add_steps();
    if (!has_slices()) {
      return Error{hosts.front().request.name + ": an XPlane file without events" +
                   (raw_.parts.front().losses[Stat::kMessageMalformed] > 0 ? ", damaged or of another format" : "") +
                   "; record again with jax.profiler.trace() or torch_xla's profiler"};
    }
    raw_.info.format = "XPlane" + (hosts.size() > 1 ? ", " + std::to_string(hosts.size()) + " hosts" : std::string());
    raw_.info.origin = Origin::kXPlane;
    raw_.info.accelerator = has_tpu_      ? Accelerator::kTpu
                            : has_amd_    ? Accelerator::kHip
                            : has_device_ ? Accelerator::kCuda
                                          : Accelerator::kUnknown;
    if (!times_are_unix_) raw_.info.base_time_ns = profile_start_ns_;
    return std::move(raw_);
  }

 private:
  bool has_slices() const {
    return std::any_of(raw_.parts.begin(), raw_.parts.end(),
                       [](const RawPart& part) { return !part.host_slices.empty() || !part.device_slices.empty(); });
  }

  void read_host(SpaceFields& fields) {
    while (fields.next(raw_.parts.front().losses)) {
      if (fields.tag() == kSpacePlanes) read_plane(fields.bytes());
      if (fields.tag() == kSpaceHosts && host_index_ == 0) {
        std::string json = "\"";
        for (const char c : fields.bytes().substr(0, 256))
          json += c >= ' ' && c != '"' && c != '\\' && c < 127 ? c : '?';
        raw_.info.metadata.push_back({"host_name", json + "\""});
      }
    }
  }

  // A large plane has a part of its own: its rows need not be moved as those of all planes grow, and parts are put into
  // the model side by side.
  void choose_part(size_t plane_bytes) {
    constexpr size_t kLargePlane = size_t{1} << 20;
    constexpr size_t kFewestBytes = 12;  // of an event
    part_ = plane_bytes < kLargePlane ? &raw_.parts.front() : &raw_.parts.emplace_back();
    if (part_ == &raw_.parts.front()) return;
    // Pages that are not touched cost nothing.
    const size_t rows = plane_bytes / kFewestBytes;
    part_->device_slices.reserve(rows);
    part_->kernel_order.reserve(rows);
    part_->host_slices.reserve(rows);
    part_->op_details.reserve(rows);
  }

  void read_plane(std::string_view plane) {
    choose_part(plane.size());
    names_.read(plane, part_->losses);
    std::string_view name;
    LossCounts again;
    each_field(plane, again, [&](Message& field) {
      if (field.tag() != kPlaneName) return field.skip();
      name = bytes_or_none(field);
    });
    const int32_t device = device_number(name);
    const bool is_host = name.starts_with("/host:");
    device_ = device < 0 ? -1 : device_base_ + device;
    if (device >= 0) {
      next_device_ = std::max(next_device_, device_ + 1);
      has_device_ = true;
      has_tpu_ = has_tpu_ || name.starts_with("/device:TPU");
      read_device_facts(plane, name);
    }
    each_field(plane, part_->losses, [&](Message& field) {
      if (field.tag() == kPlaneStats && name == "Task Environment") {
        const StatValue value = names_.stat(bytes_or_none(field), part_->losses);
        if (value.key == StatKey::kProfileStart) profile_start_ns_ = value.number;
        return;
      }
      if (field.tag() != kPlaneLines) return field.skip();
      const std::string_view bytes = bytes_or_none(field);
      if (device >= 0) {
        read_device_line(bytes);
      } else if (is_host || name.starts_with('/')) {
        read_host_line(bytes, name);
      }
    });
  }

  void read_device_facts(std::string_view plane, std::string_view name) {
    DeviceProperties facts;
    facts.id = device_;
    std::string_view vendor;
    LossCounts again;
    each_field(plane, again, [&](Message& field) {
      if (field.tag() != kPlaneStats) return field.skip();
      const StatValue value = names_.stat(bytes_or_none(field), again);
      switch (value.key) {
        case StatKey::kDeviceType: facts.name = value.text.substr(0, 256); break;
        case StatKey::kVendor: vendor = value.text; break;
        case StatKey::kCores: facts.multiprocessors = value.number; break;
        case StatKey::kMemory: facts.total_memory_bytes = value.number; break;
        case StatKey::kMajor: facts.compute_major = value.number; break;
        case StatKey::kMinor: facts.compute_minor = value.number; break;
        default: break;
      }
    });
    const bool is_amd = vendor == "AMD";
    has_amd_ = has_amd_ || is_amd;
    if (is_amd) facts.warp_size = 64;
    if (is_amd && facts.name.empty()) {
      // The file gives no name; compute units and memory leave one.
      constexpr int64_t kGb = 1'000'000'000;
      facts.name = facts.multiprocessors != 304 ? "AMD GPU"
                   : facts.total_memory_bytes != kNoNumber && facts.total_memory_bytes > 220 * kGb
                       ? "AMD Instinct MI325X"
                       : "AMD Instinct MI300X";
      if (facts.multiprocessors == 304) facts.max_threads_per_multiprocessor = 2048;
    }
    if (facts.name.empty()) facts.name = std::string(name.substr(0, 256));
    if (raw_.info.devices.size() < 4096) raw_.info.devices.push_back(std::move(facts));
  }

  // ---- lines and events

  Line read_line_head(std::string_view bytes) {
    Line line;
    LossCounts again;
    std::string_view shown;
    each_field(bytes, again, [&](Message& field) {
      switch (field.tag()) {
        case kLineId: line.id = integer(field); break;
        case kLineName: line.name = bytes_or_none(field); break;
        case kLineShownName: shown = bytes_or_none(field); break;
        case kLineStart: line.start_ns = integer(field); break;
        default: field.skip();
      }
    });
    if (line.name.empty()) line.name = shown;
    if (line.start_ns > kYear2000Ns) times_are_unix_ = true;
    if (line.start_ns < 0 || line.start_ns > kMaxTimeNs) {
      ++part_->losses[Stat::kTimeOutOfRange];
      line.start_ns = 0;
    }
    return line;
  }

  // Calls visit(event, stats as bytes, ns of its start, duration) for each event of a line.
  template <typename Visit>
  void each_event(std::string_view bytes, const Line& line, const Visit& visit) {
    each_field(bytes, part_->losses, [&](Message& field) {
      if (field.tag() != kLineEvents) return field.skip();
      ++part_->event_count;
      Event event;
      stats_.clear();
      each_field(bytes_or_none(field), part_->losses, [&](Message& each) {
        switch (each.tag()) {
          case kEventName: event.name = integer(each); break;
          case kEventOffset: event.offset_ps = integer(each); break;
          case kEventDuration: event.duration_ps = integer(each); break;
          case kEventStats: stats_.push_back(bytes_or_none(each)); break;
          case kEventCount:
            event.has_place = false;
            each.skip();
            break;
          default: each.skip();
        }
      });
      if (!event.has_place) {
        ++part_->losses[Stat::kEventNotUsed];
        return;
      }
      const EventName* name = names_.event(event.name);
      if (name == nullptr) {
        ++part_->losses[Stat::kNameMissing];
        name = &no_name_;
        name->kernel = kNoRow;
      }
      // Ends are rounded as starts are, so that what nests in picoseconds nests in nanoseconds.
      const int64_t start = floor_ns(event.offset_ps);
      if (start < kMinTimeNs / 2 || start > kMaxTimeNs / 2) {
        ++part_->losses[Stat::kTimeOutOfRange];
        return;
      }
      int64_t duration = 0;
      if (event.duration_ps < 0 || event.duration_ps > INT64_MAX / 4 || event.offset_ps > INT64_MAX / 4) {
        ++part_->losses[Stat::kDurationOutOfRange];
      } else {
        duration = floor_ns(event.offset_ps + event.duration_ps) - start;
      }
      visit(*name, line.start_ns + start, duration);
    });
  }

  static int64_t floor_ns(int64_t ps) { return ps / 1000 - (ps % 1000 < 0 ? 1 : 0); }

  void name_lane(LaneId lane, std::string_view name) {
    part_->lane_names.push_back(
        {.lane = lane, .what = LaneNameKind::kThreadName, .text = pool_.strings.intern(std::string(name))});
  }

  void read_device_line(std::string_view bytes) {
    const Line line = read_line_head(bytes);
    const LineKind kind = line_kind(line.name);
    const LaneId lane = pool_.lane({.number = device_}, {.number = line.id});
    name_lane(lane, line.name);
    if (kind == LineKind::kStream) return read_stream(bytes, line, lane);
    const StringId line_name = pool_.strings.intern(std::string(line.name));
    each_event(bytes, line, [&](const EventName& name, int64_t start_ns, int64_t duration_ns) {
      RawDeviceSlice slice{.start_ns = start_ns,
                           .duration_ns = duration_ns,
                           .lane = lane,
                           .name = name.name,
                           .category = name.category == kNoString ? line_name : name.category,
                           .kind = DeviceKind::kAnnotation,
                           .device = device_};
      slice.stream = line.id;
      switch (kind) {
        case LineKind::kOps:
        case LineKind::kAsyncOps: slice.kind = kind == LineKind::kOps ? name.kind : name.async_kind; break;
        case LineKind::kSteps: {
          const std::string_view text = pool_.strings.view(name.name);
          Span step{.start_ns = start_ns, .duration_ns = duration_ns};
          std::from_chars(text.data(), text.data() + text.size(), step.number);
          steps_.add_device_step(device_, step);
          break;
        }
        case LineKind::kModules:
          steps_.add_module(device_, name.name, {.start_ns = start_ns, .duration_ns = duration_ns});
          break;
        case LineKind::kWaits: slice.kind = DeviceKind::kSync; break;
        case LineKind::kUnknown: slice.kind = DeviceKind::kOther; break;
        default: break;
      }
      add_details(name, slice);
      part_->device_slices.push_back(slice);
    });
  }

  Row add_kernel(Row details) {
    part_->kernel_order.push_back(details);
    return static_cast<Row>(part_->kernel_order.size() - 1);
  }

  void add_details(const EventName& name, RawDeviceSlice& slice) {
    if (slice.kind == DeviceKind::kKernel) {
      if (name.kernel == kNoRow) {
        name.kernel = static_cast<Row>(part_->kernel_details.size());
        part_->kernel_details.push_back({.flops = name.flops,
                                         .bytes_accessed = name.bytes,
                                         .op_category = name.category,
                                         .op_name = name.op_name,
                                         .program = name.program});
      }
      slice.detail = add_kernel(name.kernel);
    } else if (slice.kind == DeviceKind::kCopy) {
      part_->copy_details.push_back({.bytes = name.bytes, .direction = CopyDirection::kUnknown});
      slice.detail = static_cast<Row>(part_->copy_details.size() - 1);
    } else if (slice.kind == DeviceKind::kCollective) {
      part_->comm_details.push_back(
          {.in_elements = name.bytes, .collective = name.collective, .dtype = pool_.strings.intern("Byte")});
      slice.comm = static_cast<Row>(part_->comm_details.size() - 1);
    }
  }

  // A stream of a GPU: what JAX and TensorFlow record there has its HLO op beside it.
  void read_stream(std::string_view bytes, const Line& line, LaneId lane) {
    const StringId kernel = pool_.strings.intern("kernel");
    const StringId copy = pool_.strings.intern("gpu_memcpy");
    each_event(bytes, line, [&](const EventName& name, int64_t start_ns, int64_t duration_ns) {
      RawDeviceSlice slice{.start_ns = start_ns,
                           .duration_ns = duration_ns,
                           .lane = lane,
                           .name = name.name,
                           .category = kernel,
                           .device = device_};
      slice.stream = line.id;
      slice.kind = stream_kind(pool_.strings.view(name.name), line.name);
      RawKernel details;
      RawCopy copied;
      for (const std::string_view bytes_of_stat : stats_) {
        const StatValue value = names_.stat(bytes_of_stat, part_->losses);
        switch (value.key) {
          case StatKey::kCorrelation: slice.correlation = correlation(value.number); break;
          case StatKey::kKernelDetails: read_kernel_details(value.text, details); break;
          case StatKey::kMemcpyDetails:
          case StatKey::kMemsetDetails: read_memcpy_details(value.text, copied); break;
          case StatKey::kHloOp: details.op_name = pool_.strings.intern(std::string(value.text)); break;
          case StatKey::kHloModule: details.program = pool_.strings.intern(std::string(value.text)); break;
          case StatKey::kFlops: details.flops = value.number; break;
          case StatKey::kBytes: details.bytes_accessed = value.number; break;
          default: break;
        }
      }
      if (slice.kind == DeviceKind::kKernel) {
        add_program_run(details, start_ns, duration_ns);
        part_->kernel_details.push_back(details);
        slice.detail = add_kernel(static_cast<Row>(part_->kernel_details.size() - 1));
      } else if (slice.kind == DeviceKind::kCopy || slice.kind == DeviceKind::kSet) {
        copied.direction = read_direction(pool_.strings.view(name.name));
        slice.category = copy;
        part_->copy_details.push_back(copied);
        slice.detail = static_cast<Row>(part_->copy_details.size() - 1);
      }
      part_->device_slices.push_back(slice);
    });
    close_program_run();
  }

  // "MemcpyH2D"
  static CopyDirection read_direction(std::string_view name) {
    if (name.find("H2D") != std::string_view::npos) return CopyDirection::kHtoD;
    if (name.find("D2H") != std::string_view::npos) return CopyDirection::kDtoH;
    if (name.find("D2D") != std::string_view::npos) return CopyDirection::kDtoD;
    return name.find("P2P") != std::string_view::npos ? CopyDirection::kPtoP : CopyDirection::kUnknown;
  }

  // GPUs have no line of modules: a run of a program begins where its first op comes again.
  void add_program_run(const RawKernel& details, int64_t start_ns, int64_t duration_ns) {
    if (details.program == kNoString || details.op_name == kNoString) return;
    const bool is_same = run_program_ == details.program;
    if (!is_same || details.op_name == run_first_op_) {
      close_program_run();
      run_program_ = details.program;
      run_first_op_ = details.op_name;
      run_ = Span{.start_ns = start_ns};
    }
    run_->duration_ns = std::max(run_->duration_ns, start_ns + duration_ns - run_->start_ns);
  }

  void close_program_run() {
    if (run_) steps_.add_module(device_, run_program_, *run_);
    run_.reset();
    run_program_ = run_first_op_ = kNoString;
  }

  // Each host counts from 0.
  int64_t correlation(int64_t id) const {
    return id < 0 || id > UINT32_MAX ? kNoNumber : int64_t{host_index_} << 32 | id;
  }

  void read_host_line(std::string_view bytes, std::string_view plane) {
    const Line line = read_line_head(bytes);
    const LaneId lane = pool_.lane({.number = kHostPid + host_index_}, {.number = line.id});
    name_lane(lane, line.name.substr(0, line.name.find('/')));
    if (plane == "/host:CPU") {
      part_->lane_names.push_back(
          {.lane = lane,
           .what = LaneNameKind::kProcessName,
           .text = pool_.strings.intern(host_index_ == 0 ? "host" : "host " + std::to_string(host_index_))});
    }
    each_event(bytes, line, [&](const EventName& name, int64_t start_ns, int64_t duration_ns) {
      RawHostSlice slice{
          .start_ns = start_ns, .duration_ns = duration_ns, .lane = lane, .name = name.name, .kind = HostKind::kOther};
      int64_t correlation_id = kNoNumber;
      int64_t step = kNoNumber;
      bool is_hlo = false;
      for (const std::string_view bytes_of_stat : stats_) {
        const StatValue value = names_.stat(bytes_of_stat, part_->losses);
        if (value.key == StatKey::kCorrelation) correlation_id = correlation(value.number);
        if (value.key == StatKey::kStepNumber) step = value.number;
        if (value.key == StatKey::kHloOp) is_hlo = true;
      }
      if (step != kNoNumber && step >= 0)
        steps_.add_marked({.start_ns = start_ns, .duration_ns = duration_ns, .number = step});
      classify(pool_.strings.view(name.name), correlation_id, is_hlo, slice);
      part_->host_slices.push_back(slice);
    });
  }

  // What a host's event is, by its name.
  void classify(std::string_view name, int64_t correlation_id, bool is_hlo, RawHostSlice& slice) {
    const bool is_hip = name.starts_with("hip");
    const bool is_runtime = is_hip || name.starts_with("cuda");
    const bool is_driver = name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
    if (is_runtime || is_driver) {
      slice.kind = is_driver ? HostKind::kDriver : HostKind::kRuntime;
      slice.category = pool_.strings.intern(is_driver ? "cuda_driver" : is_hip ? "hip_runtime" : "cuda_runtime");
      part_->call_details.push_back({.correlation = correlation_id});
      slice.detail = static_cast<Row>(part_->call_details.size() - 1);
      return;
    }
    if (name.starts_with('$')) {  // "$file.py:12 function"
      slice.kind = HostKind::kPython;
      slice.category = pool_.strings.intern("python_function");
      return;
    }
    const bool is_op = is_hlo || name.starts_with("PjitFunction(") || name.starts_with("aten::");
    const bool is_internal = !is_op && name.find("::") != std::string_view::npos;
    slice.category = pool_.strings.intern(is_op ? "cpu_op" : "TraceMe");
    if (is_internal) return;
    slice.kind = is_op ? HostKind::kOp : HostKind::kAnnotation;
    part_->op_details.emplace_back();
    slice.detail = static_cast<Row>(part_->op_details.size() - 1);
  }

  // Steps lie on a lane of their own: on the threads that they were marked on they would enclose other things.
  void add_steps() {
    bool is_derived = false;
    const std::vector<Span> steps = steps_.steps(is_derived);
    if (steps.empty()) return;
    const LaneId lane = pool_.lane({.number = kHostPid}, pool_.text_id("Steps"));
    name_lane(lane, is_derived ? "Steps (runs of the largest program)" : "Steps");
    const StringId category = pool_.strings.intern(is_derived ? "derived_step" : "step");
    for (const Span& step : steps) {
      part_->op_details.emplace_back();
      part_->host_slices.push_back({.start_ns = step.start_ns,
                                    .duration_ns = step.duration_ns,
                                    .lane = lane,
                                    .name = pool_.strings.intern("step " + std::to_string(step.number)),
                                    .category = category,
                                    .kind = HostKind::kAnnotation,
                                    .detail = static_cast<Row>(part_->op_details.size() - 1)});
    }
  }

  RawTrace raw_;
  RawPool& pool_ = raw_.pools.emplace_back();
  RawPart* part_ = &raw_.parts.emplace_back();  // of the plane that is being read
  Names names_{pool_};
  StepFinder steps_;
  EventName no_name_{.name = pool_.strings.intern("event without a name")};
  std::vector<std::string_view> stats_;  // of the event that is being read
  int32_t host_index_ = 0;
  int32_t device_ = -1;  // of the plane that is being read
  int32_t device_base_ = 0;
  int32_t next_device_ = 0;
  bool has_device_ = false;
  bool has_tpu_ = false;
  bool has_amd_ = false;
  bool times_are_unix_ = false;
  int64_t profile_start_ns_ = 0;
  std::optional<Span> run_;
  StringId run_program_{};
  StringId run_first_op_{};
};

Result<RawTrace> read_one(std::unique_ptr<ByteSource> content, const ReadRequest& request) {
  const XPlaneFile file{.request = request, .content = std::move(content)};
  return read_xplane(std::span(&file, 1));
}

}  // namespace

Result<RawTrace> read_xplane(std::span<const XPlaneFile> hosts) { return XPlaneReader().run(hosts); }

Reader xplane_reader() { return {"XPlane", is_xplane, read_one}; }

}  // namespace firelane::importer
