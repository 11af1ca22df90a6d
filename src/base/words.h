// Words that users give: lists of names, and numbers among them.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace firelane {

inline bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "sm__cycles_active.avg, dram__bytes.sum" one by one, without the spaces around them; empty ones are left out.
inline std::vector<std::string_view> names_in(std::string_view list) {
  std::vector<std::string_view> names;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    std::string_view name = list.substr(begin, end - begin);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty()) names.push_back(name);
    begin = end + 1;
  }
  return names;
}

}  // namespace firelane
