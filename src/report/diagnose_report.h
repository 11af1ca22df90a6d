// The verdict and its findings in forms that are not a table; `firelane diagnose` is in the registry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "advise/diagnose.h"
#include "advise/finding.h"
#include "analyze/verdict/study.h"
#include "base/json_writer.h"
#include "report/table.h"
#include "traces/studied_trace.h"

namespace firelane::report {

// Fields of an object: state, limit, label, reason and meaning, the same wherever a verdict is JSON.
void write_verdict_parts(JsonWriter& json, const advise::Diagnosis& diagnosis);

// The object that docs/cli.md describes under "diagnose"; ends with a line break.
std::string diagnosis_json(const StudiedTrace& trace);

// The verdict and the findings with the most gain, two lines each: for the end of a recording.
struct ShortOptions {
  size_t max_findings = 3;
  TextStyle style{};
};
std::string short_diagnosis(const StudiedTrace& trace, const ShortOptions& options = {});

// "saves 2.0 ms to 4.0 ms of a step: 1.05x to 1.11x as fast"; "" for findings that save no time by themselves.
std::string gain_text(const advise::Finding& finding, const analyze::Study& study);

// "model.py(41): forward (62%), model.py(57): loss (30%)".
std::string named_lines(const std::vector<advise::Place>& places);

// Where to look in the timeline: "3.8 ms at 44.812 ms".
std::string place_text(int64_t start_ns, int64_t duration_ns);
// ", in the full steps": of a recording with two timelines, the one in which places of findings are; else "".
std::string_view timeline_text(const analyze::Study& study);

}  // namespace firelane::report
