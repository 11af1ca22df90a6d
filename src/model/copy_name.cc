#include "model/copy_name.h"

#include <algorithm>
#include <iterator>

namespace firelane {

namespace {

template <IsKind Kind>
Kind kind_named(std::string_view word) {
  const auto words = words_of(Kind{});
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() ? Kind{} : static_cast<Kind>(found - words.begin());
}

template <IsKind Kind>
std::string_view word_or_unknown(Kind kind) {
  return kind == Kind{} ? "Unknown" : name_of(kind);
}

}  // namespace

CopyKinds read_copy_name(std::string_view name) {
  CopyKinds kinds;
  const size_t open = name.find('(');
  const std::string_view head = name.substr(0, open);
  if (const size_t space = head.find(' '); space != std::string_view::npos) {
    const std::string_view word = head.substr(space + 1);
    kinds.direction = kind_named<CopyDirection>(word.substr(0, word.find(' ')));
  }
  if (open == std::string_view::npos) return kinds;
  const std::string_view memory = name.substr(open + 1, name.find(')') - open - 1);
  const size_t arrow = memory.find(" -> ");
  if (arrow == std::string_view::npos) {
    kinds.target = kind_named<MemoryKind>(memory);
  } else {
    kinds.source = kind_named<MemoryKind>(memory.substr(0, arrow));
    kinds.target = kind_named<MemoryKind>(memory.substr(arrow + 4));
  }
  return kinds;
}

std::string copy_name(const CopyKinds& kinds) {
  std::string name = "Memcpy ";
  name.append(word_or_unknown(kinds.direction)).append(" (").append(word_or_unknown(kinds.source));
  return name.append(" -> ").append(word_or_unknown(kinds.target)).append(")");
}

std::string memset_name(MemoryKind memory) { return "Memset (" + std::string(word_or_unknown(memory)) + ")"; }

}  // namespace firelane
