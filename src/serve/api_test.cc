// The protocol without HTTP: each request on a small trace with answers worked out by hand.
#include "serve/api.h"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "compare/difference/difference.h"
#include "model/trace_builder.h"
#include "report/comparison.h"
#include "report/registry.h"

namespace firelane::serve {
namespace {

// ProfilerStep#1 [0,200): aten::mm [0,20) launches gemm [30,60), aten::add [100,120) launches add [130,150).
TraceBuilder small_builder() {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 200})
      .op("aten::mm", {.start_us = 0, .end_us = 20, .external_id = 1})
      .call("cudaLaunchKernel", {.start_us = 5, .end_us = 9, .correlation = 7, .external_id = 1})
      .kernel("gemm", {.start_us = 30, .end_us = 60, .correlation = 7, .external_id = 1})
      .op("aten::add", {.start_us = 100, .end_us = 120, .external_id = 2, .dims = "[[4, 4]]"})
      .call("cudaLaunchKernel", {.start_us = 105, .end_us = 109, .correlation = 8, .external_id = 2})
      .kernel("add", {.start_us = 130, .end_us = 150, .correlation = 8, .external_id = 2});
  return builder;
}
Model small_trace() { return small_builder().build(); }

Answer ask(Api& api, std::string_view target) {
  const Result<Request> request = parse_target(target);
  return request.ok() ? api.answer(request.value()) : refusal(400, request.error().message);
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

#define EXPECT_HOLDS(answer, part)                                               \
  do {                                                                           \
    const Answer got = (answer);                                                 \
    EXPECT_TRUE(holds(got.body, part)) << "no " << (part) << " in " << got.body; \
  } while (false)

TEST(Api, lists_traces_with_their_state) {
  Api api(small_trace(), "1.2");
  EXPECT_HOLDS(ask(api, "/api/traces"), R"("traces":[{"id":0,)");
  EXPECT_HOLDS(ask(api, "/api/traces"), R"("state":"ready")");
}

TEST(Api, a_listing_that_waits_answers_when_its_trace_is_there) {
  std::barrier asked(2);
  Api api(std::make_shared<TraceSet>(std::vector<std::string>{"a.json"},
                                     [&](const std::string&, const LoadProgress&) -> Result<Model> {
                                       asked.arrive_and_wait();
                                       return small_trace();
                                     }),
          "1.2");
  EXPECT_HOLDS(ask(api, "/api/traces?trace=0&wait_ms=1"), R"("state":"loading")");
  asked.arrive_and_wait();
  Answer last = ask(api, "/api/traces?trace=0&wait_ms=1000");
  while (holds(last.body, R"("state":"loading")")) last = ask(api, "/api/traces?trace=0&wait_ms=1000");
  EXPECT_HOLDS(last, R"("state":"ready")");
  EXPECT_EQ(ask(api, "/api/traces?trace=7&wait_ms=1").status, 400);
  EXPECT_EQ(ask(api, "/api/traces?trace=0&wait_ms=5000").status, 400);
}

TEST(Api, a_trace_that_loads_tells_its_progress_and_answers_409_until_it_is_there) {
  std::barrier half(2);
  std::barrier rest(2);
  const auto traces = std::make_shared<TraceSet>(
      std::vector<std::string>{"dir/a.json", "b.json"},
      [&](const std::string& path, const LoadProgress& progress) -> Result<Model> {
        if (path == "b.json") return Error{"b.json: empty"};
        progress(50, 100);
        half.arrive_and_wait();
        rest.arrive_and_wait();
        return small_trace();
      },
      prepare);
  Api api(traces, "1.2");
  half.arrive_and_wait();
  EXPECT_HOLDS(ask(api, "/api/traces"),
               R"({"id":0,"name":"a.json","state":"loading","bytes_done":50,"bytes_total":100,"error":null})");
  EXPECT_EQ(ask(api, "/api/t/0/lanes").status, 409);
  rest.arrive_and_wait();
  traces->wait_until_loaded();
  EXPECT_EQ(ask(api, "/api/t/0/lanes").status, 200);
  EXPECT_HOLDS(ask(api, "/api/traces"), R"("state":"failed","bytes_done":0,"bytes_total":0,"error":"b.json: empty")");
  EXPECT_EQ(ask(api, "/api/t/1/lanes").status, 409);
}

// Steps of one op with a kernel of `kernel_us` each.
Model steps_of(double kernel_us) {
  TraceBuilder builder;
  double now = 0;
  for (int64_t step = 1; step <= 6; ++step) {
    const double end = now + 40 + kernel_us;
    builder.step(step, {.start_us = now, .end_us = end})
        .op("aten::mm", {.start_us = now + 1, .end_us = now + 20, .external_id = step})
        .call("cudaLaunchKernel", {.start_us = now + 5, .end_us = now + 9, .correlation = step, .external_id = step})
        .kernel("gemm",
                {.start_us = now + 30, .end_us = now + 30 + kernel_us, .correlation = step, .external_id = step})
        .call("cudaDeviceSynchronize", {.start_us = now + 21, .end_us = end - 1});
    now = end;
  }
  return builder.build();
}

// a.json, b.json twice as slow, and c.json, which cannot be read.
std::shared_ptr<TraceSet> three_traces() {
  const auto load = [](const std::string& path, const LoadProgress&) -> Result<Model> {
    if (path == "c.json") return Error{"c.json: empty"};
    return steps_of(path == "a.json" ? 100 : 240);
  };
  auto traces = std::make_shared<TraceSet>(std::vector<std::string>{"a.json", "b.json", "c.json"}, load);
  traces->wait_until_loaded();
  return traces;
}

TEST(Api, two_traces_are_compared_as_firelane_compare_does) {
  Api api(three_traces(), "1.2");
  EXPECT_HOLDS(ask(api, "/api/traces"),
               R"("panes":["compare"],"first_pane":null,"compare":{"before":[0],"after":[1],"by":null})");
  const Answer answer = ask(api, "/api/compare?before=0&after=1");
  EXPECT_EQ(answer.status, 200) << answer.body;
  const compare::Difference difference = compare::compare_sides({compare::summarize(StudiedTrace(steps_of(100)))},
                                                                {compare::summarize(StudiedTrace(steps_of(240)))});
  EXPECT_HOLDS(answer, report::comparison_headline(difference));
  EXPECT_HOLDS(answer, R"({"name":"parts","title":"Where the difference comes from)");
  EXPECT_EQ(ask(api, "/api/compare").body, answer.body) << "the sides that the set was opened with";
  EXPECT_NE(ask(api, "/api/compare?before=1&after=0").body, answer.body);
  EXPECT_HOLDS(ask(api, "/api/compare?before=0&after=1,0"),
               R"({"name":"runs_after","label":"","kind":"number","value":2})");
}

TEST(Api, the_differential_flame_graph_has_both_sides_of_a_frame) {
  Api api(three_traces(), "1.2");
  EXPECT_HOLDS(ask(api, "/api/compare/flame?by=device"),
               R"("note":"","nodes":[[0,"aten::mm",100000,240000],[1,"gemm",100000,240000]]})");
  EXPECT_HOLDS(ask(api, "/api/compare/flame?by=stack"), "ops are shown instead");
}

TEST(Api, runs_of_a_set_are_a_table_and_those_that_cannot_be_read_are_left_out) {
  Api api(three_traces(), "1.2", {.by = report::RunsBy::kBatch, .is_first = true});
  EXPECT_HOLDS(ask(api, "/api/traces"), R"("first_pane":"compare","compare":{"before":[0],"after":[1],"by":"batch"})");
  EXPECT_HOLDS(ask(api, "/api/runs?by=file"), R"("row_count":2)");
  EXPECT_HOLDS(ask(api, "/api/runs"), R"({"name":"name","label":"Batch","kind":"text"})");
}

TEST(Api, notes_of_a_comparison_name_files_without_their_folders) {
  const auto load = [](const std::string&, const LoadProgress&) -> Result<Model> {
    return TraceBuilder().kernel("gemm", {.start_us = 0, .end_us = 10}).build();
  };
  const auto traces = std::make_shared<TraceSet>(std::vector<std::string>{"/home/me/a.json", "/home/me/b.json"}, load);
  traces->wait_until_loaded();
  Api api(traces, "1.2");
  const Answer answer = ask(api, "/api/compare");
  EXPECT_HOLDS(answer, "a.json: no steps were found");
  EXPECT_FALSE(holds(answer.body, "/home/me")) << answer.body;
}

TEST(Api, a_comparison_that_cannot_be_made_says_why) {
  Api api(three_traces(), "1.2");
  EXPECT_EQ(ask(api, "/api/compare?before=0&after=2").status, 409);
  EXPECT_HOLDS(ask(api, "/api/compare?before=0&after=2"), "c.json: empty");
  for (const char* target : {"/api/compare?before=3", "/api/compare?before=x", "/api/compare?threshold=-1",
                             "/api/compare/flame?by=x", "/api/compare/flame?bins=0", "/api/runs?by=x"}) {
    EXPECT_EQ(ask(api, target).status, 400) << target;
  }
  EXPECT_EQ(ask(api, "/api/compare/more").status, 404);
  EXPECT_EQ(ask(api, "/api/compare/flame/more").status, 404);
  Api alone(small_trace(), "1.2");
  EXPECT_HOLDS(ask(alone, "/api/traces"), R"("panes":[],"first_pane":null,"compare":null)");
  EXPECT_EQ(ask(alone, "/api/compare").status, 404);
  EXPECT_EQ(ask(alone, "/api/runs").status, 200);
}

TEST(Api, what_is_not_there_is_404_and_what_cannot_be_read_400) {
  Api api(small_trace(), "1.2");
  for (const char* target :
       {"/api", "/api/", "/api/x", "/api/t", "/api/t/0", "/api/t/0/", "/api/t/1/lanes", "/api/t/-1/lanes",
        "/api/t/0x0/lanes", "/api/t/99999999999999999999/lanes", "/api/t/0/nonsense", "/api/t/0/lanes/more",
        "/api/t/0/report/../lanes", "/api/t/0/slice/h999", "/api/t/0/slice/x1", "/api/t/0/slice/",
        "/api/t/0/explain/none", "/api/t/0/report/none", "/api/traces/0"}) {
    EXPECT_EQ(ask(api, target).status, 404) << target;
  }
  for (const char* target :
       {"/api/t/0/tiles", "/api/t/0/tiles?lanes=9", "/api/t/0/tiles?lanes=0&level=53",
        "/api/t/0/tiles?lanes=0&count=17", "/api/t/0/tiles?lanes=0&first=-1", "/api/t/0/tiles?lanes=0&first=1e3",
        "/api/t/0/search?text=", "/api/t/0/flame?order=x", "/api/t/0/report/ops?rows=-1",
        "/api/t/0/report/ops?sort_by=x", "/api/t/0/counters?bins=0", "/api/%zz", "/api/%0", "api"}) {
    EXPECT_EQ(ask(api, target).status, 400) << target;
  }
}

TEST(Api, only_sql_takes_a_post_and_bodies_have_a_limit) {
  Api api(small_trace(), "1.2");
  Request request = parse_target("/api/t/0/sql").value();
  EXPECT_EQ(api.answer(request).status, 405);
  request.method = "POST";
  EXPECT_EQ(api.answer(request).status, 400);
  request.body = std::string(kMaxBodyBytes + 1, ' ');
  EXPECT_EQ(api.answer(request).status, 413);
  request = parse_target("/api/t/0/lanes").value();
  request.method = "POST";
  EXPECT_EQ(api.answer(request).status, 405);
}

TEST(Api, sql_answers_a_described_table_and_counts_the_rows_it_does_not_send) {
  Api api(small_trace(), "1.2");
  Request request = parse_target("/api/t/0/sql").value();
  request.method = "POST";
  request.body = R"({"query": "select name, duration_ns from kernels order by duration_ns desc", "rows": 1})";
  EXPECT_HOLDS(api.answer(request), R"("row_count":2)");
  EXPECT_HOLDS(api.answer(request), R"("rows":[["gemm",30000]])");
  EXPECT_HOLDS(api.answer(request), R"({"name":"duration_ns","label":"duration_ns","kind":"duration"})");
  request.body = R"({"query": "select nothing from nowhere"})";
  EXPECT_EQ(api.answer(request).status, 400);
  request.body = R"({"query": "create table t as select 1"})";
  EXPECT_EQ(api.answer(request).status, 400);
  request.body = R"({"query": "attach '/tmp/x' as x"})";
  EXPECT_EQ(api.answer(request).status, 400);
}

TEST(Api, lanes_come_with_rows_counters_and_steps) {
  Api api(small_trace(), "1.2");
  const Answer answer = ask(api, "/api/t/0/lanes");
  EXPECT_HOLDS(answer, R"({"end_ns":200000,"lanes":[{"id":0,)");
  EXPECT_HOLDS(answer, R"("kind":"thread")");
  EXPECT_HOLDS(answer, R"("rows":3,"slices":5,"first_ns":0,"last_ns":200000,"busy_ns":200000)");
  EXPECT_HOLDS(
      answer,
      R"("kind":"stream","name":"stream 7","rows":1,"slices":2,"first_ns":30000,"last_ns":150000,"busy_ns":50000)");
  EXPECT_HOLDS(answer, R"("name":"busy","unit":"%","min":0,"max":100)");
  EXPECT_HOLDS(answer, R"("name":"queued work","unit":"","min":0,"max":1)");
  EXPECT_HOLDS(answer, R"("steps":[{"number":1,"start_ns":0,"duration_ns":200000}])");
}

TEST(Api, counters_are_null_before_the_first_sample_and_hold_the_last_one) {
  Model model = small_builder().counter("power", 40, 100).counter("power", 60, 300).counter("power", 70, 200).build();
  Api api(std::move(model), "1.2");
  EXPECT_HOLDS(
      ask(api, "/api/t/0/counters?from_ns=0&to_ns=200000&bins=4&tracks=2"),
      R"("bin_ns":50000,"tracks":[{"id":2,"min":[100,100,200,200],"max":[100,300,200,200],"last":[100,200,200,200]}])");
  EXPECT_HOLDS(ask(api, "/api/t/0/counters?from_ns=0&to_ns=40000&bins=2&tracks=2"), R"("min":[null,null])");
  // gemm runs from 30 to 60 us.
  EXPECT_HOLDS(ask(api, "/api/t/0/counters?from_ns=0&to_ns=80000&bins=2&tracks=0"), R"("max":[25,50])");
}

TEST(Api, counters_that_name_their_device_and_unit_say_them_once_and_energy_begins_at_zero) {
  TraceBuilder builder = small_builder();
  for (const double at_us : {10.0, 20.0}) builder.counter("GPU 0 energy (J)", at_us, 15'000 + at_us);
  builder.counter("GPU 1 energy (J)", 10, 900).counter("GPU 0 temperature (C)", 10, 34);
  Api api(builder.build(), "1.2");
  const Answer answer = ask(api, "/api/t/0/lanes");
  EXPECT_HOLDS(answer, R"({"id":2,"group":"GPU 0","name":"energy used","unit":"J","min":0,"max":10,"samples":2},)"
                       R"({"id":3,"group":"GPU 0","name":"temperature","unit":"°C","min":34,"max":34,"samples":1}])");
  EXPECT_HOLDS(ask(api, "/api/t/0/counters?from_ns=0&to_ns=30000&bins=3&tracks=2"), R"("last":[null,0,10])");
}

TEST(Api, hardware_metrics_have_names_and_units_for_people_and_lie_with_their_gpu) {
  TraceBuilder builder = small_builder();
  builder.gpu_counter(0, "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", 10, 87.5);
  builder.gpu_counter(0, "pcie__read_bytes.sum.per_second", 10, 1e9);
  builder.gpu_counter(1, "lts__t_sectors.sum", 10, 5);
  Api api(builder.build(), "1.2");
  const Answer answer = ask(api, "/api/t/0/lanes");
  EXPECT_HOLDS(answer, R"("group":"GPU 0","name":"SMs active","unit":"%","min":87.5,"max":87.5,"samples":1})");
  EXPECT_HOLDS(answer, R"("group":"GPU 0","name":"PCIe to the GPU","unit":"bytes/s",)");
  EXPECT_HOLDS(answer, R"("group":"GPU 1","name":"lts__t_sectors.sum","unit":"","min":5)");
}

TEST(Api, a_kernel_says_how_full_the_device_was_and_why_not_fuller) {
  DeviceProperties device;
  device.id = 0;
  device.multiprocessors = 100;
  device.max_threads_per_multiprocessor = 2048;
  device.registers_per_multiprocessor = 65'536;
  device.shared_memory_per_multiprocessor_bytes = 200'000;
  device.warp_size = 32;
  Api api(small_builder()
              .device(device)
              .kernel("few", {.start_us = 160, .end_us = 170, .grid = 100, .block = 256, .occupancy_percent = 12.5})
              .build(),
          "1.2");
  EXPECT_HOLDS(ask(api, "/api/t/0/slice/d2"),
               R"-("occupancy":{"percent":12.5,"limit":"grid","limit_text":"the grid (too few blocks)"})-");
  EXPECT_HOLDS(ask(api, "/api/t/0/slice/d0"), R"("occupancy":null)");
}

TEST(Api, a_kernel_knows_its_op_its_launch_its_step_and_its_likes) {
  Api api(small_trace(), "1.2");
  const Answer answer = ask(api, "/api/t/0/slice/d0");
  EXPECT_HOLDS(answer, R"({"ref":"d0","name":"gemm","kind":"kernel","category":"kernel",)");
  EXPECT_HOLDS(answer, R"("start_ns":30000,"duration_ns":30000,"self_ns":30000,"step":1)");
  EXPECT_HOLDS(answer, R"("arrows":[{"kind":"op","from":{"ref":"h1","lane":0,"row":1,"name":"aten::mm")");
  EXPECT_HOLDS(answer, R"({"kind":"launch","from":{"ref":"h2")");
  EXPECT_HOLDS(
      answer,
      R"("same_name":{"count":1,"total_ns":30000,"min_ns":30000,"max_ns":30000,"median_ns":30000,"longer":0,"previous":null,"next":null})");
}

TEST(Api, an_op_knows_whose_data_it_needs) {
  Model model = small_trace();
  model.data_dependencies.resize(1);
  model.data_dependencies.op[0] = model.op_detail(3);
  model.data_dependencies.producer[0] = model.op_detail(1);
  Api api(std::move(model), "1.2");
  for (const char* const slice : {"/api/t/0/slice/h1", "/api/t/0/slice/h3"}) {
    EXPECT_HOLDS(ask(api, slice), R"({"kind":"data","from":{"ref":"h1")");
  }
}

TEST(Api, an_op_knows_its_parent_children_and_args) {
  Api api(small_trace(), "1.2");
  const Answer answer = ask(api, "/api/t/0/slice/h3");
  EXPECT_HOLDS(answer, R"("name":"aten::add","kind":"op")");
  EXPECT_HOLDS(answer, R"("self_ns":16000)");
  EXPECT_HOLDS(answer, R"("Input Dims":[[4, 4]])");
  EXPECT_HOLDS(answer, R"("parent":{"ref":"h0","lane":0,"row":0,"name":"ProfilerStep#1")");
  EXPECT_HOLDS(answer, R"("children":[{"ref":"h4")");
  EXPECT_HOLDS(answer, R"("child_count":1)");
  EXPECT_HOLDS(answer, R"("to":{"ref":"d1")");
  const Answer step = ask(api, "/api/t/0/slice/h0");
  EXPECT_HOLDS(step, R"("child_count":2)");
  EXPECT_HOLDS(step, R"("self_ns":160000)");
}

TEST(Api, search_finds_names_in_any_case_and_find_walks_over_the_hits) {
  Api api(small_trace(), "1.2");
  EXPECT_HOLDS(
      ask(api, "/api/t/0/search?text=ADD&bins=2"),
      R"({"slices":2,"names":[{"name":"aten::add","slices":1,"total_ns":20000},{"name":"add","slices":1,"total_ns":20000}],"density":[0,2]})");
  EXPECT_HOLDS(ask(api, "/api/t/0/search?text=add&exact=1&bins=1"), R"({"slices":1,)");
  EXPECT_HOLDS(ask(api, "/api/t/0/find?text=cudaLaunch&from_ns=5000&direction=1"), R"("start_ns":105000)");
  EXPECT_HOLDS(ask(api, "/api/t/0/find?text=cudaLaunch&from_ns=105000&direction=1"), R"({"slice":null})");
  EXPECT_HOLDS(ask(api, "/api/t/0/find?text=cudaLaunch&from_ns=105000&direction=-1"), R"("start_ns":5000)");
  EXPECT_HOLDS(ask(api, "/api/t/0/find?text=m&direction=0"), R"("name":"gemm")");
  EXPECT_HOLDS(ask(api, "/api/t/0/find?text=m&direction=0&lane=0"), R"("name":"aten::mm")");
}

TEST(Api, the_next_gap_of_a_stream_has_a_cause) {
  Api api(small_trace(), "1.2");
  EXPECT_HOLDS(ask(api, "/api/t/0/gap?from_ns=0&direction=1"), R"("start_ns":60000,"duration_ns":70000,"cause":")");
  EXPECT_HOLDS(ask(api, "/api/t/0/gap?from_ns=0&direction=1"),
               R"("cause":"host_unrecorded","cause_text":"the host was between operators)");
  EXPECT_HOLDS(ask(api, "/api/t/0/gap?from_ns=60000&direction=1"), R"({"gap":null})");
  EXPECT_HOLDS(ask(api, "/api/t/0/gap?from_ns=0&direction=1&min_ns=70001"), R"({"gap":null})");
}

TEST(Api, every_report_is_described) {
  Api api(small_trace(), "1.2");
  for (const report::ReportSpec& spec : report::all_reports()) {
    const Answer answer = ask(api, "/api/t/0/report/" + std::string(spec.name) + "?rows=5");
    EXPECT_EQ(answer.status, 200) << spec.name;
    EXPECT_TRUE(holds(answer.body, R"({"title":")") && holds(answer.body, R"("tables":[)")) << answer.body;
  }
  EXPECT_HOLDS(ask(api, "/api/t/0/report/kernels?rows=1"), R"("row_count":2)");
  EXPECT_HOLDS(ask(api, "/api/t/0/report/kernels"), R"("help":"The operator that launched most of it."})");
}

TEST(Api, the_overview_has_the_verdict_and_the_steps) {
  Api api(small_trace(), "1.2");
  const Answer answer = ask(api, "/api/t/0/overview");
  EXPECT_HOLDS(answer, R"("verdict":{"text":")");
  EXPECT_HOLDS(
      answer,
      R"("state":"judged","limit":"overhead","label":"in between","reason":"overhead-bound in these first steps)");
  EXPECT_HOLDS(answer, R"("steps":{"parts":["compute")");
  EXPECT_HOLDS(answer, R"("labels":["computing")");
  EXPECT_HOLDS(answer, R"("top_ops_by":"device time")");
  EXPECT_HOLDS(answer, R"("top_kernels":[["gemm",30000,1],["add",20000,1]])");
  EXPECT_HOLDS(answer, R"("device_busy":[{"device":0,"name":"GPU 0",)");
  EXPECT_HOLDS(ask(api, "/api/t/0/diagnose"), R"("verdict")");
}

TEST(Api, a_diagnosis_has_the_words_that_the_page_shows) {
  Api api(small_trace(), "1.2");
  const Answer answer = ask(api, "/api/t/0/diagnose");
  EXPECT_HOLDS(answer, R"("state": "judged")");
  EXPECT_HOLDS(answer, R"("headline": "What to fix, largest first")");
  EXPECT_HOLDS(answer, R"("known_from_text": "estimated by subtracting the typical profiling overhead")");
  EXPECT_HOLDS(answer, R"("saves": ")");
  EXPECT_HOLDS(answer, R"( as fast")");
  Api empty(TraceBuilder().build(), "1.2");
  EXPECT_HOLDS(ask(empty, "/api/t/0/diagnose"), R"("headline": "Not enough data")");
  EXPECT_HOLDS(ask(empty, "/api/t/0/overview"), R"("state":"empty")");
}

TEST(Api, the_flame_graph_says_when_the_trace_has_no_stacks) {
  Api api(small_trace(), "1.2");
  EXPECT_HOLDS(ask(api, "/api/t/0/flame?order=left-heavy"), "with_stack=True");
  EXPECT_HOLDS(ask(api, "/api/t/0/flame?order=left-heavy&by=op"),
               R"("note":"","nodes":[[0,0,200000,"ProfilerStep#1",160000,1])");
}

TEST(Api, the_flame_graph_of_samples_has_their_frames_with_the_time_they_stand_for) {
  TraceBuilder builder = small_builder();
  builder.sample("data.py(7): load;train.py(41): main", {.at_us = 50, .weight_us = 40})
      .sample("train.py(44): main", {.at_us = 80, .weight_us = 10});
  Api api(builder.build(), "1.2");
  EXPECT_HOLDS(
      ask(api, "/api/t/0/flame?order=left-heavy&by=sample"),
      R"("total_ns":50000,"note":"","nodes":[[0,0,40000,"train.py(41): main",0,1],[0,40000,10000,"train.py(44): main",10000,1],[1,0,40000,"data.py(7): load",40000,1]])");
  EXPECT_HOLDS(ask(api, "/api/t/0/lanes"), R"("samples":2}]})");
  Api without(small_trace(), "1.2");
  EXPECT_HOLDS(ask(without, "/api/t/0/lanes"), R"("sampled":[]})");
  EXPECT_HOLDS(ask(without, "/api/t/0/flame?order=left-heavy&by=sample"),
               "firelane record --sample; ops are shown instead");
}

TEST(Api, memory_says_what_to_record_when_there_is_none) {
  Api api(small_trace(), "1.2");
  EXPECT_HOLDS(ask(api, "/api/t/0/memory/curve"), R"("devices":[],"device":null)");
  EXPECT_EQ(ask(api, "/api/t/0/memory/alive?at_ns=5").status, 404);
  EXPECT_HOLDS(ask(api, "/api/t/0/memory/segments"), "profile_memory=True");
}

TEST(Api, memory_is_shown_over_time_at_a_moment_and_by_address) {
  Model model = small_builder()
                    .memory({.at_us = 2, .bytes = 4096, .device_type = 1, .device = 0, .address = 0x200000})
                    .memory({.at_us = 102, .bytes = 8192, .device_type = 1, .device = 0, .address = 0x201000})
                    .memory({.at_us = 110, .bytes = -4096, .device_type = 1, .device = 0, .address = 0x200000})
                    .build();
  Api api(std::move(model), "1.2");
  EXPECT_HOLDS(ask(api, "/api/t/0/memory/curve?device=cuda:0&bins=4&from_ns=0&to_ns=200000"),
               R"("bin_ns":50000,"allocated_bytes":[4096,4096,12288,8192])");
  EXPECT_HOLDS(ask(api, "/api/t/0/memory/alive?at_ns=105000"),
               R"("name":"block_count","label":"Blocks","kind":"number","value":2)");
  EXPECT_HOLDS(ask(api, "/api/t/0/memory/alive?at_ns=105000&rows=1"), R"("rows":[[8192,)");
  EXPECT_HOLDS(
      ask(api, "/api/t/0/memory/segments?at_ns=150000"),
      R"({"address":2097152,"bytes":2097152,"blocks":[{"offset":0,"bytes":4096,"state":"free","owner":null},{"offset":4096,"bytes":8192,"state":"allocated")");
  EXPECT_EQ(ask(api, "/api/t/0/memory/alive?device=cuda:7").status, 404);
}

TEST(Api, the_allocators_free_memory_and_its_largest_piece_go_with_the_curve) {
  constexpr uint64_t kSegment = 0x10000000;
  using State = AllocatorBlockState;
  Model model =
      small_builder()
          .allocator_state({.at_us = 0,
                            .address = kSegment,
                            .blocks = {{4096, State::kFree}, {8192, State::kAllocated}, {2048, State::kFree}}})
          .memory({.at_us = 60, .bytes = 4096, .device_type = 1, .device = 0, .address = kSegment})
          .build();
  Api api(std::move(model), "1.2");
  EXPECT_HOLDS(ask(api, "/api/t/0/memory/curve?bins=2&from_ns=0&to_ns=100000"),
               R"("free_bytes":[6144,2048],"largest_free_bytes":[4096,2048])");
}

TEST(Api, a_range_is_summed_up) {
  Api api(small_trace(), "1.2");
  EXPECT_HOLDS(ask(api, "/api/t/0/range?from_ns=50000&to_ns=140000"), R"(["add","kernel",1,10000,10000,10000])");
}

TEST(Api, an_empty_trace_has_an_answer_to_everything) {
  Api api(TraceBuilder().build(), "1.2");
  for (const char* target :
       {"overview", "diagnose", "lanes", "tiles?lanes=", "counters", "range", "search?text=a", "find?text=a", "gap",
        "flame", "memory/curve", "memory/segments", "report/ops", "report/kernels", "report/idle", "report/info"}) {
    EXPECT_EQ(ask(api, "/api/t/0/" + std::string(target)).status, 200) << target;
  }
}

TEST(Api, many_threads_may_ask_at_once) {
  Api api(small_trace(), "1.2");
  const std::string lanes = ask(api, "/api/t/0/lanes").body;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (const char* target :
           {"overview", "lanes", "slice/d0", "report/ops", "search?text=a", "gap", "memory/curve", "lanes"}) {
        EXPECT_EQ(ask(api, "/api/t/0/" + std::string(target)).status, 200);
      }
      EXPECT_EQ(ask(api, "/api/t/0/lanes").body, lanes);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ParseTarget, takes_paths_and_parameters_apart) {
  const Request request = parse_target("/a%2Fb/c?x=1+2&y=%26&z#rest").value();
  EXPECT_EQ(request.path, (std::vector<std::string>{"a/b", "c"}));
  EXPECT_EQ(*request.find("x"), "1 2");
  EXPECT_EQ(*request.find("y"), "&");
  EXPECT_EQ(*request.find("z"), "");
  EXPECT_EQ(request.find("w"), nullptr);
  EXPECT_FALSE(parse_target("/" + std::string(9000, 'a')).ok());
  EXPECT_FALSE(parse_target("/?a=%f").ok());
}

}  // namespace
}  // namespace firelane::serve
