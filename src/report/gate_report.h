// A gate's answer: text, JSON, Markdown for a CI job's summary, and JUnit XML for those who show test results.
#pragma once

#include <string>

#include "compare/gate/gate.h"
#include "report/table.h"

namespace firelane::report {

// "does not hold: Step 6.1% worse, at most 3% is allowed"
std::string gate_headline(const compare::GateResult& result);
// With why it is slower, when it does not hold. Markdown stays far below the 1 MiB of a step summary.
std::string gate_text(const compare::GateResult& result, Form form, const TextStyle& style = {});
std::string gate_junit(const compare::GateResult& result);

}  // namespace firelane::report
