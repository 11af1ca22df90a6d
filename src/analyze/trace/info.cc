#include "analyze/trace/info.h"

#include <algorithm>
#include <map>

#include "analyze/common/median.h"
#include "analyze/device/device_class.h"
#include "analyze/device/device_work.h"
#include "analyze/host/core_waits.h"
#include "analyze/host/host_time.h"
#include "analyze/steps/find_steps.h"
#include "analyze/steps/true_steps.h"
#include "model/host_role.h"
#include "model/how_to_record.h"

namespace firelane::analyze {

namespace {

bool any_text(const Column<StringId>& column) {
  const auto cells = column.view().cells();
  return std::any_of(cells.begin(), cells.end(), [](StringId id) { return id != kNoString; });
}
bool any_number(const Column<int64_t>& column) {
  const auto cells = column.view().cells();
  return std::any_of(cells.begin(), cells.end(), [](int64_t number) { return number != kNoNumber; });
}

}  // namespace

// Fewer are no baseline: one odd step would decide.
constexpr size_t kMinUndisturbedSteps = 3;

StepTimes find_step_times(const Model& model) {
  const TimedSteps& steps = model.timed_steps;
  const CoreWaits waits(model);
  std::vector<int64_t> undisturbed;
  std::vector<int64_t> on_device;
  std::vector<int64_t> recorded;
  std::vector<int64_t> light;
  const auto own_of = [&](Row row) { return steps.duration_ns[row] - waits.lost_ns(row); };
  for (const Row row : true_steps(steps)) {
    undisturbed.push_back(own_of(row));
    if (row < steps.device_ns.size() && steps.device_ns[row] != kNoNumber) on_device.push_back(steps.device_ns[row]);
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    const int64_t own_ns = own_of(static_cast<Row>(i));
    if (steps.disturbance[i] == StepDisturbance::kRecorded) recorded.push_back(own_ns);
    if (steps.disturbance[i] == StepDisturbance::kLight) light.push_back(own_ns);
  }
  if (undisturbed.size() < kMinUndisturbedSteps) undisturbed.clear();
  if (on_device.size() < kMinUndisturbedSteps) on_device.clear();
  // The host may run ahead of a device that is behind: a step takes what the slower of both takes.
  return {.true_step_ns = std::max(median(undisturbed), median(on_device)),
          .true_step_count = static_cast<int64_t>(undisturbed.size()),
          .true_device_step_ns = median(on_device),
          .recorded_step_ns = median(recorded),
          .recorded_step_count = static_cast<int64_t>(recorded.size()),
          .light_step_ns = median(light),
          .light_step_count = static_cast<int64_t>(light.size())};
}

namespace {

EventCounts count_events(const Model& model) {
  EventCounts counts;
  for (const HostKind kind : model.host_slices.kind) ++counts.host[static_cast<size_t>(kind)];
  for (const DeviceKind kind : model.device_slices.kind) ++counts.device[static_cast<size_t>(kind)];
  counts.memory = static_cast<int64_t>(model.memory_events.size());
  counts.instants = static_cast<int64_t>(model.instants.size());
  counts.counter_samples = static_cast<int64_t>(model.counter_samples.size());
  counts.flows = static_cast<int64_t>(model.flows.size());
  return counts;
}

void find_program(const Model& model, TraceDescription& out) {
  std::map<int64_t, int64_t> slices_of;  // by process id
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    const int64_t pid = model.lanes.pid[lane].number;
    const bool has_device = model.lanes.device_end[lane] > model.lanes.device_begin[lane];
    if (model.lanes.kind[lane] == LaneKind::kStream) {
      out.streams += has_device ? 1 : 0;
      continue;
    }
    const int64_t slices = model.lanes.host_end[lane] - model.lanes.host_begin[lane];
    if (slices == 0) continue;
    if (model.lanes.kind[lane] == LaneKind::kThread) ++out.threads;
    if (pid != kNoNumber) slices_of[pid] += slices;
  }
  if (slices_of.empty() || model.info.origin == Origin::kXPlane) return;  // whose ids are those of hosts
  const auto most = std::max_element(slices_of.begin(), slices_of.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  out.process_id = most->first;
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    if (model.lanes.kind[lane] == LaneKind::kStream || model.lanes.pid[lane].number != out.process_id) continue;
    if (model.lanes.process_name[lane] == kNoString) continue;
    out.program = model.text(model.lanes.process_name[lane]);
    return;
  }
}

// torch >= 2.4 writes times since a base; before, times were Unix times already.
int64_t unix_start(const TraceInfo& info) {
  constexpr int64_t kYear2010 = 1'262'304'000'000'000'000;
  constexpr int64_t kYear2100 = 4'102'444'800'000'000'000;
  const int64_t start_ns = info.base_time_ns + info.start_ns;
  return start_ns > kYear2010 && start_ns < kYear2100 ? start_ns : kNoNumber;
}

// More are no list to read: derived lanes of Ascend have hundreds.
constexpr size_t kMostSpans = 16;

std::vector<Span> by_name(const std::vector<Span>& spans) {
  std::vector<Span> out;
  for (const Span& span : spans) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const Span& each) { return each.name == span.name; });
    if (same == out.end()) {
      out.push_back(span);
    } else {
      same->count += span.count;
      same->duration_ns += span.duration_ns;
    }
  }
  return out;
}

