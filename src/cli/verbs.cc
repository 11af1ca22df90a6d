#include "cli/verbs.h"

#include "cli/report_verb.h"
#include "report/registry.h"

namespace firelane::cli {

const std::vector<Verb>& all_verbs() {
  static const std::vector<Verb> verbs = [] {
    std::vector<Verb> all = {record_verb(),  attach_verb(), sample_verb(), view_verb(),    report_verb(),
                             explain_verb(), verify_verb(), why_verb(),    trigger_verb(), daemon_verb(),
                             compare_verb(), ranks_verb(),  hangs_verb(),  gate_verb(),    baseline_verb(),
                             bench_verb(),   sweep_verb(),  tune_verb()};
    for (const report::ReportSpec& spec : report::all_reports()) all.push_back(verb_of(spec));
    for (const Verb& verb :
         {dump_verb(), export_verb(), convert_verb(), sql_verb(), completion_verb(), build_recorder_verb()})
      all.push_back(verb);
    return all;
  }();
  return verbs;
}

}  // namespace firelane::cli
