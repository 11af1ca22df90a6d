#include "report/diagnose_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "advise/diagnose.h"
#include "advise/light_note.h"
#include "advise/text.h"
#include "base/json_writer.h"
#include "base/visible_text.h"
#include "report/paint.h"
#include "report/quantity.h"
#include "report/registry.h"
#include "report/shared.h"
#include "report/step_parts.h"

namespace firelane::report {

namespace {

// "2.0 ms to 4.0 ms", or "2.0 ms" when both are.
std::string range_text(const std::string& low, const std::string& high) {
  return low == high ? low : low + " to " + high;
}

// "2.0 ms to 4.0 ms per step, likely 2.5 ms"; "" where nothing is saved.
std::string saved_text(const advise::Gain& gain) {
  if (gain.high_ns <= 0) return "";
  const std::string low = advise::short_time(gain.low_ns);
  const std::string high = advise::short_time(gain.high_ns);
  const std::string likely = low == high ? "" : ", likely " + advise::short_time(gain.middle_ns());
  return range_text(low, high) + " per step" + likely;
}

// The lines that take the most of a step, one a line of text.
std::string lines_text(const advise::LargestLines& largest, const TextStyle& style) {
  if (largest.lines.empty()) return "";
  std::string out = painted(largest.on_device ? "Lines that take the most device time, as recorded"
                                              : "Lines that take the most of a step, as recorded",
                            kBold, style) +
                    "\n";
  for (const advise::Place& place : largest.lines) {
    const std::string ops = place.most_in.empty() ? "" : "  (" + visible_text(place.most_in) + ")";
    out += fmt::format("  {:>5}  {:>9}  {}{}\n", advise::short_percent(place.share), advise::short_time(place.ns),
                       visible_text(advise::place_name(place)), painted(ops, kDim, style));
  }
  return out;
}

std::string slice_name(const Model& model, const SliceRef& slice) {
  const StringId name = slice.on_device ? model.device_slices.name[slice.row] : model.host_slices.name[slice.row];
  return std::string(model.text(name));
}

std::string lowered(std::string text) {
  text[0] = 'n';
  return text;
}

// How many times as fast a step is that takes `saved_ns` less; at most 99.
double speedup(int64_t saved_ns, const advise::Finding& finding, const analyze::Study& study) {
  const int64_t step_ns = finding.of_step_ns == kNoNumber ? study.mean_step_ns() : finding.of_step_ns;
  const auto step = static_cast<double>(std::max<int64_t>(1, step_ns));
  return std::min(99.0, step / std::max(1.0, step - static_cast<double>(saved_ns)));
}

// "1.05x to 1.11x as fast"; "" where nothing is saved.
std::string speedup_text(const advise::Finding& finding, const analyze::Study& study) {
  if (finding.gain.high_ns <= 0) return "";
  // Where hardly anything would be left of a step, its inverse is no number to go by.
  constexpr double kMostSaid = 20;
  const auto times = [&](int64_t ns) { return fmt::format("{:.2f}x", speedup(ns, finding, study)); };
  const int64_t low_ns = finding.gain.low_ns;
  const int64_t high_ns = finding.gain.high_ns;
  const std::string range = speedup(low_ns, finding, study) > kMostSaid    ? fmt::format("more than {:.0f}x", kMostSaid)
                            : speedup(high_ns, finding, study) > kMostSaid ? times(low_ns) + " or more"
                                                                           : range_text(times(low_ns), times(high_ns));
  return range + " as fast";
}

void append_finding(std::string& out, const Model& model, const advise::Finding& finding, size_t number,
                    const analyze::Study& study, const TextStyle& style) {
  out += fmt::format("{}. {}\n", number, painted(visible_text(finding.title), kBold, style));
  if (const std::string gain = gain_text(finding, study); !gain.empty()) out += "   " + gain + "\n";
  out += "   try: " + finding.try_text + "\n";
  if (!finding.try_code.empty()) out += "        " + finding.try_code + "\n";
  if (!finding.places.empty()) out += "   at: " + visible_text(named_lines(finding.places)) + "\n";
  if (!finding.slices.empty()) {
    const SliceRef worst = finding.slices.front();
    const int64_t start =
        worst.on_device ? model.device_slices.start_ns[worst.row] : model.host_slices.start_ns[worst.row];
    const int64_t duration =
        worst.on_device ? model.device_slices.duration_ns[worst.row] : model.host_slices.duration_ns[worst.row];
    out += painted(fmt::format("   see: {}, {}{}", shorten_middle(visible_text(slice_name(model, worst)), 60),
                               place_text(start, duration), timeline_text(study)),
                   kDim, style) +
           "\n";
  } else if (!finding.ranges.empty()) {
    const analyze::Interval& range = finding.ranges.front();
    out += painted(fmt::format("   see: the timeline, {}{}", place_text(range.start_ns, range.end_ns - range.start_ns),
                               timeline_text(study)),
                   kDim, style) +
           "\n";
  }
  out += painted(fmt::format("   confidence: {}", advise::name_of(finding.confidence)), kDim, style) + "\n";
  if (!finding.confirm_by.empty()) out += painted("   to confirm: " + finding.confirm_by, kDim, style) + "\n";
  out += painted(fmt::format("   more: firelane explain {}", finding.id), kDim, style) + "\n";
}

std::string as_text(const StudiedTrace& trace, const TextStyle& style) {
  const auto& diagnosis = trace.get<advise::diagnose>();
  const auto& study = trace.get<analyze::study>();  // whose steps findings are about
  std::string out = painted(diagnosis.verdict.sentence(), kBold, style) + "\n\n";
  if (diagnosis.is_judged()) out += step_bars(advise::timed_trace(trace).get<analyze::study>(), style) + "\n";
  if (diagnosis.is_judged() && !diagnosis.lines.lines.empty()) out += lines_text(diagnosis.lines, style) + "\n";
  const bool says_why = !diagnosis.why.empty();
  if (says_why) out += painted(diagnosis.headline(), kBold, style) + ": " + diagnosis.why + ".\n";
  size_t number = 0;
  for (const advise::Finding& finding : diagnosis.findings) {
    if (number > 0 || says_why) out += "\n";
    append_finding(out, trace.model(), finding, ++number, study, style);
  }
  if (!diagnosis.notes.empty() && !diagnosis.nothing_to_say()) out += "\n";
  for (const std::string& note : diagnosis.notes) out += painted("note: " + note, kDim, style) + "\n";
  return out;
}

void write_evidence(JsonWriter& json, const Model& model, const advise::Finding& finding) {
  json.key("evidence").begin_object();
  json.field("event_count", finding.events);
  json.key("events").begin_array();
  for (const SliceRef& slice : finding.slices) {
    const auto start =
        slice.on_device ? model.device_slices.start_ns[slice.row] : model.host_slices.start_ns[slice.row];
    const auto duration =
        slice.on_device ? model.device_slices.duration_ns[slice.row] : model.host_slices.duration_ns[slice.row];
    json.begin_object()
        .field("table", slice.on_device ? "device_slices" : "host_slices")
        .field("row", slice.row)
        .field("name", slice_name(model, slice))
        .field("start_ns", start)
        .field("duration_ns", duration)
        .end_object();
  }
  json.end_array().key("ranges").begin_array();
  for (const analyze::Interval& range : finding.ranges) {
    json.begin_object().field("start_ns", range.start_ns).field("end_ns", range.end_ns).end_object();
  }
  json.end_array().end_object();
}

void write_places(JsonWriter& json, const std::vector<advise::Place>& places) {
  json.begin_array();
  for (const advise::Place& place : places) {
    json.begin_object().field("name", advise::place_name(place));
    json.field("line", place.line).field("called_from", place.called_from);
    json.key("callers").begin_array();
    for (const std::string& caller : place.callers) json.value(caller);
    json.end_array();
    json.field("time_ns", place.ns).field("share_percent", 100 * place.share).field("most_in", place.most_in);
    json.end_object();
  }
  json.end_array();
}

void write_finding(JsonWriter& json, const Model& model, const analyze::Study& study, const advise::Finding& finding) {
  json.begin_object()
      .field("id", finding.id)
      .field("title", finding.title)
      .field("cost_ns", finding.cost_ns)
      .field("share_of_step_percent", 100 * finding.share_of_step);
  json.key("gain")
      .begin_object()
      .field("low_ns", finding.gain.low_ns)
      .field("high_ns", finding.gain.high_ns)
      .field("likely_ns", finding.gain.middle_ns())
      .field("low_speedup", speedup(finding.gain.low_ns, finding, study))
      .field("high_speedup", speedup(finding.gain.high_ns, finding, study))
      .field("saves", saved_text(finding.gain))
      .field("speedup", speedup_text(finding, study))
      .end_object();
  write_evidence(json, model, finding);
  write_places(json.key("lines"), finding.places);
  json.field("at", named_lines(finding.places));
  json.key("try").begin_object().field("text", finding.try_text).field("code", finding.try_code).end_object();
  json.field("confidence", advise::name_of(finding.confidence)).field("confirm_by", finding.confirm_by).end_object();
}

}  // namespace

std::string named_lines(const std::vector<advise::Place>& places) {
  std::string out;
  for (const advise::Place& place : places) {
    out += (out.empty() ? "" : ", ") + advise::place_name(place) +
           (places.size() == 1 && place.share > 0.99 ? "" : " (" + advise::short_percent(place.share) + ")");
  }
  return out;
}

std::string place_text(int64_t start_ns, int64_t duration_ns) {
  if (duration_ns <= 1) return "at " + format_duration(start_ns);  // a moment
  return fmt::format("{} at {}", advise::short_time(duration_ns), format_duration(start_ns));
}

std::string_view timeline_text(const analyze::Study& study) {
  return study.recorded_steps == analyze::RecordedSteps::kFull ? ", in the full steps" : "";
}

std::string gain_text(const advise::Finding& finding, const analyze::Study& study) {
  const std::string saved = saved_text(finding.gain);
  return saved.empty() ? "" : "saves " + saved + ": " + speedup_text(finding, study);
}

std::string short_diagnosis(const StudiedTrace& trace, const ShortOptions& options) {
  const auto& diagnosis = trace.get<advise::diagnose>();
  const TextStyle& style = options.style;
  std::string out = painted(diagnosis.verdict.sentence(), kBold, style) + "\n";
  if (!diagnosis.why.empty()) out += lowered(diagnosis.headline()) + ": " + diagnosis.why + "\n";
  size_t number = 0;
  for (const advise::Finding& finding : diagnosis.findings) {
    if (number == options.max_findings) break;
    out += fmt::format("{}. {}\n   ", ++number, visible_text(finding.title));
    if (const std::string saved = saved_text(finding.gain); !saved.empty()) out += "saves " + saved + "; ";
    out += "try: " + finding.try_text + "\n";
    if (!finding.places.empty()) out += "   at: " + visible_text(named_lines(finding.places)) + "\n";
  }
  if (const size_t more = diagnosis.findings.size() - number; more > 0) {
    out += fmt::format("and {}\n", advise::counted(static_cast<int64_t>(more), "more finding", "more findings"));
  }
  return out;
}

void write_verdict_parts(JsonWriter& json, const advise::Diagnosis& diagnosis) {
  const advise::Verdict& verdict = diagnosis.verdict;
  json.field("state", advise::name_of(diagnosis.state))
      .field("limit", analyze::name_of(verdict.bound.limit))
      .field("label", verdict.label);
  json.field("reason", verdict.reason).field("meaning", verdict.meaning);
}

std::string diagnosis_json(const StudiedTrace& trace) {
  const auto& diagnosis = trace.get<advise::diagnose>();
  const auto& study = advise::timed_trace(trace).get<analyze::study>();
  const auto& full = trace.get<analyze::study>();  // whose steps findings are about
  JsonWriter json(2);
  json.begin_object().field("verdict", diagnosis.verdict.sentence());
  write_verdict_parts(json, diagnosis);
  json.field("empty", diagnosis.nothing_to_say()).field("healthy", diagnosis.healthy);
  json.field("headline", diagnosis.headline()).field("why", diagnosis.why);
  json.key("shares_of_critical_path_percent").begin_object();
  for (size_t i = 0; i < analyze::kLimitCount; ++i) {
    json.field(analyze::name_of(static_cast<analyze::Limit>(i)), 100 * study.bound.shares[i]);
  }
  json.end_object().field("device_busy_percent", 100 * study.bound.device_busy);
  json.key("step").begin_object();
  json.field("usual_ns", study.usual_step_ns)
      .field("usual_recorded_ns", study.usual_recorded_ns)
      .field("step_ns", study.mean_step_ns())
      .field("recorded_ns", study.undone.recorded_ns)
      .field("low_ns", study.undone.low_ns)
      .field("high_ns", study.undone.high_ns)
      .field("known_from", analyze::name_of(study.undone.source))
      .field("known_from_text", analyze::words_for(study.undone.source))
      .field("undecided", study.undone.undecided)
      .field("other_limit", study.undone.undecided ? analyze::name_of(study.other_limit) : "")
      .field("recorded_steps", analyze::name_of(study.recorded_steps))
      .field("judged_steps", study.steps.judged)
      .field("found_by", analyze::name_of(study.steps.source))
      .field("device_busy_ns", study.per_step(study.breakdown.total.busy_ns()))
      .field("device_busy_percent", 100 * advise::device_busy_share(study))
      .end_object();
  json.key("lines").begin_object().field("of", diagnosis.lines.on_device ? "device" : "host");
  write_places(json.key("largest"), diagnosis.lines.lines);
  json.end_object();
  json.key("findings").begin_array();
  for (const advise::Finding& finding : diagnosis.findings) write_finding(json, trace.model(), full, finding);
  json.end_array().key("notes").begin_array();
  for (const std::string& note : diagnosis.notes) json.value(note);
  json.end_array().end_object();
  return json.take() + "\n";
}

namespace {

Result<Report> make_findings(const StudiedTrace& trace, const Arguments&) {
  const auto& diagnosis = trace.get<advise::diagnose>();
  const auto& study = advise::timed_trace(trace).get<analyze::study>();
  Report report{.facts = {{"verdict", "Verdict", Kind::kText, diagnosis.verdict.sentence()},
                          {"limit", "Limit", Kind::kText, std::string(analyze::name_of(study.bound.limit))},
                          {"usual_ns", "Step", Kind::kDuration, study.usual_step_ns},
                          {"usual_recorded_ns", recorded_label(study), Kind::kDuration, study.usual_recorded_ns},
                          {"step_ns", "Step, on average", Kind::kDuration, study.mean_step_ns()},
                          {"recorded_ns", recorded_label(study), Kind::kDuration, study.undone.recorded_ns}}};
  if (study.recorded_steps != analyze::RecordedSteps::kAll) {
    report.facts.push_back(recorded_steps_fact(study.recorded_steps));
  }
  if (!diagnosis.why.empty()) {
    report.facts.push_back({"why", diagnosis.headline(), Kind::kText, diagnosis.why});
  }
  Table table = empty_findings({{"gain_likely_ns", "Likely", Kind::kDuration},
                                {"try", "Try"},
                                {"code", "Code"},
                                {"confidence", "Confidence"},
                                {"confirm_by", "To confirm"},
                                {"lines", "Lines", Kind::kText, Align::kByKind, 0, true}});
  for (const advise::Finding& finding : diagnosis.findings) {
    table.add({finding.id, finding.title, 100 * finding.share_of_step, finding.gain.low_ns, finding.gain.high_ns,
               finding.gain.middle_ns(), finding.try_text, finding.try_code,
               std::string(advise::name_of(finding.confidence)), finding.confirm_by,
               finding.places.empty() ? Cell{} : Cell{named_lines(finding.places)}});
  }
  report.tables = {std::move(table)};
  report.notes.assign(diagnosis.notes.begin(), diagnosis.notes.end());
  return report;
}

std::string diagnosis_text(const StudiedTrace& trace, const Arguments& wanted, const TextStyle& style) {
  return wanted.flag("short") ? short_diagnosis(trace, {.style = style}) : as_text(trace, style);
}

}  // namespace

ReportSpec diagnose_report() {
  Parameter brief = Parameter::flag("short", "text: the verdict, and two lines for each of the first findings");
  brief.text_only = true;
  return {.name = "diagnose",
          .title = "Findings",
          .sentence = "Find what limits the program, what to change, and how much that would gain.",
          .examples = {"firelane diagnose trace.json.gz", "firelane diagnose trace.json.gz --json -o diagnosis.json"},
          .parameters = {std::move(brief)},
          .tables = {{"findings"}},
          .make = make_findings,
          .text = diagnosis_text,
          .json = diagnosis_json,
          .needs_times = false};
}

}  // namespace firelane::report
