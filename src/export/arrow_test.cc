// What a consumer sees through the Arrow C data interface: the model's memory, nulls, dictionaries, lifetimes.
#include "export/arrow.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "export/arrow_builder.h"
#include "export/arrow_tables.h"
#include "model/model.h"
#include "model/testing.h"

namespace firelane::exporter {
namespace {

// A consumer: imports the single batch of a table and releases everything at the end.
struct Imported {
  ArrowSchema schema{};
  ArrowArray batch{};

  explicit Imported(std::shared_ptr<const ArrowTable> table) {
    ArrowArrayStream stream{};
    export_stream(std::move(table), &stream);
    EXPECT_EQ(stream.get_schema(&stream, &schema), 0);
    EXPECT_EQ(stream.get_next(&stream, &batch), 0);
    ArrowArray end{};
    EXPECT_EQ(stream.get_next(&stream, &end), 0);
    EXPECT_EQ(end.release, nullptr) << "one batch, then the end";
    stream.release(&stream);
    EXPECT_EQ(stream.release, nullptr);
  }
  ~Imported() {
    if (schema.release) schema.release(&schema);
    if (batch.release) batch.release(&batch);
  }
  int64_t find(std::string_view name) const {
    for (int64_t i = 0; i < schema.n_children; ++i) {
      if (schema.children[i]->name == name) return i;
    }
    ADD_FAILURE() << "no column " << name;
    return 0;
  }
  const ArrowSchema& field(std::string_view name) const { return *schema.children[find(name)]; }
  const ArrowArray& column(std::string_view name) const { return *batch.children[find(name)]; }
  bool is_valid(std::string_view name, size_t row) const {
    const auto* bits = static_cast<const uint8_t*>(column(name).buffers[0]);
    return bits == nullptr || (bits[row / 8] >> (row % 8) & 1) != 0;
  }
};

std::string text_at(const ArrowArray& texts, size_t i) {
  const auto* offsets = static_cast<const int64_t*>(texts.buffers[1]);
  return {static_cast<const char*>(texts.buffers[2]) + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i])};
}

size_t index_of(std::string_view name) {
  for (size_t i = 0; i < arrow_table_list().size(); ++i) {
    if (arrow_table_list()[i].name == name) return i;
  }
  ADD_FAILURE() << "no table " << name;
  return 0;
}

// Two steps, the second of which was not found by a slice.
std::shared_ptr<Model> two_steps() {
  auto model = std::make_shared<Model>();
  model->steps = {.number = {1, 2}, .slice = {0, kNoRow}, .start_ns = {10, 20}, .duration_ns = {10, 30}};
  return model;
}

std::shared_ptr<Model> two_host_slices() {
  auto model = std::make_shared<Model>();
  const StringId mm = model->strings.intern("aten::mm");
  const StringId broken = model->strings.intern("bad \xFF name");
  const StringId cpu_op = model->strings.intern("cpu_op");
  HostSlices& slices = model->host_slices;
  slices.resize(2);
  const auto same = [](const auto& value) { return value; };
  slices.set(0, {.start_ns = 5, .duration_ns = 7, .name = mm, .category = cpu_op, .kind = HostKind::kOp}, same);
  slices.set(1, {.start_ns = 6, .duration_ns = 1, .name = broken, .kind = HostKind::kDriver}, same);
  slices.parent[1] = 0;
  slices.depth[1] = 1;
  return model;
}

TEST(Arrow, a_column_that_the_model_stores_once_has_a_value_for_each_row) {
  const auto model = two_host_slices();
  ASSERT_TRUE(model->host_slices.detail.is_uniform());
  const Imported slices(ArrowTables(model).table(index_of("host_slices")));
  EXPECT_EQ(slices.column("detail").length, 2);
  EXPECT_EQ(slices.column("detail").null_count, 2);
}

TEST(Arrow, integer_columns_are_the_models_own_memory) {
  const auto model = two_steps();
  const Imported steps(ArrowTables(model).table(index_of("steps")));
  EXPECT_STREQ(steps.schema.format, "+s");
  EXPECT_EQ(steps.batch.length, 2);
  EXPECT_STREQ(steps.field("start_ns").format, "l");
  EXPECT_EQ(steps.column("start_ns").buffers[1], model->steps.start_ns.data());
  EXPECT_STREQ(steps.field("slice").format, "I");
  EXPECT_EQ(steps.column("slice").buffers[1], model->steps.slice.data());
}

