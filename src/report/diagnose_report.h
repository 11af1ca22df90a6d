// The verdict and its findings: for people with bars, for programs as one JSON object.
#pragma once

#include <string>

#include "advise/diagnose.h"
#include "model/model.h"
#include "report/table.h"

namespace firelane::report {

// Ends with a line break, in every form. JSON: the object that docs/analyses.md describes under "diagnose".
std::string diagnosis(const Model& model, const Diagnosis& diagnosis, Form form, const TextStyle& style = {});

// One row per finding, without evidence: for Markdown, CSV and Python.
Report findings_report(const Diagnosis& diagnosis);

// A bar of `width` places for a share of 0..1.
std::string bar(double share, size_t width, const TextStyle& style);

}  // namespace firelane::report
