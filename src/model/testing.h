// A table that no model has, and the same table with one more line for each new column: what tests of all that is made
// from a list share. Nothing but the list knows the new columns.
#pragma once

#include <cstdint>

#include "model/model.h"
#include "model/table.h"

namespace firelane {

enum class Mood : uint8_t { kUnknown, kGood, kBad };
FL_WORDS(Mood, kBad, "", "good", "bad")

#define FL_PLAIN(WIDE, READ, MADE)                \
  WIDE(int64_t, start_ns, kStart, "begin")        \
  WIDE(int64_t, duration_ns, kDuration, "length") \
  READ(StringId, name, kFull, "of the thing")     \
  MADE(Row, parent, kMaybe, "things.id")

// The same table with more columns: one line each.
#define FL_WIDER(WIDE, READ, MADE)               \
  FL_PLAIN(WIDE, READ, MADE)                     \
  READ(StringId, color, kMaybe, "red, green")    \
  READ(Mood, mood, kMaybe, "good or bad")        \
  READ(CommRow, comm, kMaybe, "comm_details.id") \
  WIDE(int64_t, weight_bytes, kMaybeSize, "in bytes")

struct RawPlain {
  FL_RAW_ROW(FL_PLAIN)
};
struct RawThing {
  FL_RAW_ROW(FL_WIDER)
};
struct Things {
  FL_COLUMNS(RawThing, FL_WIDER)
};
inline FL_DEFINE_COLUMNS(Things, FL_WIDER);

inline const RawThing kThing{.start_ns = 5,
                             .duration_ns = 7,
                             .weight_bytes = 100,
                             .name = StringId{1},
                             .color = StringId{2},
                             .mood = Mood::kBad,
                             .comm = 3};

inline Things one_thing(const RawThing& row) {
  Things things;
  things.resize(1);
  things.set(0, row, [](const auto& value) { return value; });
  return things;
}

// The words that kThing speaks of, and a third one.
inline Model with_words() {
  Model model;
  model.strings.intern("thing");
  model.strings.intern("red");
  model.strings.intern("green");
  return model;
}

// A table of one thing, as the model's own are listed: `a`'s in the model that is given first, else `b`'s.
struct ShownThings {
  const Things* a = nullptr;
  const Things* b = nullptr;
  const Model* model_a = nullptr;
};
inline ShownThings shown_things;  // a TableInfo has plain functions, which find their table here
inline TableInfo things_info() {
  return {"things", "of the test", Things::columns(), [](const Model&) { return size_t{1}; },
          [](const Model& m) -> const void* { return &m == shown_things.model_a ? shown_things.a : shown_things.b; }};
}
// Of the one thing above, in every model.
inline TableInfo one_thing_info() {
  static const Things kThings = one_thing(kThing);
  shown_things = {.a = &kThings, .b = &kThings};
  return things_info();
}

}  // namespace firelane
