#include "advise/rule.h"

namespace firelane {

std::vector<Rule> input_rules() { return {}; }

}  // namespace firelane
