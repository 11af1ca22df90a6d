// Numbers in the sentences of findings.
#pragma once

#include "base/short_text.h"

namespace firelane::advise {

using firelane::counted;
using firelane::short_bytes;
using firelane::short_percent;
using firelane::short_time;

}  // namespace firelane::advise