TEST(Arrow, absent_rows_are_null_and_present_columns_have_no_bitmap) {
  const Imported steps(ArrowTables(two_steps()).table(index_of("steps")));
  EXPECT_EQ(steps.column("slice").null_count, 1);
  EXPECT_TRUE(steps.is_valid("slice", 0));
  EXPECT_FALSE(steps.is_valid("slice", 1));
  EXPECT_EQ(steps.field("slice").flags, ARROW_FLAG_NULLABLE);
  EXPECT_EQ(steps.column("number").null_count, 0);
  EXPECT_EQ(steps.column("number").buffers[0], nullptr);
  EXPECT_EQ(steps.field("number").flags, 0);
}

TEST(Arrow, every_kind_of_absent_value_is_null) {
  ArrowTableBuilder builder("t", 2);
  builder.own("u32", std::vector<uint32_t>{UINT32_MAX, 0}, Absent::kNull);
  builder.own("u64", std::vector<uint64_t>{UINT64_MAX, 0}, Absent::kNull);
  builder.own("i32", std::vector<int32_t>{-1, 0}, Absent::kNull);
  builder.own("i64", std::vector<int64_t>{INT64_MIN, -1}, Absent::kNull);
  builder.own("f32", std::vector<float>{-1, 0}, Absent::kNull);
  builder.own("f64", std::vector<double>{__builtin_nan(""), -1}, Absent::kNull);
  ArrowTexts texts;
  texts.add("");
  texts.add("x");
  builder.text("text", std::move(texts), Absent::kNull);
  const auto table = std::move(builder).build();
  const Imported t(table);
  for (size_t c = 0; c < table->columns().size(); ++c) {
    const std::string& name = table->columns()[c].name;
    EXPECT_EQ(t.column(name).null_count, 1) << name;
    EXPECT_FALSE(t.is_valid(name, 0)) << name;
    EXPECT_TRUE(t.is_valid(name, 1)) << name;
    EXPECT_EQ(table->cell(c, 0), ArrowCell{}) << name;
    EXPECT_NE(table->cell(c, 1), ArrowCell{}) << name;
  }
}

TEST(Arrow, bitmaps_are_right_beyond_one_byte) {
  std::vector<uint32_t> rows(19, 5);
  rows[0] = rows[8] = rows[18] = kNoRow;
  ArrowTableBuilder builder("t", rows.size());
  builder.own("row", rows, Absent::kNull);
  const Imported t(std::move(builder).build());
  EXPECT_EQ(t.column("row").null_count, 3);
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(t.is_valid("row", i), rows[i] != kNoRow) << i;
}

TEST(Arrow, truths_are_packed_into_bits) {
  ArrowTableBuilder builder("t", 10);
  builder.own_truths("yes", {0, 1, 0, 0, 0, 0, 0, 0, 1, -1}, Absent::kNull);
  const auto table = std::move(builder).build();
  const Imported t(table);
  EXPECT_STREQ(t.field("yes").format, "b");
  const auto* bits = static_cast<const uint8_t*>(t.column("yes").buffers[1]);
  EXPECT_EQ(bits[0], 0b10);
  EXPECT_EQ(bits[1], 0b1);
  EXPECT_EQ(t.column("yes").null_count, 1);
  EXPECT_FALSE(t.is_valid("yes", 9));
  EXPECT_EQ(table->cell(0, 1), ArrowCell{true});
  EXPECT_EQ(table->cell(0, 2), ArrowCell{false});
  EXPECT_EQ(table->cell(0, 9), ArrowCell{});
}

