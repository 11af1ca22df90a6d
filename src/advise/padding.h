// A note on padding that a trace suggests but cannot prove.
#pragma once

#include <string>

#include "advise/context.h"

namespace firelane::advise {

// Samples that may have come padded, by a token embedding with a padding_idx or attention with a mask for each sample:
// shapes do not tell how much of them is padding. "" where nothing points to it.
std::string unseen_padding(const Context& context);

}  // namespace firelane::advise
