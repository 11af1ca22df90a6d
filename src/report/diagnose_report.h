// The verdict and its findings: for people with bars, for programs as one JSON object.
#pragma once

#include <cstddef>
#include <string>

#include "advise/diagnose.h"
#include "model/model.h"
#include "report/table.h"

namespace firelane::report {

// Ends with a line break, in every form. JSON: the object that docs/analyses.md describes under "diagnose".
std::string diagnosis(const Model& model, const Diagnosis& diagnosis, Form form, const TextStyle& style = {});

// The verdict and the findings with the most gain, two lines each: for the end of a recording.
struct ShortOptions {
  size_t max_findings = 3;
  TextStyle style;
};
std::string short_diagnosis(const Diagnosis& diagnosis, const ShortOptions& options = {});

// One row per finding, without evidence: for Markdown, CSV and Python.
Report findings_report(const Diagnosis& diagnosis);

// A bar of `width` places for a share of 0..1.
std::string bar(double share, size_t width, const TextStyle& style);

}  // namespace firelane::report
