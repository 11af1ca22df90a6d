#include "advise/rule.h"

namespace firelane {

std::vector<Rule> host_rules() { return {}; }

}  // namespace firelane
