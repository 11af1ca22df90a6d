#include "serve/one_file.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "model/trace_builder.h"

namespace firelane::serve {
namespace {

constexpr std::string_view kPage =
    "<html><body><div></div><!--firelane-answers--><script>page()</script></body></html>";
constexpr std::string_view kBegin = "<script type=\"application/json\" id=\"firelane-answers\">";

std::string answers_in(const std::string& html) {
  const size_t begin = html.find(kBegin) + kBegin.size();
  return html.substr(begin, html.find("</script>", begin) - begin);
}

TEST(OneFile, names_that_are_markup_cannot_leave_the_answers) {
  const std::string_view names[] = {"<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "<!--",
                                    "]]>&lt;\xff"};
  TraceBuilder builder;
  double at = 0;
  for (const std::string_view name : names) {
    builder.kernel(name, {.start_us = at, .end_us = at + 10}).op(name, {.start_us = at, .end_us = at + 5});
    at += 20;
  }
  Api api(builder.build(), "1.2");
  const std::string html = one_file(api, kPage).value();
  const std::string answers = answers_in(html);
  for (const char* part : {"<", ">", "alert(1)</", "&"}) EXPECT_EQ(answers.find(part), std::string::npos) << part;
  EXPECT_TRUE(html.ends_with("</script><script>page()</script></body></html>"));
  // The names are there, all the same.
  simdjson::dom::parser parser;
  simdjson::dom::element all;
  ASSERT_EQ(parser.parse(answers).get(all), simdjson::SUCCESS);
  std::set<std::string_view> kernels;
  for (const simdjson::dom::element row : all["t/0/report/kernels"]["json"]["tables"].at(0)["rows"]) {
    kernels.insert(row.at(1).get_string().value());
  }
  EXPECT_EQ(kernels, (std::set<std::string_view>{names[0], names[1], names[2], "]]>&lt;\uFFFD"}));
}

TEST(OneFile, has_what_the_first_screens_ask_for) {
  Api api(
      TraceBuilder().kernel("gemm", {.start_us = 0, .end_us = 10}).op("aten::mm", {.start_us = 0, .end_us = 5}).build(),
      "1.2");
  const std::string answers = answers_in(one_file(api, kPage).value());
  for (const char* key : {R"("traces":{"json")", R"("t/0/light":{"json":{"note":null})", R"("t/0/overview":{"json")",
                          R"("t/0/lanes":{"json")", R"("t/0/diagnose":{"json")", R"("t/0/report/ops":{"json")",
                          R"("t/0/report/kernels":{"json")", R"("t/0/tiles?level=)", R"({"base64":"RkxUM)"}) {
    EXPECT_NE(answers.find(key), std::string::npos) << key;
  }
}

TEST(OneFile, has_the_flame_graph_of_samples) {
  TraceBuilder builder;
  builder.op("aten::mm", {.start_us = 0, .end_us = 5}).sample("train.py(44): main", {.at_us = 3, .weight_us = 1});
  Api api(builder.build(), "1.2");
  const std::string answers = answers_in(one_file(api, kPage).value());
  EXPECT_NE(answers.find(R"("t/0/flame?order=left-heavy\u0026lane=0\u0026by=sample\u0026bins=2000")"),
            std::string::npos);
}

TEST(OneFile, stays_below_its_limit_and_leaves_the_finest_out_first) {
  TraceBuilder builder;
  for (int i = 0; i < 20'000; ++i)
    builder.kernel("kernel " + std::to_string(i), {.start_us = i * 3.0, .end_us = i * 3.0 + 2});
  Api api(builder.build(), "1.2");
  const std::string large = one_file(api, kPage).value();
  const std::string small = one_file(api, kPage, 300'000).value();
  EXPECT_LE(large.size(), kMaxOneFileBytes);
  EXPECT_LE(small.size(), 300'000u);
  EXPECT_LT(small.size(), large.size());
  // 60 ms are 512 bins of 2^17 ns.
  EXPECT_NE(small.find("tiles?level=17"), std::string::npos);
  EXPECT_EQ(small.find("tiles?level=10"), std::string::npos);
  EXPECT_NE(large.find("tiles?level=10"), std::string::npos);
  simdjson::dom::parser parser;
  EXPECT_EQ(parser.parse(answers_in(small)).error(), simdjson::SUCCESS);
}

// Two sides: a trace of many kernels, and one of a few.
std::shared_ptr<TraceSet> two_traces() {
  const auto load = [](const std::string& path, const LoadProgress&) -> Result<Model> {
    TraceBuilder builder;
    for (int i = 0; i < (path == "a.json" ? 2'000 : 50); ++i)
      builder.kernel(path + " kernel " + std::to_string(i), {.start_us = i * 3.0, .end_us = i * 3.0 + 2});
    return builder.build();
  };
  auto traces = std::make_shared<TraceSet>(std::vector<std::string>{"a.json", "b.json"}, load);
  traces->wait_until_loaded();
  return traces;
}

TEST(OneFile, a_comparison_has_both_ways_round_and_both_timelines) {
  Api api(two_traces(), "1.2", {.is_first = true});
  const std::string answers = answers_in(one_file(api, kPage).value());
  for (const char* key :
       {R"("first_pane":"compare")", R"("compare?before=0\u0026after=1":{"json")", R"("compare?before=1\u0026after=0")",
        R"("compare/flame?before=0\u0026after=1\u0026by=device\u0026bins=1000")", R"("runs?by=batch")",
        R"("t/0/lanes":{"json")", R"("t/1/lanes":{"json")", R"("t/0/tiles?level=)", R"("t/1/tiles?level=)"}) {
    EXPECT_NE(answers.find(key), std::string::npos) << key;
  }
}

TEST(OneFile, the_first_trace_of_a_comparison_leaves_room_for_the_second) {
  Api api(two_traces(), "1.2", {.is_first = true});
  const std::string small = one_file(api, kPage, 600'000).value();
  EXPECT_LE(small.size(), 600'000u);
  EXPECT_LT(small.size(), one_file(api, kPage).value().size());
  EXPECT_NE(small.find("\"t/1/tiles?level="), std::string::npos);
}

TEST(OneFile, a_page_without_a_place_is_refused) {
  Api api(TraceBuilder().build(), "1.2");
  EXPECT_FALSE(one_file(api, "<html></html>").ok());
  EXPECT_TRUE(one_file(api, kPage).ok());
}

}  // namespace
}  // namespace firelane::serve
