#include "serve/job.h"

#include <gtest/gtest.h>

#include <string>

#include "ranks/testing/generate.h"
#include "serve/api.h"
#include "serve/one_file.h"

namespace firelane::serve {
namespace {

Result<Model> no_trace(const std::string& path, const LoadProgress&) { return Error{path + ": cannot be opened"}; }

// Four ranks on two hosts, the third is slow; its trace has the number 0, the others are not here.
class JobApi : public ::testing::Test {
 protected:
  JobApi()
      : api_(std::make_shared<TraceSet>(std::vector<std::string>{"rank2.json"}, no_trace, TraceSet::Prepare{},
                                        TraceSet::Options{.when_asked = true}),
             "1.2") {
    api_.serve_job({.job = ranks::testing::studied({.ranks = 4,
                                                    .gpus_per_host = 2,
                                                    .steps = 3,
                                                    .sequence = true,
                                                    .straggler = 2,
                                                    .cause = ranks::Cause::kSlowerKernels,
                                                    .details = true}),
                    .trace_of_rank = {-1, -1, 0, -1}});
  }
  Answer get(const std::string& target) { return api_.answer(parse_target("/api/" + target).value()); }
  static bool has(const Answer& answer, std::string_view text) { return answer.body.find(text) != std::string::npos; }

  Api api_;
};

TEST_F(JobApi, the_page_starts_with_the_ranks_and_no_trace_is_loaded) {
  const Answer list = get("traces?trace=first");
  EXPECT_TRUE(has(list, R"("panes":["ranks"],"first_pane":"ranks")")) << list.body;
  EXPECT_TRUE(has(list, R"("state":"unloaded")"));
}

TEST_F(JobApi, the_trace_of_a_rank_is_loaded_when_the_page_asks_for_it) {
  EXPECT_TRUE(has(get("traces?trace=0&wait_ms=1000"), R"("error":"rank2.json: cannot be opened")"));
}

TEST_F(JobApi, the_report_is_that_of_the_command) {
  const Answer report = get("ranks/report");
  for (const char* name : {"findings", "stragglers", "what_ifs", "ranks", "critical_path", "clocks"}) {
    EXPECT_TRUE(has(report, R"({"name":")" + std::string(name) + "\"")) << name;
  }
}

TEST_F(JobApi, the_layout_has_ranks_with_their_hosts_and_traces) {
  const Answer layout = get("ranks/layout");
  EXPECT_TRUE(has(layout, R"("hosts":["host0","host1"],"ranks":[[0,0,-1],[1,0,-1],[2,1,0],[3,1,-1]])")) << layout.body;
  EXPECT_TRUE(has(layout, R"("heat_values":["step","compute","wait","late","memory"])"));
  EXPECT_TRUE(has(layout, R"("ranks":[0,1,2,3])"));
}

TEST_F(JobApi, a_heat_map_has_a_cell_for_each_rank_and_step_that_fits) {
  const Answer heat = get("ranks/heat?value=memory");
  EXPECT_TRUE(has(heat, R"("ranks":[0,1,2,3],"steps":[100,101,102],"cells":[8589934592,)")) << heat.body;
  EXPECT_TRUE(has(get("ranks/heat?value=step&rows=2&columns=1"), R"("ranks_a_row":2,"steps_a_column":3)"));
  EXPECT_EQ(get("ranks/heat?value=none").status, 400);
  EXPECT_EQ(get("ranks/heat?rows=100000").status, 400);
}

TEST_F(JobApi, lanes_of_chosen_ranks_come_with_the_critical_path) {
  const Answer lanes = get("ranks/timeline?ranks=0,2,77");
  EXPECT_TRUE(has(lanes, R"("lanes":[{"rank":0,)"));
  EXPECT_TRUE(has(lanes, R"({"rank":2,)"));
  EXPECT_FALSE(has(lanes, R"({"rank":1,)"));
  EXPECT_TRUE(has(lanes, R"("path":[[)"));
  EXPECT_FALSE(has(lanes, R"("bins":[[)"));
  EXPECT_TRUE(has(get("ranks/timeline?ranks="), R"("lanes":[],)"));
  EXPECT_EQ(get("ranks/timeline?ranks=x").status, 400);
}

TEST_F(JobApi, collectives_name_who_was_waited_for_and_have_their_arrivals) {
  const Answer list = get("ranks/collectives?rows=1");
  EXPECT_TRUE(has(list, R"("from_rank":2)")) << list.body;
  const size_t at = list.body.find("\"id\":") + 5;
  const std::string id = list.body.substr(at, list.body.find(',', at) - at);
  const Answer arrivals = get("ranks/arrivals?id=" + id);
  EXPECT_TRUE(has(arrivals, R"("arrivals":[[0,)")) << arrivals.body;
  EXPECT_EQ(get("ranks/arrivals?id=999999").status, 400);
  EXPECT_EQ(get("ranks/arrivals").status, 404);
}

TEST_F(JobApi, what_is_not_there_is_refused) {
  EXPECT_EQ(get("ranks/nothing").status, 404);
  EXPECT_EQ(get("ranks").status, 404);
  Request post = parse_target("/api/ranks/layout").value();
  post.method = "POST";
  EXPECT_EQ(api_.answer(post).status, 405);
}

TEST_F(JobApi, the_report_of_a_job_holds_what_its_pane_asks_for) {
  const std::string html = one_file(api_, "<body><!--firelane-answers--></body>").value();
  for (const char* key : {R"("traces":{)", R"("ranks/report":{)", R"("ranks/layout":{)", R"("ranks/timeline":{)",
                          R"("ranks/heat?value=wait\u0026rows=256\u0026columns=256":{)",
                          R"("ranks/collectives?order=wait\u0026rows=100":{)", R"("ranks/arrivals?id=)"}) {
    EXPECT_NE(html.find(key), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace firelane::serve
