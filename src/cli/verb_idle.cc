// firelane idle FILE
#include "cli/study_verb.h"
#include "report/study_reports.h"

namespace firelane::cli {

Verb idle_verb() {
  return {.name = "idle",
          .sentence = "Why the device did nothing: the cause of every gap.",
          .examples = {"firelane idle trace.json.gz", "firelane idle trace.json.gz --json"},
          .setup = setup_study_verb<[](const Model& model, const analyze::Study& study, bool for_people) {
            return report::idle_report(model, study, for_people ? 15 : 0);
          }>};
}

}  // namespace firelane::cli
