#include "report/registry.h"

#include <gtest/gtest.h>

#include <set>

#include "model/trace_builder.h"

namespace firelane::report {
namespace {

Model one_step() {
  return TraceBuilder()
      .step(1, {.start_us = 0, .end_us = 50})
      .op("aten::mm", {.start_us = 10, .end_us = 30})
      .kernel("gemm", {.start_us = 20, .end_us = 38})
      .build();
}

TEST(Registry, every_report_has_a_name_of_its_own_and_an_answer_in_every_form) {
  const StudiedTrace trace(one_step());
  std::set<std::string_view> names;
  for (const ReportSpec& spec : all_reports()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_EQ(find_report(spec.name), &spec);
    for (const Form form : {Form::kText, Form::kMarkdown, Form::kCsv, Form::kJson}) {
      const Result<std::string> answer = render(spec, trace, spec.arguments(), form);
      ASSERT_TRUE(answer.ok()) << spec.name;
      EXPECT_TRUE(answer.value().ends_with('\n')) << spec.name;
    }
  }
}

TEST(Registry, a_report_has_the_tables_that_it_declares) {
  const StudiedTrace trace(one_step());
  for (const ReportSpec& spec : all_reports()) {
    Arguments wanted = spec.arguments();
    for (const ReportTable& table : spec.tables) {
      if (!table.flag.empty()) EXPECT_TRUE(wanted.set(table.flag, true).ok());
    }
    const Report report = spec.make(trace, wanted).value();
    for (const ReportTable& declared : spec.tables) {
      const bool has = std::any_of(report.tables.begin(), report.tables.end(),
                                   [&](const Table& table) { return table.name == declared.name; });
      EXPECT_TRUE(has) << spec.name << " " << declared.name;
    }
  }
}

TEST(Registry, columns_speak_of_the_device_of_the_trace) {
  Model model = one_step();
  model.info.accelerator = Accelerator::kHip;
  const StudiedTrace trace(std::move(model));
  const auto column = [&](const char* report, std::string_view name) {
    const ReportSpec& spec = *find_report(report);
    const Report made = make_report(spec, trace, spec.arguments()).value();
    for (const Table& table : made.tables) {
      for (const Column& each : table.columns) {
        if (each.name == name) return each;
      }
    }
    return Column{};
  };
  EXPECT_EQ(column("roofline", "tensor_cores").label, "Matrix cores");
  EXPECT_EQ(column("kernels", "graph_calls").help, "Calls launched by a HIP graph.");
}

TEST(Arguments, a_value_out_of_range_is_refused_with_the_range) {
  Arguments wanted = find_report("cost")->arguments();
  EXPECT_EQ(wanted.set_text("overhead_factor", "0.5").error().message, "overhead_factor must be a number from 1 to 10");
  EXPECT_EQ(wanted.set_text("samples_per_step", "1.5").error().message,
            "samples_per_step must be a whole number from 1 to 1125899906842624");
  EXPECT_EQ(wanted.set_text("colour", "red").error().message, "there is no parameter 'colour'");
  EXPECT_EQ(wanted.number("overhead_factor"), 1.0);
  EXPECT_FALSE(wanted.is_given("price_per_hour"));
}

TEST(Arguments, a_text_that_is_no_choice_is_refused_with_the_choices) {
  Arguments wanted = find_report("ops")->arguments();
  EXPECT_EQ(wanted.set_text("side", "moon").error().message, "side must be one of both, host, device");
  EXPECT_TRUE(wanted.set_text("side", "device").ok());
  EXPECT_EQ(wanted.text("side"), "device");
}

TEST(Arguments, people_see_the_top_rows_unless_they_say_how_many_and_programs_see_all) {
  const ReportSpec& kernels = *find_report("kernels");
  Arguments wanted = kernels.arguments();
  EXPECT_EQ(wanted.rows(), 0u);
  wanted.for_people = true;
  EXPECT_EQ(wanted.rows(), kernels.shown_rows);
  EXPECT_TRUE(wanted.set_text("rows", "7").ok());
  EXPECT_EQ(wanted.rows(), 7u);
}

}  // namespace
}  // namespace firelane::report
