#include "report/dump.h"

#include <gtest/gtest.h>

#include <map>

#include "model/testing.h"
#include "model/trace_builder.h"
#include "report/dump_tables.h"

namespace firelane::report {
namespace {

std::string dumped(const Model& model, const DumpOptions& options) {
  std::string out;
  const Result<void> done = dump(model, options, [&out](std::string_view lines) -> Result<void> {
    out += lines;
    return {};
  });
  EXPECT_TRUE(done.ok());
  return out;
}

// Events by their place; insists on ascending questions, as readers of files may.
class FakeSource : public ArgSource {
 public:
  std::map<uint64_t, std::string> events;

  Result<std::string> event_json(uint64_t source) const override { return events.at(source); }
  Result<void> visit_events(const std::vector<uint64_t>& sources,
                            const std::function<void(size_t index, std::string_view json)>& visit) const override {
    for (size_t i = 0; i < sources.size(); ++i) {
      if (i > 0 && sources[i] < sources[i - 1]) return Error{"not ascending"};
      visit(i, events.at(sources[i]));
    }
    return {};
  }
};

Model two_ops() {
  return TraceBuilder()
      .op("first", {.start_us = 0, .end_us = 2})
      .op("say \"hi\"\n", {.start_us = 3, .end_us = 4})
      .build();
}

TEST(Dump, text_rows_name_every_column_and_stay_on_one_line) {
  EXPECT_EQ(
      dumped(two_ops(), {.tables = {"host_slices"}}),
      "host_slices 0 lane=0 start_ns=0 duration_ns=2000 name=\"first\" category=\"cpu_op\" kind=\"op\" role=- parent=- "
      "depth=0 detail=0 call_line=-\n"
      "host_slices 1 lane=0 start_ns=3000 duration_ns=1000 name=\"say \\\"hi\\\"\\n\" category=\"cpu_op\" "
      "kind=\"op\" role=- parent=- depth=0 detail=1 call_line=-\n");
}

// A table of model/testing.h, which nothing here knows.
TEST(Dump, a_new_column_of_a_list_is_in_its_rows) {
  const Model model = with_words();
  RowLine line(model, DumpForm::kText, "things", 0);
  line.add_row(one_thing_info(), 0);
  EXPECT_EQ(line.take(),
            "things 0 start_ns=5 duration_ns=7 name=\"thing\" parent=- color=\"red\" mood=\"bad\" comm=3 "
            "weight_bytes=100\n");
}

TEST(Dump, json_rows_write_null_for_what_is_absent) {
  EXPECT_EQ(dumped(two_ops(), {.tables = {"host_slices"}, .max_rows = 1, .form = DumpForm::kJsonLines}),
            "{\"table\":\"host_slices\",\"row\":0,\"lane\":0,\"start_ns\":0,\"duration_ns\":2000,\"name\":\"first\","
            "\"category\":\"cpu_op\",\"kind\":\"op\",\"role\":null,\"parent\":null,\"depth\":0,\"detail\":0,\"call_"
            "line\":null}\n");
}

TEST(Dump, args_put_the_source_event_of_each_row_on_its_line) {
  Model model = two_ops();
  auto source = std::make_shared<FakeSource>();
  source->events = {{5, "{\n  \"name\": \"say \\\"hi\\\" \"\n}"}, {90, "{\"name\": \"first\"}"}};
  model.host_slices.source[0] = 90;  // rows are sorted by lane and time, sources by the file
  model.host_slices.source[1] = 5;
  model.args = source;
  const std::string text = dumped(model, {.tables = {"host_slices"}, .args = true});
  const size_t line_break = text.find('\n');
  EXPECT_TRUE(text.substr(0, line_break).ends_with(" event={\"name\":\"first\"}"));
  EXPECT_TRUE(text.ends_with(" event={\"name\":\"say \\\"hi\\\" \"}\n"));
}

TEST(Dump, rows_that_were_not_read_from_a_source_have_no_event) {
  EXPECT_EQ(dumped(two_ops(), {.tables = {"host_slices"}, .args = true}),
            dumped(two_ops(), {.tables = {"host_slices"}}));
}

TEST(Dump, a_sink_that_fails_ends_the_dump) {
  int calls = 0;
  const Result<void> done = dump(two_ops(), {}, [&calls](std::string_view) -> Result<void> {
    ++calls;
    return Error{"disk full"};
  });
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message, "disk full");
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace firelane::report