std::vector<Span> find_spans(const Model& model) {
  std::vector<Span> spans;
  for (Row row = 0; row < model.host_slices.size(); ++row) {
    if (model.host_slices.kind[row] != HostKind::kSpan) continue;
    spans.push_back({model.host_slices.name[row], model.host_slices.start_ns[row], model.host_slices.duration_ns[row]});
  }
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start_ns < b.start_ns; });
  return spans.size() > kMostSpans ? by_name(spans) : spans;
}

// What the events show, independent of what the recording claims.
struct Holdings {
  bool ops, python, device_work, linked, shapes, flops, memory, op_stacks, lines, modules, syncs, steps, occupancy,
      comm, comm_kernels, times, data;
};

bool has_module_slices(const Model& model) {
  const auto& modules = model.host_slices.module.view().cells();
  return std::find(modules.begin(), modules.end(), ModuleCall::kPath) != modules.end();
}

// Slices of nn.Modules and of garbage collections, which our recorder writes without functions, too, are of their kind.
bool has_functions(const Model& model) {
  const HostSlices& host = model.host_slices;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kPython || host.module[row] == ModuleCall::kPath) continue;
    if (!is_of_generation(host.role[row])) return true;
  }
  return false;
}

bool has_communication(const Model& model) {
  DeviceClasses classes(model);
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    if (!is_device_work(model.device_slices.kind[row])) continue;
    if (classes.of(row) == DeviceClass::kCommunication) return true;
  }
  return false;
}

Holdings look_for(const Model& model, const EventCounts& events) {
  const bool has_python = has_functions(model);
  const OpDetails& ops = model.op_details;
  const DeviceSlices& device = model.device_slices;
  const auto& occupancy = model.kernel_details.occupancy_percent;
  return {
      .ops = events.host[static_cast<size_t>(HostKind::kOp)] > 0,
      .python = has_python,
      .device_work = std::any_of(device.kind.begin(), device.kind.end(), is_device_work),
      .linked = std::any_of(device.op.begin(), device.op.end(), [](Row row) { return row != kNoRow; }),
      .shapes = any_text(ops.input_dims),
      .flops = any_number(ops.flops) || any_number(model.kernel_details.flops),
      .memory = events.memory > 0,
      .op_stacks = any_text(ops.stack) && model.find_metadata("with_lines") == nullptr,  // lines are one or two frames
      .lines = any_text(ops.stack) || has_python,
      .modules = any_text(ops.module_hierarchy) || has_module_slices(model),
      .syncs = model.sync_details.size() > 0,
      .steps = model.steps.size() > 0,
      .occupancy = std::any_of(occupancy.begin(), occupancy.end(), [](float percent) { return percent >= 0; }),
      .comm = model.comm_details.size() > 0,
      .comm_kernels = has_communication(model),
      .times = !model.info.has_order_only,
      .data = model.data_dependencies.size() > 0,
  };
}

