// Finds its way through JSON text that may be broken: where a value ends, where one event
// may end and the next begin, and what can be mended in place. No parsing: that is
// simdjson's work, on text that these functions have delimited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace firelane::importer {

inline constexpr size_t kNotFound = SIZE_MAX;

// The first place at or after `at` that is not white space.
size_t skip_space(std::string_view text, size_t at);

// The place after the value that begins at `at` (object, array, string or scalar), or
// kNotFound when it is not closed within the text. Brackets are matched by depth alone;
// strings are respected. Linear, no recursion.
size_t value_end(std::string_view text, size_t at);

// The place of the last comma in `text` that looks like one between two events: "} , {".
// A guess: it may lie inside a string or a nested list. Whoever cuts there checks that
// the part before it is whole. kNotFound if there is none.
size_t last_event_comma(std::string_view text);

// Where, at or after `from`, the next event may begin: a "{" behind a comma. A guess, to find
// back after a broken event. kNotFound if there is none.
size_t next_event_start(std::string_view text, size_t from);

struct Repairs {
  uint64_t characters = 0;  // control characters (to a space) and invalid UTF-8 (to ?) in strings
  uint64_t numbers = 0;     // NaN and Infinity (to an empty string)
};

// Mends text in place, without changing its length. REQUIRES: it begins outside of a string.
Repairs repair_text(char* text, size_t size);

}  // namespace firelane::importer
