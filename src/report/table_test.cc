// The four forms of one table, and what hostile names may not do in each.
#include "report/table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "report/quantity.h"

namespace firelane::report {
namespace {

Table two_rows() {
  Table table{.name = "steps",
              .title = "Steps",
              .columns = {{"name", "Name", Kind::kText},
                          {"duration_ns", "Duration", Kind::kDuration},
                          {"share_percent", "Share", Kind::kPercent},
                          {"memory_bytes", "Memory", Kind::kBytes, Align::kByKind, 0, true}},
              .notes = {"one step was cut"}};
  table.add({"first", int64_t{1500}, 75.0, {}});
  table.add({"second, \"quoted\"", int64_t{500}, 25.0, {}});
  return table;
}

TEST(Table, text_aligns_columns_and_hides_empty_ones) {
  EXPECT_EQ(render(two_rows(), Form::kText),
            "Steps\n"
            "Name              Duration   Share\n"
            "----------------  --------  ------\n"
            "first             1.500 us  75.00%\n"
            "second, \"quoted\"    500 ns  25.00%\n"
            "note: one step was cut\n");
}

TEST(Table, numbers_beyond_every_integer_are_the_largest) {
  EXPECT_EQ(cell_text(4.3e24, Kind::kDuration), "9200000000.000 s");
  EXPECT_EQ(cell_text(-4.3e24, Kind::kBytes), "-8171.24 PiB");
  EXPECT_EQ(cell_text(std::nan(""), Kind::kDuration), "0 ns");
}

TEST(Table, markdown_is_a_table_with_alignment) {
  EXPECT_EQ(render(two_rows(), Form::kMarkdown),
            "### Steps\n\n"
            "| Name | Duration | Share |\n"
            "| --- | ---: | ---: |\n"
            "| first | 1.500 us | 75.00% |\n"
            "| second, \"quoted\" | 500 ns | 25.00% |\n"
            "\n> one step was cut\n");
}

TEST(Table, csv_quotes_by_rfc_4180_and_keeps_every_column) {
  EXPECT_EQ(render(two_rows(), Form::kCsv),
            "name,duration_ns,share_percent,memory_bytes\n"
            "first,1500,75,\n"
            "\"second, \"\"quoted\"\"\",500,25,\n");
}

TEST(Table, json_has_rows_as_objects_and_null_for_unknown) {
  EXPECT_EQ(render(two_rows(), Form::kJson),
            "{\n"
            "  \"steps\": [\n"
            "    {\"name\":\"first\",\"duration_ns\":1500,\"share_percent\":75,\"memory_bytes\":null},\n"
            "    {\"name\":\"second, \\\"quoted\\\"\",\"duration_ns\":500,\"share_percent\":25,\"memory_bytes\":null}\n"
            "  ],\n"
            "  \"notes\": [\n"
            "    \"one step was cut\"\n"
            "  ]\n"
            "}\n");
}

TEST(Report, facts_stand_before_tables_in_every_form) {
  Report report{.title = "Trace",
                .facts = {{"device_count", "Devices", Kind::kNumber, int64_t{2}},
                          {"shapes", "Shapes", Kind::kTruth, int64_t{0}}}};
  EXPECT_EQ(render(report, Form::kText), "Trace\nDevices  2\nShapes   no\n");
  EXPECT_EQ(render(report, Form::kMarkdown), "## Trace\n\n- **Devices**: 2\n- **Shapes**: no\n");
  EXPECT_EQ(render(report, Form::kCsv), "table,row,field,value\n,,device_count,2\n,,shapes,0\n");
  EXPECT_EQ(render(report, Form::kJson), "{\n  \"device_count\": 2,\n  \"shapes\": false,\n  \"notes\": []\n}\n");
}

TEST(Table, a_name_cannot_drive_the_terminal_or_forge_a_row) {
  Table table{.columns = {{"name", "Name"}}};
  table.add({"a\nb\x1b[31m\xff"});
  EXPECT_EQ(render(table, Form::kText), "Name\n----------------\na\\nb\\x1b[31m\\xff\n");
  Table markup{.columns = {{"name", "Name"}}};
  markup.add({"a|b<T>*"});
  EXPECT_EQ(render(markup, Form::kMarkdown), "| Name |\n| --- |\n| a\\|b&lt;T&gt;\\* |\n");
}

TEST(Table, long_cells_lose_their_middle_unless_wide) {
  Table table{.columns = {{"name", "Name", Kind::kText, Align::kByKind, 7}}};
  table.add({"abcdefghij"});
  EXPECT_EQ(render(table, Form::kText), "Name\n-------\nabcd…ij\n");
  EXPECT_EQ(render(table, Form::kText, {.wide = true}), "Name\n----------\nabcdefghij\n");
}

TEST(Table, colour_only_when_asked) {
  EXPECT_EQ(render(two_rows(), Form::kText).find('\x1b'), std::string::npos);
  EXPECT_NE(render(two_rows(), Form::kText, {.color = true}).find("\x1b[1m"), std::string::npos);
}

TEST(Quantity, durations_change_their_unit_before_they_round_up_to_a_thousand) {
  EXPECT_EQ(format_duration(0), "0 ns");
  EXPECT_EQ(format_duration(999), "999 ns");
  EXPECT_EQ(format_duration(999999), "999.999 us");
  EXPECT_EQ(format_duration(999999999), "1.000 s");
  EXPECT_EQ(format_duration(-1500), "-1.500 us");
}

TEST(Quantity, bytes_use_powers_of_1024) {
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(1024 * 1024 - 1), "1.00 MiB");
}

}  // namespace
}  // namespace firelane::report
