// The names of copies and memsets: "Memcpy HtoD (Pageable -> Device)", "Memset (Device)".
//
// Kineto writes them, and says nowhere else which way a copy goes; ours are written the same way, because that is what
// people search for.
#pragma once

#include <string>
#include <string_view>

#include "model/model.h"

namespace firelane {

// Unknown where the name does not say so.
CopyKinds read_copy_name(std::string_view name);

std::string copy_name(const CopyKinds& kinds);
std::string memset_name(MemoryKind memory);

}  // namespace firelane
