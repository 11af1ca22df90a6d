#include "report/html.h"

#include <gtest/gtest.h>

namespace firelane::report {
namespace {

Report small() {
  Table table{.title = "Ops", .columns = {{"op", "Op"}, {"time_ns", "Time", Kind::kDuration}}, .notes = {"a < b"}};
  table.add({std::string("<img>"), int64_t{1500}});
  table.add({std::string("mm & co"), Cell{}});
  return {.facts = {{"verdict", "Verdict", Kind::kText, std::string("fine")},
                    {"for_programs", "", Kind::kNumber, int64_t{1}}},
          .tables = {table},
          .notes = {"that is all"}};
}

TEST(Html, shows_facts_rows_and_notes_and_escapes_names) {
  EXPECT_EQ(html(small()),
            "<div><strong>Verdict</strong>: fine</div>\n"
            "<p><strong>Ops</strong></p>\n"
            "<table>\n<thead>\n<tr><th>Op</th><th>Time</th></tr>\n</thead>\n<tbody>\n"
            "<tr><td>&lt;img&gt;</td><td>1.500 us</td></tr>\n"
            "<tr><td>mm &amp; co</td><td>-</td></tr>\n"
            "</tbody>\n</table>\n"
            "<p><i>a &lt; b</i></p>\n"
            "<p><i>that is all</i></p>\n");
}

TEST(Html, says_how_many_rows_are_left_out) {
  const std::string text = html(small(), {.max_rows = 1});
  EXPECT_EQ(text.find("mm"), std::string::npos);
  EXPECT_NE(text.find("<p>the first 1 of 2 rows</p>"), std::string::npos);
}

}  // namespace
}  // namespace firelane::report
