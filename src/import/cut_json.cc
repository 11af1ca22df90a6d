#include "import/cut_json.h"

#include <algorithm>
#include <vector>

namespace firelane::importer {

namespace {

constexpr size_t kMostDepth = 1000;

struct Open {
  char bracket;
  size_t whole_end;       // up to here, its items are whole
  bool has_list = false;  // inside of it, at any depth
};

}  // namespace

bool close_cut_json(std::string& text) {
  std::vector<Open> open;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
      continue;
    }
    switch (c) {
      case '"': in_string = true; break;
      case '{':
      case '[':
        if (open.size() == kMostDepth) return false;
        if (c == '[') {
          for (Open& around : open) around.has_list = true;
        }
        open.push_back({.bracket = c, .whole_end = i + 1});
        break;
      case '}':
      case ']':
        if (open.empty()) return false;
        open.pop_back();
        if (!open.empty()) open.back().whole_end = i + 1;
        break;
      case ',':
        if (!open.empty()) open.back().whole_end = i;
        break;
      default: break;
    }
  }
  if (open.empty()) return false;
  const auto is_list = [&](size_t depth) { return open[depth].bracket == '['; };
  // Outward, until something is worth keeping as far as it goes.
  const size_t lists = static_cast<size_t>(
      std::count_if(open.begin(), open.end(), [](const Open& each) { return each.bracket == '['; }));
  for (size_t lists_left = lists; lists_left > 0;) {
    const size_t last = open.size() - 1;
    const bool is_kept = is_list(last) ? last == 0 || !is_list(last - 1) : open[last].has_list;
    if (is_kept) break;
    if (is_list(last)) --lists_left;
    open.pop_back();
  }
  text.resize(open.back().whole_end);
  for (size_t depth = open.size(); depth-- > 0;) text += is_list(depth) ? ']' : '}';
  return true;
}

}  // namespace firelane::importer
