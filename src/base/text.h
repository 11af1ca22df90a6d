// Small questions about texts that the standard library answers from C++23 on.
#pragma once

#include <string_view>

namespace firelane {

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace firelane
