// A verb for each report of report/registry.h: its flags are the report's parameters.
#pragma once

#include "cli/verbs.h"
#include "report/registry.h"

namespace firelane::cli {

Verb verb_of(const report::ReportSpec& spec);

}  // namespace firelane::cli
