#include "sql/database.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "model/testing.h"
#include "model/trace_builder.h"
#include "sql/virtual_table.h"

namespace firelane::sql {
namespace {

// Rows as text: cells joined by |, rows by a line break.
class TextVisitor : public RowVisitor {
 public:
  void columns(const std::vector<std::string>& names) override { names_ = names; }
  void row(std::span<const Cell> cells) override {
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) text += '|';
      switch (cells[i].kind) {
        case Cell::Kind::kNull: text += "null"; break;
        case Cell::Kind::kInteger: text += std::to_string(cells[i].integer); break;
        case Cell::Kind::kReal: text += std::to_string(cells[i].real); break;
        case Cell::Kind::kText: text += cells[i].text; break;
      }
    }
    text += '\n';
  }
  std::string text;
  std::vector<std::string> names_;
};

Model small_model() {
  return TraceBuilder()
      .op("aten::linear", {.start_us = 0, .end_us = 30, .external_id = 1, .dims = "[[2, 3]]"})
      .op("aten::mm", {.start_us = 5, .end_us = 20, .external_id = 2})
      .call("cudaLaunchKernel", {.start_us = 6, .end_us = 9, .correlation = 7, .external_id = 2})
      .op("aten::mm", {.start_us = 40, .end_us = 50, .thread = 2, .external_id = 3})
      .kernel("gemm", {.start_us = 12, .end_us = 28, .correlation = 7, .external_id = 2, .grid = 4, .block = 64})
      .memory({.at_us = 1, .bytes = 512})
      .memory({.at_us = 3, .bytes = -512})
      .step(4, {.start_us = 0, .end_us = 60, .thread = 9})
      .counter("power", 2, 350.5)
      .build();
}

std::string answer(const Model& model, std::string_view sql) {
  auto database = Database::open(model);
  EXPECT_TRUE(database.ok());
  TextVisitor visitor;
  const Result<void> result = database.value()->run(sql, visitor);
  return result.ok() ? visitor.text : "error: " + result.error().message;
}

TEST(Sql, names_are_text_and_times_are_numbers) {
  EXPECT_EQ(answer(small_model(), "select name, start_ns, duration_ns, kind, depth from host_slices where lane = 0"),
            "aten::linear|0|30000|op|0\n"
            "aten::mm|5000|15000|op|1\n"
            "cudaLaunchKernel|6000|3000|runtime|2\n");
}

TEST(Sql, absent_values_are_null) {
  EXPECT_EQ(answer(small_model(), "select input_dims, sequence_number, flops from op_details order by slice limit 2"),
            "[[2, 3]]|null|null\nnull|null|null\n");
}

TEST(Sql, every_table_and_view_can_be_read) {
  const Model model = small_model();
  for (const CatalogTable& table : catalog()) {
    const std::string name(table.name);
    EXPECT_EQ(answer(model, "select count(*) from " + name), std::to_string(table.size(model)) + "\n") << name;
    EXPECT_EQ(answer(model, "select * from " + name).find("error"), std::string::npos) << name;
    EXPECT_NE(describe_table(name), "");
  }
  EXPECT_EQ(answer(model, "select name, op_name, launch_delay_ns, grid_x, block_x from kernels"),
            "gemm|aten::mm|6000|4|64\n");
  EXPECT_EQ(answer(model, "select name, op_name, device_name from launches"), "cudaLaunchKernel|aten::mm|gemm\n");
  EXPECT_EQ(answer(model, "select name, external_id from ops order by start_ns"),
            "aten::linear|1\naten::mm|2\naten::mm|3\n");
  EXPECT_EQ(answer(model, "select time_ns, name, value from counters"), "2000|power|350.500000\n");
  EXPECT_EQ(answer(model, "select number, duration_ns from steps"), "4|60000\n");
}

// A table of model/testing.h, which nothing here knows.
TEST(Sql, a_new_column_of_a_list_can_be_asked_for) {
  const Model model = with_words();
  const CatalogTable table = catalog_table(one_thing_info());
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &connection), SQLITE_OK);
  ASSERT_EQ(create_virtual_table(connection, model, table), SQLITE_OK);
  std::string text;
  const auto add = [](void* out, int count, char** cells, char** names) {
    for (int i = 0; i < count; ++i) {
      *static_cast<std::string*>(out) += std::string(names[i]) + "=" + (cells[i] == nullptr ? "null" : cells[i]) + " ";
    }
    return 0;
  };
  const char* sql = "select * from things where mood = 'bad' and color = 'red'";
  EXPECT_EQ(sqlite3_exec(connection, sql, add, &text, nullptr), SQLITE_OK);
  EXPECT_EQ(sqlite3_close(connection), SQLITE_OK);
  EXPECT_EQ(text,
            "id=0 start_ns=5 duration_ns=7 end_ns=12 name=thing parent=null color=red mood=bad comm=3 "
            "weight_bytes=100 ");
}