TEST(Arrow, names_are_indices_into_the_models_strings) {
  const auto model = two_host_slices();
  const Imported slices(ArrowTables(model).table(index_of("host_slices")));
  const ArrowArray& names = slices.column("name");
  EXPECT_STREQ(slices.field("name").format, "i");
  ASSERT_NE(slices.field("name").dictionary, nullptr);
  EXPECT_STREQ(slices.field("name").dictionary->format, "U");
  EXPECT_EQ(names.buffers[1], model->host_slices.name.data());
  ASSERT_NE(names.dictionary, nullptr);
  EXPECT_EQ(names.dictionary->length, static_cast<int64_t>(model->strings.size()));
  EXPECT_EQ(text_at(*names.dictionary, static_cast<size_t>(model->host_slices.name[0])), "aten::mm");
  EXPECT_FALSE(slices.is_valid("category", 1)) << "the empty string stands for an absent category";
}

TEST(Arrow, invalid_utf8_is_replaced) {
  const auto model = two_host_slices();
  const Imported slices(ArrowTables(model).table(index_of("host_slices")));
  EXPECT_EQ(text_at(*slices.column("name").dictionary, static_cast<size_t>(model->host_slices.name[1])),
            "bad \xEF\xBF\xBD name");
  ArrowTexts texts;
  texts.add("\xFF");
  texts.add("\xC3\xA9\xE2\x82");
  EXPECT_EQ(texts[0], "\xEF\xBF\xBD");
  EXPECT_EQ(texts[1], "\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Arrow, kinds_are_dictionaries_of_their_words) {
  const auto model = two_host_slices();
  const auto table = ArrowTables(model).table(index_of("host_slices"));
  const Imported slices(table);
  EXPECT_STREQ(slices.field("kind").format, "c");
  EXPECT_EQ(slices.column("kind").buffers[1], model->host_slices.kind.data());
  EXPECT_EQ(slices.column("kind").dictionary->length, static_cast<int64_t>(kHostKindCount));
  EXPECT_EQ(table->cell(6, 1), ArrowCell{std::string_view("driver")});
}

TEST(Arrow, one_dictionary_serves_all_tables_of_a_trace) {
  ArrowTables tables(two_host_slices());
  const Imported slices(tables.table(index_of("host_slices")));
  const Imported lanes(tables.table(index_of("lanes")));
  EXPECT_EQ(slices.column("name").dictionary->buffers[2], lanes.column("name").dictionary->buffers[2]);
}

TEST(Arrow, an_export_keeps_the_model_alive_until_its_last_piece_is_released) {
  auto model = two_steps();
  const std::weak_ptr<Model> watch = model;
  auto imported = std::make_unique<Imported>(ArrowTables(model).table(index_of("steps")));
  model.reset();
  EXPECT_FALSE(watch.expired());
  // A consumer may move one column out and release the rest.
  const int64_t index = imported->find("start_ns");
  ArrowArray moved = *imported->batch.children[index];
  imported->batch.children[index]->release = nullptr;
  imported.reset();
  ASSERT_FALSE(watch.expired());
  EXPECT_EQ(static_cast<const int64_t*>(moved.buffers[1])[1], 20);
  moved.release(&moved);
  EXPECT_TRUE(watch.expired());
}

TEST(Arrow, ids_that_are_texts_have_a_column_of_their_own) {
  auto model = std::make_shared<Model>();
  model->counter_tracks = {.pid = {{.number = 688}, {.text = model->strings.intern("Spans")}, {}},
                           .name = {kNoString, kNoString, kNoString},
                           .series = {kNoString, kNoString, kNoString}};
  const auto table = ArrowTables(model).table(index_of("counter_tracks"));
  EXPECT_EQ(table->cell(1, 0), ArrowCell{int64_t{688}});
  EXPECT_EQ(table->cell(2, 0), ArrowCell{});
  EXPECT_EQ(table->cell(1, 1), ArrowCell{});
  EXPECT_EQ(table->cell(2, 1), ArrowCell{std::string_view("Spans")});
  EXPECT_EQ(table->cell(1, 2), ArrowCell{});
  EXPECT_EQ(table->cell(2, 2), ArrowCell{});
}

TEST(Arrow, flows_say_which_table_an_end_lies_in) {
  auto model = std::make_shared<Model>();
  const StringId name = model->strings.intern("wait");
  model->flows = {.name = {name},
                  .category = {kNoString},
                  .flow_id = {4},
                  .from = {{.row = 2, .on_device = true}},
                  .to = {{.row = kNoRow}}};
  const auto table = ArrowTables(model).table(index_of("flows"));
  EXPECT_EQ(table->cell(4, 0), ArrowCell{std::string_view("device_slices")});
  EXPECT_EQ(table->cell(5, 0), ArrowCell{uint64_t{2}});
  EXPECT_EQ(table->cell(6, 0), ArrowCell{});
  EXPECT_EQ(table->cell(7, 0), ArrowCell{});
}

TEST(Arrow, every_column_of_a_list_is_in_its_table) {
  ArrowTables tables(std::make_shared<Model>());
  for (const TableInfo& info : model_tables()) {
    const Imported table(tables.table(index_of(std::string(info.name))));
    std::set<std::string> names;
    for (int64_t i = 0; i < table.schema.n_children; ++i) names.insert(table.schema.children[i]->name);
    for (const ColumnInfo& column : info.columns) {
      if (!is_shown(column.use) || column.use == Use::kLaneBound) continue;
      const std::string name(column.name);
      const bool is_there = names.contains(column.type == ColumnType::kSliceRef ? name + "_slice" : name);
      EXPECT_TRUE(is_there) << info.name << "." << name;
    }
  }
}

// A table of model/testing.h, which nothing here knows.
TEST(Arrow, a_new_column_of_a_list_is_in_its_table) {
  ArrowTables tables(std::make_shared<Model>(with_words()));
  const auto made = tables.made_of(one_thing_info());
  const Imported table(made);
  std::string text;
  for (int64_t i = 0; i < table.schema.n_children; ++i) {
    const ArrowCell cell = made->cell(static_cast<size_t>(i), 0);
    text += std::string(table.schema.children[i]->name) + "=";
    std::visit(
        [&]<typename T>(const T& value) {
          if constexpr (std::is_same_v<T, std::string_view>) {
            text += value;
          } else if constexpr (std::is_arithmetic_v<T>) {
            text += std::to_string(value);
          }
        },
        cell);
    text += " ";
  }
  EXPECT_EQ(text, "id=0 start_ns=5 duration_ns=7 name=thing parent= color=red mood=bad comm=3 weight_bytes=100 ");
}

TEST(Arrow, tables_begin_with_their_row_numbers) {
  ArrowTables tables(two_host_slices());
  const Imported slices(tables.table(index_of("host_slices")));
  EXPECT_STREQ(slices.schema.children[0]->name, "id");
  EXPECT_EQ(static_cast<const Row*>(slices.column("id").buffers[1])[0], 0U);
  EXPECT_EQ(static_cast<const Row*>(slices.column("id").buffers[1])[1], 1U);
}

TEST(Arrow, losses_list_what_was_counted_with_its_remedy) {
  auto model = std::make_shared<Model>();
  model->losses[Stat::kTruncated] = 1;
  const auto table = ArrowTables(model).table(index_of("losses"));
  ASSERT_EQ(table->rows(), 1U);
  EXPECT_EQ(table->cell(0, 0), ArrowCell{std::string_view("trace.truncated")});
  EXPECT_EQ(table->cell(1, 0), ArrowCell{std::string_view("data_loss")});
  EXPECT_EQ(table->cell(2, 0), ArrowCell{uint64_t{1}});
}

TEST(Arrow, every_table_of_an_empty_model_exports_zero_rows) {
  ArrowTables tables(std::make_shared<Model>());
  for (size_t i = 0; i < arrow_table_list().size(); ++i) {
    const auto table = tables.table(i);
    EXPECT_EQ(table->name(), arrow_table_list()[i].name);
    const Imported empty(table);
    EXPECT_EQ(empty.batch.length, 0) << table->name();
    for (int64_t c = 0; c < empty.batch.n_children; ++c) EXPECT_NE(empty.batch.children[c]->buffers[1], nullptr);
  }
}

TEST(Arrow, tables_may_be_exported_from_several_threads) {
  ArrowTables tables(two_host_slices());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(Imported(tables.table(index_of("host_slices"))).batch.length, 2); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace firelane::exporter