// torch writes a switch into the trace only when it is on; so does the reader of our own recorder's files.
Switch switch_state(const Model& model, std::string_view key, bool seen) {
  const MetadataEntry* entry = model.find_metadata(key);
  if (entry != nullptr) return entry->json == "0" || entry->json == "false" ? Switch::kOff : Switch::kOn;
  if (seen) return Switch::kOn;
  const bool from_torch = model.find_metadata("schemaVersion") != nullptr || !model.info.devices.empty();
  const bool from_us = !model.info.recorder.command.empty();
  return from_torch || from_us ? Switch::kOff : Switch::kUnknown;
}

// What can be recorded depends on who recorded: the words of other recorders than torch.profiler and ours, for what is
// no option of a recorder (model/how_to_record.h).
struct OwnRemedy {
  Origin origin;
  std::string_view question, remedy;
};
constexpr OwnRemedy kOwnRemedies[] = {
    {Origin::kNsight, "time per operator",
     "nsys profile --pytorch=autograd-shapes-nvtx, or torch.autograd.profiler.emit_nvtx()"},
    {Origin::kNsight, "time per step", "torch.cuda.nvtx.range_push(f\"step {i}\") around each iteration"},
    {Origin::kNsight, "device time per kernel", "nsys profile --trace=cuda,nvtx"},
    {Origin::kNsight, "which operator launched a kernel", "nsys profile --trace=cuda,nvtx --pytorch=autograd-nvtx"},
    {Origin::kNsight, "occupancy of kernels", "Nsight Systems does not record it; firelane record does"},
    {Origin::kNsight, "collective communication", "nsys profile --trace=cuda,nvtx: NCCL writes ranges of its own"},
    {Origin::kXPlane, "time per operator", "jax.profiler.trace(...) with host_tracer_level = 2"},
    {Origin::kXPlane, "time per step", "with jax.profiler.StepTraceAnnotation(\"train\", step_num=i): ..."},
    {Origin::kXPlane, "device time per kernel", "jax.profiler.trace(...) on a machine with a GPU or TPU"},
    {Origin::kXPlane, "which operator launched a kernel", "normal on TPUs: the host starts whole programs"},
    {Origin::kXPlane, "occupancy of kernels", "normal on TPUs, which have none"},
    {Origin::kXPlane, "collective communication", "record a run on several devices"},
    {Origin::kRocprof, "time per operator", "torch.profiler on ROCm; rocprofv3 knows no operators"},
    {Origin::kRocprof, "time per step", "roctxRangePush(\"step N\") around each iteration, and --marker-trace"},
    {Origin::kRocprof, "device time per kernel", "rocprofv3 --kernel-trace --memory-copy-trace"},
    {Origin::kRocprof, "which operator launched a kernel", "torch.profiler on ROCm; rocprofv3 knows no operators"},
    {Origin::kRocprof, "collective communication", "torch.profiler on ROCm; rocprofv3 --rccl-trace has the calls"},
    {Origin::kExecutionTrace, "time per operator",
     "open the trace of the same run with it: firelane TRACE --execution-trace FILE"},
    {Origin::kExecutionTrace, "time per step",
     "open the trace of the same run with it: firelane TRACE --execution-trace FILE"},
    {Origin::kAscend, "time per step", "call prof.step() of torch_npu.profiler.profile() after each iteration"},
    {Origin::kAscend, "occupancy of kernels", "trace_view.json does not hold it"},
    {Origin::kAscend, "collective communication", "record a distributed run"},
};

std::string_view not_given(Origin origin) {
  switch (origin) {
    case Origin::kXPlane: return "XPlane files do not hold it";
    case Origin::kRocprof: return "rocprofv3 does not record it";
    case Origin::kAscend: return "trace_view.json does not hold it";
    default: return kNotGiven;
  }
}

