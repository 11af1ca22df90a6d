#include "advise/rule.h"

namespace firelane {

std::vector<Rule> training_rules() { return {}; }

}  // namespace firelane
