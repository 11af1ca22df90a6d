#include "cli/verbs.h"

namespace firelane::cli {

const std::vector<Verb>& all_verbs() {
  static const std::vector<Verb> verbs = {
      info_verb(),
      ops_verb(),
      kernels_verb(),
      steps_verb(),
      lanes_verb(),
      dump_verb(),
      completion_verb(),
  };
  return verbs;
}

}  // namespace firelane::cli