struct QuestionOption {
  std::string_view question;
  RecordOption option;
};
constexpr QuestionOption kQuestionOptions[] = {
    {"shapes of operators' inputs", RecordOption::kShapes},
    {"FLOPs", RecordOption::kFlops},
    {"memory over time", RecordOption::kMemory},
    {"Python functions over time", RecordOption::kStacks},
    {"call stack of each operator", RecordOption::kStacks},
    {"line that called each operator", RecordOption::kStacks},
    {"waits of streams for each other", RecordOption::kCudaSync},
};

void fit_remedy(const TraceInfo& info, Answer& answer) {
  const bool is_cuda = info.accelerator == Accelerator::kCuda || info.accelerator == Accelerator::kUnknown;
  const bool is_sync = answer.question == "waits of streams for each other";
  if (is_sync && (!is_cuda || !records_as_torch(info.origin))) answer.reason = "no synchronization records";
  if (records_as_torch(info.origin)) {
    const bool is_occupancy = answer.question == "occupancy of kernels";
    if (is_sync && !is_cuda) answer.remedy = how_to_record(info, RecordOption::kCudaSync);
    if (is_occupancy && !is_cuda) answer.remedy = "torch.profiler does not record it on this device";
    return;
  }
  // A snapshot of a GPU's memory has none either, and a program on CPUs alone it was not.
  if (answer.question == "device time per kernel") answer.reason = "no device work";
  answer.remedy = not_given(info.origin);
  for (const QuestionOption& each : kQuestionOptions) {
    if (each.question == answer.question) answer.remedy = how_to_record(info, each.option);
  }
  for (const OwnRemedy& own : kOwnRemedies) {
    if (own.origin == info.origin && own.question == answer.question) answer.remedy = own.remedy;
  }
}

void fit_remedies(const Model& model, std::vector<Answer>& answers) {
  for (Answer& answer : answers) {
    if (answer.possible) continue;
    if (answer.question == "device time per kernel" && model.losses[Stat::kDeviceNotUnderstood] > 0) {
      answer.reason = "lanes of a device hold events of an unknown kind";
      answer.remedy = "the timeline shows them; no conclusions are drawn from them";
      continue;
    }
    fit_remedy(model.info, answer);
  }
}

std::vector<Answer> find_answers(const Holdings& has, Front front) {
  const auto with = [front](RecordOption option) { return "record with " + std::string(flag_of(front, option)); };
  const bool by_torch = front == Front::kTorch;
  std::vector<Answer> answers = {
      {"time per operator", has.ops && has.times, has.ops ? "no times" : "no operators",
       "record with activities=[ProfilerActivity.CPU, ...]"},
      {"time per step", has.steps && has.times, has.steps ? "no times" : "no steps",
       "pass schedule=..., and call prof.step()"},
      {"device time per kernel", has.device_work, "CPU only: no device work",
       "record with activities=[..., ProfilerActivity.CUDA] on a machine with a GPU"},
      {"which operator launched a kernel", has.linked, "no device work is linked to an operator",
       "record CPU and CUDA activities together"},
      {"occupancy of kernels", has.occupancy, "kernels carry no occupancy",
       "record on an NVIDIA GPU with torch 1.9 or later"},
      {"shapes of operators' inputs", has.ops && has.shapes, has.ops ? "no input shapes" : "no operators",
       with(RecordOption::kShapes)},
      {"FLOPs", (has.ops && has.shapes) || has.flops, "no input shapes to compute them from",
       with(RecordOption::kFlops)},
      {"memory over time", has.memory, "no memory events", with(RecordOption::kMemory)},
      {"Python functions over time", has.python, "no Python functions", with(RecordOption::kStacks)},
      {"call stack of each operator", has.op_stacks || has.python, "no call stacks",
       with(RecordOption::kStacks) +
           (by_torch ? "; torch.profiler needs experimental_config=_ExperimentalConfig(verbose=True) too" : "")},
      {"line that called each operator", has.lines, "no lines and no call stacks", with(RecordOption::kLines)},
      {"waits of streams for each other", has.syncs, "no cuda_sync events",
       by_torch ? "record with experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True)"
                : with(RecordOption::kCudaSync)},
      {"collective communication", has.comm,
       has.comm_kernels ? "times of its kernels only: no sizes, no process groups" : "no collectives",
       "record a distributed run, with " + std::string(flag_of(front, RecordOption::kShapes)) +
           " for sizes and groups"},
      {"which operator needs whose data", has.data, "no execution trace",
       "record with execution_trace_observer=..., and open both: --execution-trace FILE"},
  };
  for (Answer& answer : answers) {
    if (answer.possible) answer.reason = answer.remedy = {};
  }
  return answers;
}

