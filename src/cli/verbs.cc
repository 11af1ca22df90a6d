#include "cli/verbs.h"

namespace firelane::cli {

const std::vector<Verb>& all_verbs() {
  // clang-format off: one a line, so that two people can add one each
  static const std::vector<Verb> verbs = {
      record_verb(),
      info_verb(),
      diagnose_verb(),
      view_verb(),
      explain_verb(),
      report_verb(),
      breakdown_verb(),
      idle_verb(),
      launches_verb(),
      syncs_verb(),
      critical_path_verb(),
      whatif_verb(),
      ops_verb(),
      kernels_verb(),
      steps_verb(),
      lanes_verb(),
      fusion_verb(),
      modules_verb(),
      memory_verb(),
      input_verb(),
      inference_verb(),
      cost_verb(),
      dump_verb(),
      export_verb(),
      sql_verb(),
      completion_verb(),
  };
  // clang-format on
  return verbs;
}

}  // namespace firelane::cli
