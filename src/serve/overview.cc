// /api/t/T/overview, /diagnose and /explain: the verdict and the charts of the first screen, and the findings.
//
// Of a recording with light steps, the verdict, the bars below it and how busy devices were are theirs; findings and
// lists by operator are those of the full ones: docs/gpu.md.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "advise/device_words.h"
#include "advise/light_note.h"
#include "advise/rule.h"
#include "analyze/device/device_work.h"
#include "analyze/device/kernels.h"
#include "analyze/ops/ops.h"
#include "analyze/trace/info.h"
#include "report/diagnose_report.h"
#include "report/registry.h"
#include "report/step_parts.h"
#include "serve/handlers.h"

namespace firelane::serve {

namespace {

constexpr size_t kTop = 10;

void write_environment(JsonWriter& json, const StudiedTrace& trace) {
  json.key("environment").begin_array();
  const auto add = [&](std::string_view label, std::string_view text) {
    json.begin_array().value(label).value(text).end_array();
  };
  const report::ReportSpec& info = *report::find_report("info");
  const report::Report described = info.make(trace, info.arguments()).value();
  for (const report::Fact& fact : described.facts) {
    const bool is_known = !std::holds_alternative<std::monostate>(fact.value);
    if (!is_known || fact.label.empty()) continue;
    // Others may have been found, and are what the verdict speaks of.
    add(fact.name == "step_count" ? "Marked steps" : fact.label, report::cell_text(fact.value, fact.kind));
  }
  for (const DeviceProperties& device : trace.model().info.devices) {
    add(device.id == kNoNumber ? "Device" : "Device " + std::to_string(device.id), device.name);
  }
  json.end_array();
}

// Whose times these are, beside them.
void write_whose(JsonWriter& json, bool of_light) {
  if (of_light) json.field("recorded_steps", "light");
}

// How each judged step was spent; only the parts that some step has.
void write_steps(JsonWriter& json, const StudiedTrace& trace, bool of_light) {
  const auto& study = trace.get<analyze::study>();
  const std::vector<analyze::BreakdownRow>& rows = study.breakdown.steps;
  std::vector<report::StepPart> parts = report::step_parts(study);
  std::erase_if(parts, [&](const report::StepPart& part) {
    return std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return part.time_ns(row) == 0; });
  });
  json.key("steps").begin_object().key("parts").begin_array();
  for (const report::StepPart& part : parts) {
    json.value(advise::in_device_words(std::string(part.name), trace.model().info.accelerator));
  }
  json.end_array().key("labels").begin_array();
  for (const report::StepPart& part : parts) json.value(part.meaning);
  json.end_array().key("rows").begin_array();
  size_t judged = 0;
  for (const analyze::FoundStep& step : study.steps.steps) {
    const bool is_judged = !step.warm_up && judged < rows.size();
    const analyze::BreakdownRow* row = is_judged ? &rows[judged++] : nullptr;
    json.begin_object().field("step", step.number);
    json.field("start_ns", row != nullptr ? row->start_ns : step.start_ns);
    json.field("duration_ns", row != nullptr ? row->duration_ns : step.duration_ns());
    json.key("parts_ns").begin_array();
    for (const report::StepPart& part : parts) json.value(row != nullptr ? part.time_ns(*row) : 0);
    json.end_array().field("warmup", step.warm_up).end_object();
  }
  json.end_array();
  write_whose(json, of_light);
  json.end_object();
}

void write_verdict(JsonWriter& json, const advise::Diagnosis& found, const StudiedTrace& timed, bool of_light) {
  const auto& study = timed.get<analyze::study>();
  json.key("verdict").begin_object().field("text", found.verdict.sentence());
  report::write_verdict_parts(json, found);
  // Of stacks, dumps and lanes that nobody knows, no time of a step is said: it would be that of the whole file.
  json.field("step_ns", found.is_judged() ? study.usual_step_ns : 0);
  json.field("recorded_step_ns", found.is_judged() ? study.usual_recorded_ns : 0);
  write_whose(json, of_light);
  json.end_object();
}

// Over the window of the breakdown, which ends when the device is done with the judged steps.
void write_device_busy(JsonWriter& json, const StudiedTrace& trace, bool of_light) {
  const Model& model = trace.model();
  const analyze::BreakdownRow& total = trace.get<analyze::study>().breakdown.total;
  const analyze::Interval window{total.start_ns, total.start_ns + total.duration_ns};
  std::map<int32_t, std::vector<analyze::Interval>> work;
  const DeviceSlices& device = model.device_slices;
  for (Row row = 0; row < device.size(); ++row) {
    if (is_device_work(device.kind[row]) && analyze::is_counted(model, row))
      work[device.device[row]].push_back(analyze::counted_part(model, row));
  }
  json.key("device_busy").begin_array();
  for (auto& [number, intervals] : work) {
    const int64_t busy_ns = analyze::IntervalSet(std::move(intervals)).covered_ns(window.start_ns, window.end_ns);
    json.begin_object().field("device", number);
    json.field("name", std::string(device_word(model.info.accelerator)) + " " + std::to_string(std::max(0, number)));
    json.field("busy_ns", busy_ns);
    json.field("window_ns", window.end_ns - window.start_ns);
    write_whose(json, of_light);
    json.end_object();
  }
  json.end_array();
}

