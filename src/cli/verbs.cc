#include "cli/verbs.h"

namespace firelane::cli {

const std::vector<Verb>& all_verbs() {
  static const std::vector<Verb> verbs = {
      ops_verb(),
      completion_verb(),
  };
  return verbs;
}

}  // namespace firelane::cli
