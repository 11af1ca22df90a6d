// firelane critical-path FILE
#include "cli/study_verb.h"
#include "report/study_reports.h"

namespace firelane::cli {

Verb critical_path_verb() {
  return {.name = "critical-path",
          .sentence = "The chain of dependencies that decides how long a step takes.",
          .examples = {"firelane critical-path trace.json.gz", "firelane critical-path trace.json.gz --json"},
          .setup = setup_study_verb<[](const Model& model, const analyze::Study& study, bool for_people) {
            return report::critical_path_report(model, study, for_people ? 20 : 0);
          }>};
}

}  // namespace firelane::cli