// By the device time of what an op launched itself; without a device by its own CPU time.
void write_top_ops(JsonWriter& json, const StudiedTrace& trace, bool has_device_work) {
  const auto& result = trace.get<analyze::ops>();
  const auto time_of = [&](const analyze::OpsRow& row) {
    return has_device_work ? row.self_device_time_total_ns : row.self_cpu_time_total_ns;
  };
  std::vector<const analyze::OpsRow*> rows;
  for (const analyze::OpsRow& row : result.rows) {
    if (!row.on_device && !row.is_user_annotation && time_of(row) > 0) rows.push_back(&row);
  }
  const size_t count = std::min(rows.size(), kTop);
  std::partial_sort(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(count), rows.end(),
                    [&](const analyze::OpsRow* a, const analyze::OpsRow* b) {
                      return time_of(*a) != time_of(*b) ? time_of(*a) > time_of(*b) : a->name < b->name;
                    });
  json.field("top_ops_by", has_device_work ? "device time" : "self CPU time");
  json.key("top_ops").begin_array();
  for (size_t i = 0; i < count; ++i) {
    json.begin_array().value(rows[i]->name).value(time_of(*rows[i])).value(rows[i]->count).end_array();
  }
  json.end_array();
}

void write_top_kernels(JsonWriter& json, const StudiedTrace& trace) {
  const Model& model = trace.model();
  const auto& table = trace.get<analyze::kernel_table>();
  json.key("top_kernels").begin_array();
  for (size_t i = 0; i < std::min(table.rows.size(), kTop); ++i) {
    const analyze::KernelRow& row = table.rows[i];
    json.begin_array().value(model.text(row.name)).value(row.total_ns).value(row.calls).end_array();
  }
  json.end_array();
}

// For a flight recorder, which has nothing else.
void write_top_collectives(JsonWriter& json, const StudiedTrace& trace) {
  const Model& model = trace.model();
  std::map<std::string, std::pair<int64_t, int64_t>> by_name;  // time and count
  if (model.info.origin == Origin::kFlightRecorder) {
    for (Row row = 0; row < model.host_slices.size(); ++row) {
      const Row detail = model.op_detail(row);
      if (detail == kNoRow || model.op_details.comm[detail] == kNoRow) continue;
      auto& [ns, count] = by_name[std::string(model.text(model.host_slices.name[row]))];
      ns += model.host_slices.duration_ns[row];
      ++count;
    }
  }
  std::vector<std::pair<std::string, std::pair<int64_t, int64_t>>> rows(by_name.begin(), by_name.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  rows.resize(std::min(rows.size(), kTop));
  json.key("top_collectives").begin_array();
  for (const auto& [name, sums] : rows) {
    json.begin_array().value(name).value(sums.first).value(sums.second).end_array();
  }
  json.end_array();
}

void write_missing(JsonWriter& json, const analyze::TraceDescription& description) {
  json.key("missing").begin_array();
  for (const firelane::analyze::Answer& answer : description.answers) {
    if (answer.possible) continue;
    json.begin_object().field("question", answer.question).field("reason", answer.reason);
    json.field("remedy", answer.remedy).end_object();
  }
  json.end_array();
}

}  // namespace

Answer overview(const ServedTrace& trace, const Request&) {
  const Model& model = trace.model();
  const advise::Diagnosis& found = trace.diagnosis();
  const StudiedTrace& timed = advise::timed_trace(trace.studied());
  const bool of_light = &timed != &trace.studied();
  const auto& description = trace.studied().get<analyze::describe_trace>();
  JsonWriter json;
  json.begin_object().field("name", std::filesystem::path(model.info.path).filename().string());
  json.field("format", model.info.format).field("duration_ns", model.info.duration_ns);
  json.field("event_count", model.info.event_count);
  write_environment(json, trace.studied());
  write_verdict(json, found, timed, of_light);
  if (found.is_judged()) {
    write_steps(json, timed, of_light);
  } else {
    json.key("steps").begin_object().key("parts").begin_array().end_array();
    json.key("labels").begin_array().end_array().key("rows").begin_array().end_array().end_object();
  }
  write_device_busy(json, timed, of_light);
  write_top_ops(json, trace.studied(), trace.study().has_device_work);
  write_top_kernels(json, trace.studied());
  write_top_collectives(json, trace.studied());
  write_missing(json, description);
  json.end_object();
  return json_answer(std::move(json));
}

Answer diagnosis(const ServedTrace& trace, const Request&) { return {.body = report::diagnosis_json(trace.studied())}; }

Answer explain(const ServedTrace&, const Request& request) {
  const advise::Rule* rule = advise::find_rule(request.path[4]);
  if (rule == nullptr) return refusal(404, "no such finding; firelane explain lists them");
  JsonWriter json;
  json.begin_object().field("id", rule->id).field("text", rule->explanation).end_object();
  return json_answer(std::move(json));
}

}  // namespace firelane::serve
