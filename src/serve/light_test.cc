// Recordings with light and full steps: which answers are of which, and how the page is told.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "model/trace_builder.h"
#include "serve/api.h"
#include "serve/one_file.h"

namespace firelane::serve {
namespace {

std::string body_of(Api& api, std::string_view target) { return api.answer(parse_target(target).value()).body; }

bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// ProfilerStep#1 [0,200): aten::mm [0,20) launches gemm [30,60), aten::add [100,120) launches add [130,150).
Model full_steps() {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 200})
      .op("aten::mm", {.start_us = 0, .end_us = 20, .external_id = 1})
      .call("cudaLaunchKernel", {.start_us = 5, .end_us = 9, .correlation = 7, .external_id = 1})
      .kernel("gemm", {.start_us = 30, .end_us = 60, .correlation = 7, .external_id = 1})
      .op("aten::add", {.start_us = 100, .end_us = 120, .external_id = 2})
      .call("cudaLaunchKernel", {.start_us = 105, .end_us = 109, .correlation = 8, .external_id = 2})
      .kernel("add", {.start_us = 130, .end_us = 150, .correlation = 8, .external_id = 2});
  return builder.build();
}

// A light step is half as long.
Model with_light_steps() {
  Model model = full_steps();
  TraceBuilder light;
  light.step(1, {.start_us = 0, .end_us = 100})
      .call("cudaLaunchKernel", {.start_us = 5, .end_us = 9, .correlation = 7})
      .kernel("gemm", {.start_us = 30, .end_us = 60, .correlation = 7});
  Model steps = light.build();
  steps.timed_steps = {.number = {1, 2, 3},
                       .disturbance = {StepDisturbance::kNone, StepDisturbance::kNone, StepDisturbance::kNone},
                       .start_ns = {0, 0, 0},
                       .duration_ns = {100'000, 100'000, 100'000}};
  model.light = std::make_shared<const Model>(std::move(steps));
  return model;
}

TEST(Light, light_steps_have_a_timeline_of_their_own_and_reports_of_times_are_theirs) {
  Api api(with_light_steps(), "1.2");
  EXPECT_EQ(
      body_of(api, "/api/t/0/light"),
      R"({"note":"times are those of 1 light step (1.00x as long as untouched ones), operators and findings those of 1 full step"})");
  EXPECT_TRUE(says(body_of(api, "/api/t/0.light/lanes"), R"("end_ns":100000)"));
  EXPECT_TRUE(says(body_of(api, "/api/t/0/lanes"), R"("end_ns":200000)"));
  EXPECT_TRUE(says(body_of(api, "/api/t/0/report/idle"),
                   R"("name":"busy_ns","label":"Device busy","kind":"duration","value":30000)"));
  EXPECT_TRUE(says(body_of(api, "/api/t/0/report/idle"), "operators and findings those of"));
  EXPECT_TRUE(says(body_of(api, "/api/t/0/report/kernels"), "add"));
  Api without(full_steps(), "1.2");
  EXPECT_TRUE(says(body_of(without, "/api/t/0.light/lanes"), "error"));
  EXPECT_TRUE(says(body_of(without, "/api/t/.light/lanes"), "error"));
  EXPECT_EQ(body_of(without, "/api/t/0/light"), R"({"note":null})");
}

TEST(Light, a_report_whose_rows_are_of_light_steps_says_so) {
  Api api(with_light_steps(), "1.2");
  for (const char* name : {"steps", "idle", "launches"}) {
    EXPECT_TRUE(
        body_of(api, "/api/t/0/report/" + std::string(name)).starts_with(R"({"recorded_steps":"light","title":)"))
        << name;
  }
  for (const char* name : {"ops", "kernels", "breakdown", "lanes"}) {
    EXPECT_FALSE(says(body_of(api, "/api/t/0/report/" + std::string(name)), R"("recorded_steps":"light")")) << name;
  }
  // Where the answer is about the very trace that was asked, there is no other one to name.
  EXPECT_FALSE(says(body_of(api, "/api/t/0.light/report/idle"), R"("recorded_steps":"light")"));
  Api without(full_steps(), "1.2");
  EXPECT_FALSE(says(body_of(without, "/api/t/0/report/idle"), R"("recorded_steps":"light")"));
}

TEST(Light, the_overview_has_one_kind_of_steps_in_its_verdict_bars_and_utilization) {
  Api api(with_light_steps(), "1.2");
  const std::string body = body_of(api, "/api/t/0/overview");
  EXPECT_TRUE(says(body, R"("step_ns":100000,"recorded_step_ns":100000,"recorded_steps":"light"})")) << body;
  EXPECT_TRUE(says(body, R"("rows":[{"step":1,"start_ns":0,"duration_ns":100000,)")) << body;
  EXPECT_TRUE(says(body, R"("warmup":false}],"recorded_steps":"light"})")) << body;
  EXPECT_TRUE(says(body, R"("busy_ns":30000,"window_ns":100000,"recorded_steps":"light"})")) << body;
  EXPECT_TRUE(says(body, R"("top_kernels":[["gemm",30000,1],["add",20000,1]])")) << body;
  Api without(full_steps(), "1.2");
  EXPECT_FALSE(says(body_of(without, "/api/t/0/overview"), R"("recorded_steps":"light")"));
}

// The list is asked for again and again, of every trace: it waited until all of them were studied.
TEST(Light, listing_traces_studies_none_of_them) {
  Model model = with_light_steps();
  const std::shared_ptr<const Model> steps = model.light;
  Api api(std::move(model), "1.2");
  const auto unstudied = steps.use_count();
  EXPECT_FALSE(says(body_of(api, "/api/traces"), "light"));
  EXPECT_EQ(steps.use_count(), unstudied);
  body_of(api, "/api/t/0/light");
  EXPECT_GT(steps.use_count(), unstudied);
}

TEST(Light, a_report_in_one_file_opens_with_the_light_steps) {
  Api api(with_light_steps(), "1.2");
  const std::string html = one_file(api, "<html><!--firelane-answers--></html>").value();
  for (const char* key :
       {R"("t/0/light":{"json":{"note":"times are)", R"("t/0.light/lanes":{"json")", R"("t/0.light/tiles?level=)",
        R"("t/0/tiles?level=)", R"("t/0/report/idle":{"json":{"recorded_steps":"light")"}) {
    EXPECT_TRUE(says(html, key)) << key;
  }
}

}  // namespace
}  // namespace firelane::serve
