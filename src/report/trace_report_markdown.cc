// The document of report/trace_report.h as Markdown.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "advise/diagnose.h"
#include "advise/light_note.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "base/visible_text.h"
#include "report/diagnose_report.h"
#include "report/render.h"
#include "report/step_parts.h"
#include "report/trace_report.h"

namespace firelane::report {

namespace {

// A rule's explanation: its own line breaks stay.
std::string escaped_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += markdown_escaped(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string time_text(const Model& model, const SliceRef& slice) {
  const auto& device = model.device_slices;
  const auto& host = model.host_slices;
  const int64_t start = slice.on_device ? device.start_ns[slice.row] : host.start_ns[slice.row];
  const int64_t duration = slice.on_device ? device.duration_ns[slice.row] : host.duration_ns[slice.row];
  return place_text(start, duration);
}

void append_evidence(std::string& out, const Model& model, const advise::Finding& finding,
                     const analyze::Study& study) {
  constexpr size_t kShown = 3;
  if (finding.events == 0 && finding.slices.empty() && finding.ranges.empty()) return;
  out += "- **Evidence**:";
  std::string_view before = " ";
  if (finding.events > 0)
    out += std::string(std::exchange(before, "; ")) + advise::counted(finding.events, "event", "events");
  for (size_t i = 0; i < std::min(kShown, finding.slices.size()); ++i) {
    const SliceRef& slice = finding.slices[i];
    const StringId name = slice.on_device ? model.device_slices.name[slice.row] : model.host_slices.name[slice.row];
    out += fmt::format("{}{} ({})", std::exchange(before, "; "),
                       markdown_escaped(shorten_middle(visible_text(model.text(name)), kPageWidth)),
                       time_text(model, slice));
  }
  for (size_t i = 0; i < std::min(kShown, finding.ranges.size()); ++i) {
    const analyze::Interval& range = finding.ranges[i];
    out += std::string(std::exchange(before, "; ")) + place_text(range.start_ns, range.end_ns - range.start_ns);
  }
  if (!finding.slices.empty() || !finding.ranges.empty()) out += timeline_text(study);
  out += "\n";
}

void append_finding(std::string& out, const Model& model, const advise::Finding& finding, size_t number,
                    const analyze::Study& study) {
  out += fmt::format("\n### {}. {}\n\n", number, markdown_escaped(finding.title));
  if (const std::string gain = gain_text(finding, study); !gain.empty()) out += "- **Gain**: " + gain + "\n";
  out += "- **Try**: " + markdown_escaped(finding.try_text) + "\n";
  if (!finding.places.empty()) out += "- **At**: " + markdown_escaped(named_lines(finding.places)) + "\n";
  append_evidence(out, model, finding, study);
  out += fmt::format("- **Confidence**: {}", advise::name_of(finding.confidence));
  if (!finding.confirm_by.empty()) out += "; to confirm: " + markdown_escaped(finding.confirm_by);
  out += "\n";
  if (!finding.try_code.empty()) out += "\n```python\n" + finding.try_code + "\n```\n";
  if (const advise::Rule* rule = advise::find_rule(finding.id)) out += "\n" + escaped_lines(rule->explanation);
}

}  // namespace

std::string markdown(const StudiedTrace& trace, const TraceReport& report) {
  const auto& diagnosis = trace.get<advise::diagnose>();
  const auto& study = trace.get<analyze::study>();
  std::string out =
      "# " + markdown_escaped(report.name) + "\n\n**" + markdown_escaped(diagnosis.verdict.sentence()) + "**\n\n";
  if (diagnosis.is_judged())
    out += "```\n" + step_bars(advise::timed_trace(trace).get<analyze::study>()) + "```\n\n## Findings\n";
  if (!diagnosis.why.empty()) out += "\n" + diagnosis.headline() + ": " + markdown_escaped(diagnosis.why) + ".\n";
  size_t number = 0;
  for (const advise::Finding& finding : diagnosis.findings) {
    append_finding(out, trace.model(), finding, ++number, study);
  }
  for (const std::string& note : diagnosis.notes) out += "\n> " + markdown_escaped(note) + "\n";
  for (const Report& section : report.sections) out += "\n" + render(section, Form::kMarkdown);
  return out;
}

}  // namespace firelane::report
