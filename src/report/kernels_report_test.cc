#include <gtest/gtest.h>

#include "model/trace_builder.h"
#include "report/registry.h"

namespace firelane::report {
namespace {

Report kernels_of(Model model, std::string_view rows = "", bool for_people = false) {
  const ReportSpec& spec = *find_report("kernels");
  Arguments wanted = spec.arguments();
  wanted.for_people = for_people;
  if (!rows.empty()) EXPECT_TRUE(wanted.set_text("rows", rows).ok());
  return spec.make(StudiedTrace(std::move(model)), wanted).value();
}

Model three_kernels() {
  return TraceBuilder()
      .kernel("a", {.start_us = 0, .end_us = 50})
      .kernel("b", {.start_us = 50, .end_us = 80})
      .kernel("c", {.start_us = 80, .end_us = 100})
      .kernel("c", {.start_us = 100, .end_us = 102})
      .build();
}

TEST(KernelsReport, rows_left_out_become_one_row_so_that_the_table_adds_up) {
  const Report report = kernels_of(three_kernels(), "1", /*for_people=*/true);
  const Table& table = report.tables.at(0);
  ASSERT_EQ(table.rows.size(), 2u);
  const auto cell = [&](size_t row, std::string_view name) {
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (table.columns[c].name == name) return table.rows[row][c];
    }
    return Cell{};
  };
  EXPECT_EQ(cell(0, "name"), Cell{"a"});
  EXPECT_EQ(cell(1, "kind"), Cell{"rest"});
  EXPECT_EQ(cell(1, "calls"), Cell{int64_t{3}});
  EXPECT_EQ(cell(1, "total_ns"), Cell{int64_t{52'000}});
  EXPECT_EQ(cell(1, "min_ns"), Cell{int64_t{2'000}});
  EXPECT_EQ(cell(1, "max_ns"), Cell{int64_t{30'000}});
}

TEST(KernelsReport, programs_get_the_rows_they_asked_for_and_no_sum) {
  EXPECT_EQ(kernels_of(three_kernels(), "1").tables.at(0).rows.size(), 1u);
  EXPECT_EQ(kernels_of(three_kernels()).tables.at(0).rows.size(), 3u);
}

TEST(KernelsReport, a_trace_without_device_work_says_what_to_record) {
  const Report report = kernels_of(TraceBuilder().op("aten::mm", {.start_us = 0, .end_us = 1}).build());
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].text.find("ProfilerActivity.CUDA"), std::string::npos);
}

}  // namespace
}  // namespace firelane::report
