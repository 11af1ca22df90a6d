// One line in a list is a column everywhere: in the raw row, the table, merging, the catalog and comparisons. What is
// made from them higher up has a test of the same name there: SQL, CSV, Arrow and dump.
#include "model/table.h"

#include <gtest/gtest.h>

#include "model/assemble.h"
#include "model/catalog.h"
#include "model/renumber.h"
#include "model/same.h"
#include "model/testing.h"

namespace firelane {

namespace {

TEST(Table, a_new_column_is_in_the_raw_row_and_absent_until_a_reader_fills_it) {
  const RawThing blank;
  EXPECT_EQ(blank.color, kNoString);
  EXPECT_EQ(blank.weight_bytes, kNoNumber);
  EXPECT_EQ(blank.mood, Mood::kUnknown);
  EXPECT_EQ(RawPlain::kSizeCount, 0U);
  EXPECT_EQ(RawThing::kSizeCount, 1U);
  EXPECT_TRUE(RawPlain::kIsTimed && RawThing::kIsTimed);
}

TEST(Table, a_new_column_is_copied_with_its_row) {
  const Things things = one_thing(kThing);
  EXPECT_EQ(things.color[0], StringId{2});
  EXPECT_EQ(things.mood[0], Mood::kBad);
  EXPECT_EQ(things.weight_bytes[0], 100);
  EXPECT_EQ(things.parent[0], kNoRow);
}

TEST(Table, texts_and_rows_of_a_new_column_are_renumbered_when_parts_are_merged) {
  RawVector<RawThing> rows;
  rows.push_back(kThing);
  rows.emplace_back();
  PoolMap map;
  map.strings = {kNoString, StringId{7}, StringId{9}};
  PartBase base;
  base.comm_details = 40;
  renumber(rows, map, base);
  EXPECT_EQ(rows[0].name, StringId{7});
  EXPECT_EQ(rows[0].color, StringId{9});
  EXPECT_EQ(rows[0].comm, Row{43});
  EXPECT_EQ(rows[1].color, kNoString);
  EXPECT_EQ(rows[1].comm, kNoRow);
}

TEST(Table, a_new_column_is_in_the_catalog_that_sql_csv_arrow_and_dump_are_made_from) {
  const Model model = with_words();
  const Things things = one_thing(kThing);
  shown_things = {.a = &things, .b = nullptr, .model_a = &model};
  const TableInfo info = things_info();
  const CatalogTable table = catalog_table(info);
  std::string row;
  for (const CatalogColumn& column : table.columns) {
    const Cell cell = column.cell(model, 0);
    row += column.name + "=" +
           (cell.kind == Cell::Kind::kText      ? std::string(cell.text)
            : cell.kind == Cell::Kind::kInteger ? std::to_string(cell.integer)
                                                : "-");
    row += " ";
  }
  EXPECT_EQ(row,
            "id=0 start_ns=5 duration_ns=7 end_ns=12 name=thing parent=- color=red mood=bad comm=3 weight_bytes=100 ");
}

TEST(Table, a_new_column_is_compared) {
  const Model a = with_words();
  const Model b = with_words();
  RawThing changed = kThing;
  changed.color = StringId{3};
  const Things things = one_thing(kThing);
  const Things same = one_thing(kThing);
  const Things other = one_thing(changed);
  shown_things = {.a = &things, .b = &same, .model_a = &a};
  EXPECT_EQ(first_difference(a, b, things_info()), std::nullopt);
  shown_things.b = &other;
  EXPECT_EQ(first_difference(a, b, things_info()), "things.color[0]: red / green");
}

// ---- the tables of the model ------------------------------------------------------------

// Fills all texts of a row with one that the pool of another part does not know under this number.
template <typename RawRow>
void fill_texts(RawVector<RawRow>& rows, StringId text) {
  RawRow& row = rows.emplace_back();
  RawRow::each_field(row, [&]<typename T>(auto, T& value) {
    if constexpr (std::is_same_v<T, StringId>) value = text;
  });
}

TEST(Table, every_text_of_every_table_survives_the_merging_of_two_parts) {
  RawTrace raw;
  raw.pools.resize(2);
  raw.pools[0].strings.intern("a text of the first part");
  raw.pools[0].lane({.number = 1}, {.number = 1});
  raw.pools[1].lane({.number = 1}, {.number = 1});
  const StringId text = raw.pools[1].strings.intern("a text of the second part");
  raw.parts.resize(2);
  raw.parts[1].pool = 1;
  raw.parts[1].each_table([&](auto& rows) { fill_texts(rows, text); });
  Model model;
  merge_pools(raw, model, 1);
  size_t texts = 0;
  raw.parts[1].each_table([&]<typename RawRow>(RawVector<RawRow>& rows) {
    RawRow::each_field(rows[0], [&]<typename T>(auto, T& value) {
      if constexpr (std::is_same_v<T, StringId>) {
        EXPECT_EQ(model.text(value), "a text of the second part");
        ++texts;
      }
    });
  });
  EXPECT_GT(texts, 30U);
}

}  // namespace

}  // namespace firelane
