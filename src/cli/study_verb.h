// What the verbs that only print a report of the Study share: their flags, and from file to answer.
//
//   .setup = setup_study_verb<[](const Model& model, const Study& study, bool) { return launches_report(model, study);
//   }>
#pragma once

#include <memory>
#include <string>

#include "analyze/verdict/study.h"
#include "cli/flags.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace firelane::cli {

// kReport: (model, study, for_people) -> report::Report.
template <auto kReport>
VerbBody setup_study_verb(Flags& flags) {
  struct Args {
    std::string path;
    OutputOptions options;
  };
  auto args = std::make_shared<Args>();
  add_trace_argument(flags, args->path);
  add_report_options(flags, args->options);
  return [args]() -> Result<int> {
    FL_TRY(Output output, Output::open(args->options));
    FL_TRY(const auto trace, open_trace(args->path));
    FL_TRY_VOID(output.print(kReport(trace->model(), trace->template get<analyze::study>(), output.for_people())));
    FL_TRY_VOID(output.close());
    return kExitOk;
  };
}

}  // namespace firelane::cli
