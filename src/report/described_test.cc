#include "report/described.h"

#include <gtest/gtest.h>

namespace firelane::report {
namespace {

TEST(Described, labels_and_kinds_go_along_with_plain_values) {
  Table table{.name = "kernels",
              .title = "Top",
              .columns = {{"name", "Name"},
                          {.name = "total_ns", .label = "Total", .kind = Kind::kDuration, .help = "All of it."},
                          {"in_graph", "Graph", Kind::kTruth}},
              .notes = {"of the table"}};
  table.add({std::string("a<b>"), int64_t{120000}, int64_t{1}});
  table.add({std::string("c"), Cell{}, int64_t{0}});
  const Report report{.title = "Kernels",
                      .facts = {{"share_percent", "Share", Kind::kPercent, 12.5}},
                      .tables = {table},
                      .notes = {"of the report"}};
  EXPECT_EQ(
      described(report, 1000),
      R"({"title":"Kernels","facts":[{"name":"share_percent","label":"Share","kind":"percent","value":12.5}],)"
      R"("tables":[{"name":"kernels","title":"Top","row_count":2,"columns":[{"name":"name","label":"Name","kind":"text"},)"
      R"({"name":"total_ns","label":"Total","kind":"duration","help":"All of it."},{"name":"in_graph","label":"Graph","kind":"truth"}],)"
      R"("rows":[["a<b>",120000,true],["c",null,false]],"notes":["of the table"]}],"notes":["of the report"]})");
}

TEST(Described, rows_beyond_the_limit_are_counted_but_not_sent) {
  Table table{.columns = {{"n", "N", Kind::kNumber}}};
  for (int64_t i = 0; i < 5; ++i) table.add({i});
  const std::string text = described(Report{.tables = {table}}, 2);
  EXPECT_NE(text.find(R"("row_count":5)"), std::string::npos);
  EXPECT_NE(text.find(R"("rows":[[0],[1]])"), std::string::npos);
  table.row_count = 70;  // the table itself holds only the first
  EXPECT_NE(described(Report{.tables = {table}}, 2).find(R"("row_count":70)"), std::string::npos);
}

}  // namespace
}  // namespace firelane::report