TEST(Sql, searches_give_the_same_rows_as_a_full_scan) {
  const Model model = small_model();
  // "+x" hides a column from the planner: the same question without any shortcut.
  for (const std::string where : {"id = 2",
                                  "id = 99",
                                  "id = -1",
                                  "lane = 1",
                                  "lane = 77",
                                  "lane = 0 and start_ns >= 5000",
                                  "lane = 0 and start_ns > 5000",
                                  "lane = 0 and start_ns < 6000.5",
                                  "start_ns <= 5000",
                                  "name = 'aten::mm'",
                                  "name = 'nothing'",
                                  "name = ''",
                                  "name is null",
                                  "name = null",
                                  "name = 'ATEN::MM' collate nocase",
                                  "parent = 0",
                                  "parent = 1 and name = 'cudaLaunchKernel'",
                                  "lane = 0 and name = 'aten::mm'",
                                  "id in (0, 2, 3)",
                                  "name in ('aten::mm', 'aten::linear')",
                                  "parent in (0, 1)",
                                  "lane in (0, 1) and start_ns between 1 and 45000"}) {
    std::string hidden = where;
    for (const char* column : {"id", "lane", "start_ns", "name", "parent"}) {
      for (size_t at = 0; (at = hidden.find(column, at)) != std::string::npos; at += std::string(column).size() + 1) {
        const bool whole = (at == 0 || hidden[at - 1] == ' ') && hidden[at + std::string(column).size()] == ' ';
        if (whole) hidden.insert(at, "+");
      }
    }
    const auto ask = [&](const std::string& condition) {
      return answer(model, "select id, name from host_slices where " + condition + " order by id");
    };
    EXPECT_EQ(ask(where), ask(hidden)) << where << " / " << hidden;
  }
  EXPECT_EQ(answer(model, "select name from host_slices where id = '2'"), "cudaLaunchKernel\n");
  EXPECT_EQ(answer(model, "select bytes from memory_events where time_ns > 1000"), "-512\n");
  EXPECT_EQ(answer(model, "select bytes from memory_events where time_ns >= 1000 and time_ns < 3000"), "512\n");
}

TEST(Sql, a_join_on_any_column_uses_an_index_and_stays_right) {
  TraceBuilder builder;
  for (int i = 0; i < 20'000; ++i) {
    const double at = i * 10;
    builder.call("cudaLaunchKernel", {.start_us = at, .end_us = at + 2, .correlation = i});
    builder.kernel("k", {.start_us = at + 3, .end_us = at + 9, .correlation = i});
  }
  // 20,000 x 20,000 comparisons would take minutes: with the index this is quick.
  EXPECT_EQ(
      answer(builder.build(),
             "select count(*), sum(d.start_ns - c_slice.start_ns) from device_slices d "
             "join call_details c on c.correlation = d.correlation join host_slices c_slice on c_slice.id = c.slice"),
      "20000|60000000\n");
}

TEST(Sql, hostile_names_are_plain_data) {
  const std::string name = "x'); drop table host_slices; --\n\"\x01</script>";
  Model model = TraceBuilder().op(name, {.start_us = 0, .end_us = 1}).build();
  EXPECT_EQ(answer(model, "select name from host_slices"), name + "\n");
  EXPECT_EQ(answer(model, "select count(*) from host_slices where name like '%drop table%'"), "1\n");
}

TEST(Sql, wrong_sql_gives_one_clear_line) {
  const Model model = small_model();
  EXPECT_EQ(answer(model, "selec 1"), "error: sql: near \"selec\": syntax error");
  EXPECT_EQ(answer(model, "select nam from host_slices"), "error: sql: no such column: nam");
  EXPECT_EQ(answer(model, "select * from op"), "error: sql: no such table: op; .tables (or docs/sql.md) lists them");
  EXPECT_EQ(answer(model, ""), "");
  EXPECT_EQ(answer(model, "-- nothing"), "");
}

TEST(Sql, nothing_can_be_written_and_no_file_opened) {
  const Model model = small_model();
  const std::string refused = "error: sql: a trace can only be read; use select (or pragma table_info)";
  for (const char* sql :
       {"delete from host_slices", "create table x(a)", "attach 'x.db' as x", "drop view ops",
        "pragma journal_mode = wal", "insert into steps values (1, 2, 3, 4, 5)", "vacuum into 'x.db'"}) {
    EXPECT_EQ(answer(model, sql), refused) << sql;
  }
  EXPECT_NE(answer(model, "pragma table_info(steps)").find("number|INTEGER"), std::string::npos);
}

TEST(Sql, all_statements_run_until_one_fails) {
  EXPECT_EQ(answer(small_model(), "select 1; select 2;"), "1\n2\n");
  EXPECT_EQ(answer(small_model(), "select 1; select x; select 2"), "error: sql: no such column: x");
}

constexpr std::string_view kEndless =
    "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";

TEST(Sql, a_query_can_be_stopped) {
  const Model model = small_model();
  auto database = Database::open(model);
  TextVisitor visitor;
  const std::atomic<bool> stop{true};
  EXPECT_EQ(database.value()->run(kEndless, visitor, {.stop = &stop}).error().message, "sql: interrupted");
  EXPECT_EQ(database.value()->run(kEndless, visitor, {.time = std::chrono::milliseconds(20)}).error().message,
            "sql: the query took longer than its time limit");
  EXPECT_TRUE(database.value()->run("select 1", visitor).ok());
}

}  // namespace
}  // namespace firelane::sql