std::vector<Loss> find_losses(const LossCounts& counts) {
  std::vector<Loss> losses;
  for (size_t i = 0; i < kStatCount; ++i) {
    if (counts.counts[i] != 0) losses.push_back({static_cast<Stat>(i), counts.counts[i]});
  }
  std::stable_sort(losses.begin(), losses.end(),
                   [](const Loss& a, const Loss& b) { return info_of(a.stat).severity > info_of(b.stat).severity; });
  return losses;
}

}  // namespace

std::string_view name_of(Switch state) {
  return state == Switch::kOn ? "on" : state == Switch::kOff ? "off" : "unknown";
}

namespace {

std::vector<RecordingOption> options_of(const Model& model, const Holdings& has) {
  if (!records_as_torch(model.info.origin)) return {};  // other tools have options of their own
  // What other devices record of waits has no switch.
  const bool is_cuda = model.info.accelerator == Accelerator::kCuda || model.info.accelerator == Accelerator::kUnknown;
  std::vector<RecordingOption> options = {
      {"record_shapes", switch_state(model, "record_shapes", has.shapes)},
      {"profile_memory", switch_state(model, "profile_memory", has.memory)},
      {"with_stack", switch_state(model, "with_stack", has.python)},
      {"with_flops", switch_state(model, "with_flops", has.flops)},
      {"with_modules", switch_state(model, "with_modules", has.modules)},
  };
  if (model.info.origin == Origin::kFirelane)
    options.push_back({"with_lines", switch_state(model, "with_lines", has.lines && !has.python)});
  if (is_cuda) {
    options.push_back({"enable_cuda_sync_events", switch_state(model, "enable_cuda_sync_events", has.syncs)});
  }
  return options;
}

}  // namespace

std::vector<RecordingOption> recording_options(const Model& model) {
  return options_of(model, look_for(model, count_events(model)));
}

TraceDescription describe_trace(const Model& model) {
  TraceDescription out;
  find_program(model, out);
  out.unix_start_ns = unix_start(model.info);
  const Interval counted = counted_span(model);
  out.counted_ns = counted.end_ns - counted.start_ns;
  out.device_busy_ns = device_busy(model).total_ns();
  out.step_times = find_step_times(model);
  // The host may run ahead: what the recorder timed is the host's step.
  if (out.step_times.recorded_step_count > 0 && model.steps.size() > 0) {
    const StepList steps = find_steps(model, host_time(model));
    out.step_times.recorded_step_ns = steps.median_ns;
    out.step_times.recorded_step_count = steps.judged;
  }
  if (model.light != nullptr && model.light->steps.size() > 0 && out.step_times.light_step_count > 0) {
    const StepList steps = find_steps(*model.light, host_time(*model.light));
    out.step_times.light_step_ns = steps.median_ns;
    out.step_times.light_step_count = steps.judged;
  }
  out.events = count_events(model);
  out.spans = find_spans(model);
  const Holdings has = look_for(model, out.events);
  out.options = options_of(model, has);
  out.answers = find_answers(has, model.info.environment.front);
  fit_remedies(model, out.answers);
  out.losses = find_losses(model.losses);
  return out;
}

}  // namespace firelane::analyze
