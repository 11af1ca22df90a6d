// What tests of rules share.
#pragma once

#include <algorithm>
#include <string_view>

#include "advise/diagnose.h"

namespace firelane::advise {

// The finding of that rule; null when there is none.
inline const Finding* find(const Diagnosis& diagnosis, std::string_view id) {
  const auto found = std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                                  [&](const Finding& finding) { return finding.id == id; });
  return found == diagnosis.findings.end() ? nullptr : &*found;
}

}  // namespace firelane::advise
