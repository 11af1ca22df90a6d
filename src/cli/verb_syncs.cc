// firelane syncs FILE
#include "cli/study_verb.h"
#include "report/study_reports.h"

namespace firelane::cli {

Verb syncs_verb() {
  return {.name = "syncs",
          .sentence = "Every call that waited for the device: how long, and who asked.",
          .examples = {"firelane syncs trace.json.gz", "firelane syncs trace.json.gz --csv -o syncs.csv"},
          .setup = setup_study_verb<[](const Model& model, const analyze::Study& study, bool) {
            return report::syncs_report(model, study);
          }>};
}

}  // namespace firelane::cli
