// firelane launches FILE
#include "cli/study_verb.h"
#include "report/study_reports.h"

namespace firelane::cli {

Verb launches_verb() {
  return {.name = "launches",
          .sentence = "What launches cost, how long work waits for the device, how deep the queue is.",
          .examples = {"firelane launches trace.json.gz", "firelane launches trace.json.gz --csv"},
          .setup = setup_study_verb<[](const Model& model, const analyze::Study& study, bool) {
            return report::launches_report(model, study);
          }>};
}

}  // namespace firelane::cli
