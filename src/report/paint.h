// Bold and dim text for terminals, where the user has colors.
#pragma once

#include <string>
#include <string_view>

#include "report/table.h"

namespace firelane::report {

inline constexpr std::string_view kBold = "\x1b[1m";
inline constexpr std::string_view kDim = "\x1b[2m";
inline constexpr std::string_view kCyan = "\x1b[36m";

inline std::string painted(std::string_view text, std::string_view paint, const TextStyle& style) {
  return style.color ? std::string(paint) + std::string(text) + "\x1b[0m" : std::string(text);
}

}  // namespace firelane::report
