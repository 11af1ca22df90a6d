#include "analyze/trace/info.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <ctime>

#include "advise/device_words.h"
#include "model/how_to_record.h"
#include "report/registry.h"

namespace firelane::report {

namespace {

Cell utc_text(int64_t unix_ns) {
  if (unix_ns == kNoNumber) return {};
  const std::time_t seconds = unix_ns / 1'000'000'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// A top-level value as text: JSON strings without their quotes.
Cell metadata_text(const Model& model, std::string_view key) {
  const MetadataEntry* entry = model.find_metadata(key);
  if (entry == nullptr) return {};
  std::string_view json = entry->json;
  if (json.size() >= 2 && json.front() == '"' && json.back() == '"') json = json.substr(1, json.size() - 2);
  return std::string(json);
}

// 12080 is CUDA 12.8.
Cell cuda_version(const Model& model, std::string_view key) {
  const Cell cell = metadata_text(model, key);
  const auto* text = std::get_if<std::string>(&cell);
  int version = 0;
  if (text == nullptr || std::from_chars(text->data(), text->data() + text->size(), version).ptr == text->data() ||
      version < 1000) {
    return cell;
  }
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::vector<Fact> facts_of(const Model& model, const analyze::TraceDescription& description) {
  const TraceInfo& info = model.info;
  const Environment& environment = info.environment;
  const Steps& steps = model.steps;
  const size_t last = steps.size() - 1;
  const analyze::StepTimes& times = description.step_times;
  const RecorderInfo::DeviceClock& clock = info.recorder.device_clock;
  const bool has_clock = clock.readings > 0;
  return {
      {"path", "File", Kind::kText, info.path},
      {"format", "Format", Kind::kText, info.format + (info.compression.empty() ? "" : ", " + info.compression)},
      {"file_bytes", "Size", Kind::kBytes, static_cast<int64_t>(info.file_bytes)},
      {"content_bytes", "Unpacked", Kind::kBytes, static_cast<int64_t>(info.content_bytes)},
      {"program", "Program", Kind::kText, text_or_none(description.program)},
      {"process_id", "Process id", Kind::kNumber, cell_unless(description.process_id, kNoNumber)},
      {"host_name", "Host", Kind::kText,
       info.recorder.host_name.empty() ? metadata_text(model, "host_name") : Cell{info.recorder.host_name}},
      {"started", "Started", Kind::kText, utc_text(description.unix_start_ns)},
      {"unix_start_ns", "", Kind::kNumber, cell_unless(description.unix_start_ns, kNoNumber)},
      {"duration_ns", "Duration", Kind::kDuration, info.has_order_only ? Cell{} : Cell{info.duration_ns}},
      {"counted_ns", "  recorded", Kind::kDuration, cell_unless(description.counted_ns, info.duration_ns)},
      {"device_busy_ns", "Device busy", Kind::kDuration, cell_unless(description.device_busy_ns, int64_t{0})},
      {"step_count", "Steps", Kind::kNumber, static_cast<int64_t>(steps.size())},
      {"first_step", "First step", Kind::kNumber, steps.size() == 0 ? Cell{} : Cell{steps.number[0]}},
      {"last_step", "Last step", Kind::kNumber, steps.size() == 0 ? Cell{} : Cell{steps.number[last]}},
      {"true_step_ns", "Step, not recorded", Kind::kDuration, cell_unless(times.true_step_ns, kNoNumber)},
      {"true_step_count", "  median of", Kind::kNumber, cell_unless(times.true_step_count, int64_t{0})},
      {"true_device_step_ns", "  on the device", Kind::kDuration, cell_unless(times.true_device_step_ns, kNoNumber)},
      {"recorded_step_ns", "Step, recorded", Kind::kDuration, cell_unless(times.recorded_step_ns, kNoNumber)},
      {"recorded_step_count", "  median of", Kind::kNumber, cell_unless(times.recorded_step_count, int64_t{0})},
      {"light_step_ns", "Step, light", Kind::kDuration, cell_unless(times.light_step_ns, kNoNumber)},
      {"light_step_count", "  median of", Kind::kNumber, cell_unless(times.light_step_count, int64_t{0})},
      {"light_work", "Work of light steps", Kind::kNumber, cell_unless(info.light.work, int64_t{0})},
      {"light_work_with_op", "  with an op", Kind::kNumber,
       info.light.work == 0 ? Cell{} : Cell{info.light.same + info.light.resized}},
      {"light_work_resized", "  by name only", Kind::kNumber, info.light.work == 0 ? Cell{} : Cell{info.light.resized}},
      {"thread_count", "Threads", Kind::kNumber, description.threads},
      {"stream_count", "Streams", Kind::kNumber, description.streams},
      {"rank", "Rank", Kind::kNumber, cell_unless(info.distributed.rank, kNoNumber)},
      {"world_size", "World size", Kind::kNumber, cell_unless(info.distributed.world_size, kNoNumber)},
      {"local_rank", "Local rank", Kind::kNumber, cell_unless(info.distributed.local_rank, kNoNumber)},
      {"local_world_size", "  ranks on this host", Kind::kNumber,
       cell_unless(info.distributed.local_world_size, kNoNumber)},
      {"launcher", "  started by", Kind::kText, text_or_none(info.distributed.launcher)},
      {"backend", "Backend", Kind::kText, text_or_none(info.distributed.backend)},
      {"front", "Recorded by", Kind::kText, text_or_none(environment.front_name)},
      {"commit", "Commit", Kind::kText, text_or_none(environment.commit)},
      {"python", "Python", Kind::kText, text_or_none(environment.python)},
      {"torch", "torch", Kind::kText, text_or_none(environment.torch)},
      {"torch_threads", "  threads", Kind::kNumber, cell_unless(environment.torch_threads, kNoNumber)},
      {"torch_interop_threads", "  inter-op threads", Kind::kNumber,
       cell_unless(environment.torch_interop_threads, kNoNumber)},
      {"deterministic_algorithms", "  deterministic algorithms", Kind::kTruth,
       cell_unless(environment.deterministic_algorithms, kNoNumber)},
      {"cudnn_benchmark", "  cudnn.benchmark", Kind::kTruth, cell_unless(environment.cudnn_benchmark, kNoNumber)},
      {"cudnn_deterministic", "  cudnn.deterministic", Kind::kTruth,
       cell_unless(environment.cudnn_deterministic, kNoNumber)},
      {"matmul_tf32", "  TF32 for matmuls", Kind::kTruth, cell_unless(environment.matmul_tf32, kNoNumber)},
      {"cpu", "CPU", Kind::kText, text_or_none(environment.cpu)},
      {"cores", "  cores", Kind::kNumber, cell_unless(environment.cores, kNoNumber)},
      {"cores_allowed", "  of them allowed", Kind::kNumber, cell_unless(environment.cores_allowed, kNoNumber)},
      {"cpu_quota", "  CPU limit of the container", Kind::kText,
       environment.cpu_quota > 0 ? Cell{fmt::format("{:g} cores", environment.cpu_quota)} : Cell{}},
      {"memory_bytes", "  memory", Kind::kBytes, cell_unless(environment.memory_bytes, kNoNumber)},
      {"cuda_driver_version", "CUDA driver", Kind::kText, cuda_version(model, "cuda_driver_version")},
      {"cuda_runtime_version", "CUDA runtime", Kind::kText, cuda_version(model, "cuda_runtime_version")},
      {"cupti_version", "CUPTI", Kind::kText, metadata_text(model, "cupti_version")},
      {"device_clock_error_ns", "Device times off by", Kind::kDuration, has_clock ? Cell{clock.error_ns} : Cell{}},
      {"device_clock_readings", "  paired readings", Kind::kNumber,
       has_clock ? Cell{static_cast<int64_t>(clock.readings)} : Cell{}},
      {"device_clock_drift", "  drift", Kind::kText,
       has_clock ? Cell{fmt::format("{:.2f} ppm", clock.drift_ppm)} : Cell{}},
      {"cuda_calls_by", "CUDA calls by", Kind::kText, metadata_text(model, "cuda_calls_by")},
      {"event_count", "Events read", Kind::kNumber, static_cast<int64_t>(info.event_count)},
  };
}

// In the words of the device's maker. TPUs and others have none of these units.
Table devices_table(const TraceInfo& info) {
  const bool is_amd = info.accelerator == Accelerator::kHip;
  const std::string unit = is_amd ? "CU" : "SM";
  const bool is_nvidia = info.accelerator == Accelerator::kCuda || info.accelerator == Accelerator::kUnknown;
  Table table{
      .name = "devices",
      .title = "Devices",
      .columns = {{"device", "Device", Kind::kNumber},
                  {"name", "Name", Kind::kText},
                  {"total_memory_bytes", "Memory", Kind::kBytes},
                  {"compute_capability", "Compute", Kind::kText},
                  {"multiprocessors", unit + "s", Kind::kNumber},
                  {"max_threads_per_multiprocessor", "Threads/" + unit, Kind::kNumber},
                  {"registers_per_multiprocessor", "Registers/" + unit, Kind::kNumber},
                  {"shared_memory_per_multiprocessor_bytes", (is_amd ? "LDS/" : "Shared/") + unit, Kind::kBytes},
                  {"warp_size", is_amd ? "Wave" : "Warp", Kind::kNumber}}};
  for (Column& column : table.columns) column.hide_if_empty = !is_nvidia && column.name != "device";
  for (const DeviceProperties& device : info.devices) {
    const bool has_compute = device.compute_major != kNoNumber;
    table.add({cell_unless(device.id, kNoNumber), device.name, cell_unless(device.total_memory_bytes, kNoNumber),
               has_compute ? Cell{fmt::format("{}.{}", device.compute_major, device.compute_minor)} : Cell{},
               cell_unless(device.multiprocessors, kNoNumber),
               cell_unless(device.max_threads_per_multiprocessor, kNoNumber),
               cell_unless(device.registers_per_multiprocessor, kNoNumber),
               cell_unless(device.shared_memory_per_multiprocessor_bytes, kNoNumber),
               cell_unless(device.warp_size, kNoNumber)});
  }
  return table;
}

// "0, 1, 5"; a long list is cut, JSON has all of it elsewhere (distributedInfo).
std::string members_text(const std::vector<int64_t>& ranks) {
  constexpr size_t kShown = 16;
  std::string text;
  for (size_t i = 0; i < std::min(ranks.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return ranks.size() > kShown ? text + ", ... " + std::to_string(ranks.back()) : text;
}

Table groups_table(const std::vector<ProcessGroup>& groups) {
  Table table{.name = "process_groups",
              .title = "Process groups of this rank",
              .columns = {{"name", "Name"},
                          {"description", "Description"},
                          {"backend", "Backend"},
                          {"size", "Ranks", Kind::kNumber},
                          {"ranks", "Members"},
                          {"first_sequence", "Collectives before", Kind::kNumber}}};
  for (const ProcessGroup& group : groups) {
    table.add({group.name, text_or_none(group.description), text_or_none(group.backend),
               cell_unless(group.size, kNoNumber), text_or_none(members_text(group.ranks)),
               cell_unless(group.first_sequence, kNoNumber)});
  }
  return table;
}

Table joined_table(const std::vector<JoinedFile>& files) {
  Table table{.name = "joined",
              .title = "Joined files of the same run",
              .columns = {{"path", "File"},
                          {"kind", "Kind"},
                          {"entries", "Entries", Kind::kNumber},
                          {"used", "In this trace", Kind::kNumber},
                          {"clock_offset_ns", "Clock off by", Kind::kDuration, Align::kByKind, 0, true}}};
  for (const JoinedFile& file : files) {
    table.add({file.path, std::string(name_of(file.origin)), file.entries, file.used,
               cell_unless(file.clock_offset_ns, kNoNumber)});
  }
  return table;
}

Table events_table(const analyze::EventCounts& events) {
  Table table{.name = "events",
              .title = "Events",
              .columns = {{"side", "Side"}, {"kind", "Kind"}, {"count", "Count", Kind::kNumber}}};
  const auto add = [&table](std::string_view side, std::string_view kind, int64_t count) {
    if (count != 0) table.add({std::string(side), std::string(kind), count});
  };
  for (size_t i = 0; i < kHostKindCount; ++i) add("host", name_of(static_cast<HostKind>(i)), events.host[i]);
  for (size_t i = 0; i < kDeviceKindCount; ++i) add("device", name_of(static_cast<DeviceKind>(i)), events.device[i]);
  add("other", "memory", events.memory);
  add("other", "instant", events.instants);
  add("other", "counter_sample", events.counter_samples);
  add("other", "flow", events.flows);
  return table;
}

Table spans_table(const Model& model, const std::vector<analyze::Span>& spans) {
  Table table{
      .name = "spans",
      .title = "Spans of the profiler",
      .columns = {
          {"name", "Name"}, {"start_ns", "Start", Kind::kDuration}, {"duration_ns", "Duration", Kind::kDuration}}};
  const bool is_summed = std::any_of(spans.begin(), spans.end(), [](const auto& span) { return span.count > 1; });
  if (is_summed) table.columns.push_back({"count", "Count", Kind::kNumber});
  for (const analyze::Span& span : spans) {
    std::vector<Cell> row{std::string(model.text(span.name)), span.start_ns, span.duration_ns};
    if (is_summed) row.emplace_back(span.count);
    table.add(std::move(row));
  }
  return table;
}

Table options_table(const std::vector<analyze::RecordingOption>& options) {
  Table table{
      .name = "recording_options", .title = "Recorded with", .columns = {{"option", "Option"}, {"state", "State"}}};
  for (const analyze::RecordingOption& option : options) {
    table.add({std::string(option.name), std::string(firelane::analyze::name_of(option.state))});
  }
  return table;
}

// What our recorder says about itself: its cost for one event of each kind, and what went wrong.
Table recorder_costs_table(const RecorderInfo& recorder) {
  Table table{.name = "recorder_costs",
              .title = "Cost of recording, measured in the program",
              .columns = {{"event", "Event"}, {"cost_ns", "Added, each", Kind::kDuration}}};
  for (const RecorderInfo::Cost& cost : recorder.costs) table.add({cost.event, std::llround(cost.ns)});
  return table;
}

Table recorder_losses_table(const RecorderInfo& recorder) {
  Table table{.name = "recorder_losses",
              .title = "What the recorder could not keep",
              .columns = {{"reason", "Reason"}, {"count", "Events", Kind::kNumber}}};
  if (!recorder.stopped_because.empty()) table.add({recorder.stopped_because, Cell{}});
  for (const RecorderInfo::Loss& loss : recorder.losses) {
    table.add({loss.reason, cell_unless(static_cast<int64_t>(loss.count), int64_t{0})});
  }
  return table;
}

Table answers_table(const std::vector<analyze::Answer>& answers) {
  Table table{.name = "answers",
              .title = "What this trace can answer",
              .columns = {{"question", "Question"},
                          {"possible", "Answer", Kind::kTruth},
                          {"reason", "Why not", Kind::kText, Align::kByKind, 0, true},
                          {"remedy", "What to do", Kind::kText, Align::kByKind, 0, true}}};
  for (const analyze::Answer& answer : answers) {
    table.add({std::string(answer.question), int64_t{answer.possible}, text_or_none(std::string(answer.reason)),
               text_or_none(std::string(answer.remedy))});
  }
  return table;
}

Table losses_table(const TraceInfo& info, const std::vector<analyze::Loss>& losses) {
  Table table{.name = "losses",
              .title = "Lost, repaired or left out",
              .columns = {{"name", "Name"},
                          {"severity", "Severity"},
                          {"count", "Count", Kind::kNumber},
                          {"meaning", "What happened"},
                          {"remedy", "What to do"}}};
  for (const analyze::Loss& loss : losses) {
    const StatInfo& stat = info_of(loss.stat);
    table.add({std::string(stat.name), std::string(name_of(stat.severity)), static_cast<int64_t>(loss.count),
               advise::fit_words(info.origin, info.accelerator, std::string(stat.meaning)),
               std::string(remedy_for(info, loss.stat))});
  }
  return table;
}

Result<Report> make_info(const StudiedTrace& trace, const Arguments&) {
  const Model& model = trace.model();
  const auto& description = trace.get<analyze::describe_trace>();
  Report report{.facts = facts_of(model, description)};
  report.tables = {devices_table(model.info),
                   groups_table(model.info.distributed.groups),
                   joined_table(model.info.joined),
                   events_table(description.events),
                   spans_table(model, description.spans),
                   options_table(description.options),
                   recorder_costs_table(model.info.recorder),
                   recorder_losses_table(model.info.recorder),
                   answers_table(description.answers),
                   losses_table(model.info, description.losses)};
  for (Table& table : report.tables) table.hide_if_empty = true;
  if (model.info.has_order_only) {
    report.notes.push_back(
        "an execution trace has no times: the values shown as times are only the order of the calls");
  }
  if (description.losses.empty()) report.notes.push_back("nothing was lost, repaired or left out");
  return report;
}

}  // namespace

ReportSpec info_report() {
  return {.name = "info",
          .title = "The trace",
          .sentence = "Show what a trace is, what it can answer, and what it lost.",
          .examples = {"firelane info trace.json.gz", "firelane info trace.json.gz --json | jq .answers"},
          .tables = {{"devices"},
                     {"process_groups"},
                     {"joined"},
                     {"events"},
                     {"spans"},
                     {"recording_options"},
                     {"recorder_costs"},
                     {"recorder_losses"},
                     {"answers"},
                     {"losses"}},
          .make = make_info,
          .python_form = PythonForm::kDict,
          .needs_times = false,
          .of_recording = true};
}

}  // namespace firelane::report
