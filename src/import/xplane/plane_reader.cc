#include "import/xplane/plane_reader.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "import/xplane/host_threads.h"
#include "import/xplane/wire.h"

namespace firelane::importer::xplane {

namespace {

constexpr int64_t kYear2000Ns = 946'684'800'000'000'000;

int64_t floor_ns(int64_t ps) { return ps / 1000 - (ps % 1000 < 0 ? 1 : 0); }

// "MemcpyH2D"
CopyDirection read_direction(std::string_view name) {
  if (name.find("H2D") != std::string_view::npos) return CopyDirection::kHtoD;
  if (name.find("D2H") != std::string_view::npos) return CopyDirection::kDtoH;
  if (name.find("D2D") != std::string_view::npos) return CopyDirection::kDtoD;
  return name.find("P2P") != std::string_view::npos ? CopyDirection::kPtoP : CopyDirection::kUnknown;
}

}  // namespace

void PlaneFacts::add(PlaneFacts&& later) {
  steps.add(std::move(later.steps));
  devices.insert(devices.end(), std::make_move_iterator(later.devices.begin()),
                 std::make_move_iterator(later.devices.end()));
  next_device = std::max(next_device, later.next_device);
  has_tpu = has_tpu || later.has_tpu;
  has_amd = has_amd || later.has_amd;
  times_are_unix = times_are_unix || later.times_are_unix;
  if (later.profile_start_ns != 0) profile_start_ns = later.profile_start_ns;
}

void PlaneReader::read(std::string_view plane) {
  names_.read(plane, part_.losses);
  std::string_view name;
  LossCounts again;  // damage is counted when the lines are read
  each_field(plane, again, [&](Message& field) {
    if (field.tag() != kPlaneName) return field.skip();
    name = bytes_or_none(field);
  });
  const int32_t device = device_number(name);
  const bool is_host = name.starts_with("/host:");
  device_ = device < 0 ? -1 : place_.first_device + device;
  if (device >= 0) {
    facts_.next_device = std::max(facts_.next_device, device_ + 1);
    facts_.has_tpu = facts_.has_tpu || name.starts_with("/device:TPU");
    read_device_facts(plane, name);
  }
  const size_t first_slice = part_.host_slices.size();
  each_field(plane, part_.losses, [&](Message& field) {
    if (field.tag() == kPlaneStats && name == "Task Environment") {
      const StatValue value = names_.stat(bytes_or_none(field), part_.losses);
      if (value.key == StatKey::kProfileStart) facts_.profile_start_ns = value.number;
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
  if (device >= 0) return;
  find_hlo_ranges(part_, first_slice, hlo_ops_, pool_.strings.intern("cpu_op"));
  join_host_threads(part_, first_slice);
  allocations_.finish(part_);
}

void PlaneReader::read_device_facts(std::string_view plane, std::string_view name) {
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
  facts_.has_amd = facts_.has_amd || is_amd;
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
  if (facts_.devices.size() < 4096) facts_.devices.push_back(std::move(facts));
}

// ---- lines and events

PlaneReader::Line PlaneReader::read_line_head(std::string_view bytes) {
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
  if (line.start_ns > kYear2000Ns) facts_.times_are_unix = true;
  if (line.start_ns < 0 || line.start_ns > kMaxTimeNs) {
    ++part_.losses[Stat::kTimeOutOfRange];
    line.start_ns = 0;
  }
  return line;
}

struct PlaneReader::Event {
  int64_t name = 0;
  int64_t offset_ps = 0;
  int64_t duration_ps = 0;
  bool has_place = true;  // not only a count of how often it happened
};

void PlaneReader::read_event(std::string_view bytes, Event& event) {
  // As they are written: three numbers, then stats. Anything else is read with care, from the start.
  QuickFields quick(bytes);
  while (const uint32_t key = quick.key()) {
    constexpr auto number = [](uint32_t tag) { return tag << 3; };
    if (key == number(kEventName)) {
      event.name = quick.number();
    } else if (key == number(kEventOffset)) {
      event.offset_ps = quick.number();
    } else if (key == number(kEventDuration)) {
      event.duration_ps = quick.number();
    } else if (key == (kEventStats << 3 | 2)) {
      stats_.push_back(quick.bytes());
    } else {
      quick.fail();
    }
  }
  if (quick.is_complete()) return;
  event = {};
  stats_.clear();
  each_field(bytes, part_.losses, [&](Message& each) {
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
}

// Calls visit(name of the event, its start, its duration) for each event of a line that has a place in time.
template <typename Visit>
void PlaneReader::each_event(std::string_view bytes, const Line& line, const Visit& visit) {
  ++line_;
  each_field(bytes, part_.losses, [&](Message& field) {
    if (field.tag() != kLineEvents) return field.skip();
    ++part_.event_count;
    Event event;
    stats_.clear();
    read_event(bytes_or_none(field), event);
    if (!event.has_place) {
      ++part_.losses[Stat::kEventNotUsed];
      return;
    }
    const EventName* name = names_.event(event.name);
    if (name == nullptr) {
      ++part_.losses[Stat::kNameMissing];
      if (no_name_.name == kNoString) no_name_.name = pool_.strings.intern("event without a name");
      name = &no_name_;
    }
    // Ends are rounded as starts are, so that what nests in picoseconds nests in nanoseconds.
    const int64_t start = floor_ns(event.offset_ps);
    if (start < kMinTimeNs / 2 || start > kMaxTimeNs / 2) {
      ++part_.losses[Stat::kTimeOutOfRange];
      return;
    }
    int64_t duration = 0;
    if (event.duration_ps < 0 || event.duration_ps > INT64_MAX / 4 || event.offset_ps > INT64_MAX / 4) {
      ++part_.losses[Stat::kDurationOutOfRange];
    } else {
      duration = floor_ns(event.offset_ps + event.duration_ps) - start;
    }
    visit(*name, line.start_ns + start, duration);
  });
}

void PlaneReader::name_lane(LaneId lane, std::string_view name) {
  part_.lane_names.push_back(
      {.lane = lane, .what = LaneNameKind::kThreadName, .text = pool_.strings.intern(std::string(name))});
}

// ---- devices

void PlaneReader::read_device_line(std::string_view bytes) {
  const Line line = read_line_head(bytes);
  const LineKind kind = line_kind(line.name);
  const LaneId lane = pool_.lane({.number = device_}, {.number = line.id});
  name_lane(lane, line.name);
  if (kind == LineKind::kStream) return read_stream(bytes, line, lane);
  const StringId line_name = pool_.strings.intern(std::string(line.name));
  each_event(bytes, line, [&](const EventName& name, int64_t start_ns, int64_t duration_ns) {
    RawPlainWork work{.start_ns = start_ns, .duration_ns = duration_ns, .kind = DeviceKind::kAnnotation};
    const Span span{.start_ns = start_ns, .duration_ns = duration_ns};
    switch (kind) {
      case LineKind::kOps:
      case LineKind::kAsyncOps: work.kind = kind == LineKind::kOps ? name.kind : name.async_kind; break;
      case LineKind::kSteps: {
        const std::string_view text = pool_.strings.view(name.name);
        Span step = span;
        std::from_chars(text.data(), text.data() + text.size(), step.number);
        facts_.steps.add_device_step(device_, step);
        break;
      }
      case LineKind::kModules: facts_.steps.add_module(device_, pool_.strings.view(name.name), span); break;
      case LineKind::kWaits: work.kind = DeviceKind::kSync; break;
      case LineKind::kUnknown: work.kind = DeviceKind::kOther; break;
      default: break;
    }
    if (name.look_line != line_) {
      name.look_line = line_;
      name.look = static_cast<int32_t>(part_.work_looks.size());
      part_.work_looks.push_back({.stream = line.id,
                                  .lane = lane,
                                  .name = name.name,
                                  .category = name.category == kNoString ? line_name : name.category,
                                  .device = device_});
    }
    work.look = name.look;
    add_plain_work(name, work);
  });
}

// The details of an op are those of all its runs.
void PlaneReader::add_plain_work(const EventName& name, RawPlainWork& work) {
  if (work.kind == DeviceKind::kKernel) {
    if (name.kernel == kNoRow) {
      name.kernel = static_cast<Row>(part_.kernel_details.size());
      part_.kernel_details.push_back({.flops = name.is_start ? kNoNumber : name.flops,
                                      .bytes_accessed = name.is_start ? kNoNumber : name.bytes,
                                      .op_category = name.category,
                                      .op_name = name.op_name,
                                      .program = name.program});
    }
    part_.kernel_order.push_back(name.kernel);
    work.detail = static_cast<Row>(part_.kernel_order.size() - 1);
  } else if (work.kind == DeviceKind::kCopy) {
    part_.copy_details.push_back({.bytes = name.bytes, .direction = name.direction});
    work.detail = static_cast<Row>(part_.copy_details.size() - 1);
  } else if (work.kind == DeviceKind::kCollective) {
    part_.comm_details.push_back(
        {.in_elements = name.bytes, .collective = name.collective, .dtype = pool_.strings.intern("Byte")});
    work.comm = static_cast<Row>(part_.comm_details.size() - 1);
  }
  part_.plain_work.push_back(work);
}

// A stream of a GPU: what JAX and TensorFlow record there has its HLO op beside it.
void PlaneReader::read_stream(std::string_view bytes, const Line& line, LaneId lane) {
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
      const StatValue value = names_.stat(bytes_of_stat, part_.losses);
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
      part_.kernel_details.push_back(details);
      part_.kernel_order.push_back(static_cast<Row>(part_.kernel_details.size() - 1));
      slice.detail = static_cast<Row>(part_.kernel_order.size() - 1);
    } else if (slice.kind == DeviceKind::kCopy || slice.kind == DeviceKind::kSet) {
      copied.direction = read_direction(pool_.strings.view(name.name));
      slice.category = copy;
      part_.copy_details.push_back(copied);
      slice.detail = static_cast<Row>(part_.copy_details.size() - 1);
    }
    part_.device_slices.push_back(slice);
  });
  close_program_run();
}

// GPUs have no line of modules: a run of a program begins where its first op comes again.
void PlaneReader::add_program_run(const RawKernel& details, int64_t start_ns, int64_t duration_ns) {
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

void PlaneReader::close_program_run() {
  if (run_) facts_.steps.add_module(device_, pool_.strings.view(run_program_), *run_);
  run_.reset();
  run_program_ = run_first_op_ = kNoString;
}

// Each host counts from 0.
int64_t PlaneReader::correlation(int64_t id) const {
  return id < 0 || id > UINT32_MAX ? kNoNumber : int64_t{place_.host} << 32 | id;
}

// ---- hosts

void PlaneReader::read_host_line(std::string_view bytes, std::string_view plane) {
  const Line line = read_line_head(bytes);
  const LaneId lane = pool_.lane({.number = kHostPid + place_.host}, {.number = line.id});
  name_lane(lane, line.name.substr(0, line.name.find('/')));
  if (plane == "/host:CPU") {
    part_.lane_names.push_back(
        {.lane = lane,
         .what = LaneNameKind::kProcessName,
         .text = pool_.strings.intern(place_.host == 0 ? "host" : "host " + std::to_string(place_.host))});
  }
  each_event(bytes, line, [&](const EventName& name, int64_t start_ns, int64_t duration_ns) {
    if (name.memory != MemoryMark::kNone) return add_memory_mark(name.memory, lane, start_ns);
    RawHostSlice slice{
        .start_ns = start_ns, .duration_ns = duration_ns, .lane = lane, .name = name.name, .kind = HostKind::kOther};
    int64_t correlation_id = kNoNumber;
    int64_t step = kNoNumber;
    bool is_hlo = false;
    for (const std::string_view bytes_of_stat : stats_) {
      const StatValue value = names_.stat(bytes_of_stat, part_.losses);
      if (value.key == StatKey::kCorrelation) correlation_id = correlation(value.number);
      if (value.key == StatKey::kStepNumber) step = value.number;
      if (value.key != StatKey::kHloOp) continue;
      is_hlo = true;
      if (!value.text.empty()) hlo_ops_.insert(pool_.strings.intern(value.text));
    }
    if (step != kNoNumber && step >= 0)
      facts_.steps.add_marked({.start_ns = start_ns, .duration_ns = duration_ns, .number = step});
    classify(name, correlation_id, is_hlo, slice);
    part_.host_slices.push_back(slice);
  });
}

void PlaneReader::add_memory_mark(MemoryMark mark, LaneId lane, int64_t time_ns) {
  constexpr int32_t kCuda = 1, kXla = 9;  // c10::DeviceType
  RawMemory row{.time_ns = time_ns, .bytes = kNoNumber};
  row.lane = lane;
  row.kind = mark == MemoryMark::kAllocation ? MemoryEventKind::kAlloc : MemoryEventKind::kFree;
  row.device_type = 0;
  row.device = -1;
  for (const std::string_view bytes : stats_) {
    const StatValue value = names_.stat(bytes, part_.losses);
    int32_t device = -1;
    switch (value.key) {
      case StatKey::kAllocator: device = allocator_device(value.text); break;
      case StatKey::kDeviceIndex:
        device = value.number >= 0 && value.number < 65536 ? static_cast<int32_t>(value.number) : -1;
        break;
      case StatKey::kInUse: row.total_allocated_bytes = value.number; break;
      case StatKey::kAllocationBytes: row.bytes = value.number; break;
      case StatKey::kAddress: row.address = static_cast<uint64_t>(value.number); break;
      default: break;
    }
    if (device < 0) continue;
    row.device = place_.first_device + device;
    row.device_type = value.key == StatKey::kAllocator ? kCuda : kXla;
  }
  allocations_.add(row);
}

// What a host's event is, by its name.
void PlaneReader::classify(const EventName& name, int64_t correlation_id, bool is_hlo, RawHostSlice& slice) {
  HostLook& look = is_hlo ? name.on_host_as_op : name.on_host;
  if (look.category == kNoString) look = host_look(pool_.strings.view(name.name), is_hlo, pool_);
  slice.kind = look.kind;
  slice.category = look.category;
  if (is_call(look.kind)) {
    part_.call_details.push_back({.correlation = correlation_id});
    slice.detail = static_cast<Row>(part_.call_details.size() - 1);
  } else if (look.kind == HostKind::kOp || look.kind == HostKind::kAnnotation) {
    if (blank_op_ == kNoRow) {
      blank_op_ = static_cast<Row>(part_.op_details.size());
      part_.op_details.emplace_back();
    }
    part_.op_order.push_back(blank_op_);
    slice.detail = static_cast<Row>(part_.op_order.size() - 1);
  }
}

}  // namespace firelane::importer::xplane
