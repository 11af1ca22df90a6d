// What an execution trace changes: device work follows its data, and not only its order.
#include <gtest/gtest.h>

#include "analyze/graph/data_chain.h"
#include "analyze/testing.h"
#include "import/load.h"
#include "model/assemble.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

Row detail_named(const Model& m, std::string_view name) {
  for (Row detail = 0; detail < m.op_details.size(); ++detail) {
    if (m.text(m.host_slices.name[m.op_details.slice[detail]]) == name) return detail;
  }
  ADD_FAILURE() << "no op " << name;
  return 0;
}

struct Needs {
  std::string_view op, producer;
};

// Joins an execution trace by hand: `known` ops in the order of their calls, and who needs whose data.
Model joined(Model m, const std::vector<std::string_view>& known, const std::vector<Needs>& needs) {
  int64_t node = 0;
  for (const std::string_view op : known) m.op_details.data_node[detail_named(m, op)] = ++node;
  DataDependencies& data = m.data_dependencies;
  std::vector<RawDataDependency> rows;
  for (const Needs& each : needs) {
    rows.push_back(
        {.producer_node = each.producer.empty() ? kNoNumber : m.op_details.data_node[detail_named(m, each.producer)],
         .op = detail_named(m, each.op),
         .use = DataUse::kRead});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.op.row < b.op.row; });
  data.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) data.set(i, rows[i], [](const auto& value) { return value; });
  link_data(m);
  return m;
}

// The host is done after 40 us. a is launched at 10 and runs 20..50, b is launched at 15, c at 20.
TraceBuilder three_launches() {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 40})
      .op("A", {.start_us = 9, .end_us = 14})
      .call("cudaLaunchKernel", {.start_us = 10, .end_us = 13, .correlation = 1})
      .op("B", {.start_us = 14, .end_us = 19})
      .call("cudaLaunchKernel", {.start_us = 15, .end_us = 18, .correlation = 2})
      .op("C", {.start_us = 19, .end_us = 24})
      .call("cudaLaunchKernel", {.start_us = 20, .end_us = 23, .correlation = 3});
  return builder;
}

// One after the other on a stream: a 20..50, b 51..71, c 72..82.
Model on_one_stream() {
  TraceBuilder builder = three_launches();
  builder.kernel("a", {.start_us = 20, .end_us = 50, .correlation = 1})
      .kernel("b", {.start_us = 51, .end_us = 71, .correlation = 2})
      .kernel("c", {.start_us = 72, .end_us = 82, .correlation = 3});
  return builder.build();
}

TEST(GraphData, without_an_execution_trace_order_is_all_there_is) {
  const Study s = study(on_one_stream());
  EXPECT_FALSE(s.graph.has_data);
  EXPECT_EQ(binding(s, 1).kind, EdgeKind::kStream);
  EXPECT_EQ(replayed_us(s, {}), 82);
  EXPECT_EQ(replayed_us(s, {.data_order_only = true}), 82);
}

TEST(GraphData, a_kernel_that_reads_the_one_before_follows_its_data) {
  const Study s = study(joined(on_one_stream(), {"A", "B", "C"}, {{"B", "A"}, {"C", "B"}}));
  EXPECT_EQ(binding(s, 1).kind, EdgeKind::kData);
  EXPECT_EQ(binding(s, 2).kind, EdgeKind::kData);
  EXPECT_EQ(replayed_us(s, {}), 82);
  EXPECT_EQ(replayed_us(s, {.data_order_only = true}), 82);
  const CriticalPath path = critical_path(*s.host, s.graph, s.recorded);
  // b and c with the gaps before them: 1 + 20 + 1 + 10 us.
  EXPECT_EQ(path.by_edge[static_cast<size_t>(EdgeKind::kData)], 32'000);
  EXPECT_EQ(path.by_edge[static_cast<size_t>(EdgeKind::kStream)], 0);
}

TEST(GraphData, independent_kernels_are_held_by_their_order_alone) {
  // Launched onto an idle device a kernel starts after 10 us: b could run 25..45, c 30..40.
  const Study s = study(joined(on_one_stream(), {"A", "B", "C"}, {{"A", ""}}));
  EXPECT_EQ(binding(s, 1).kind, EdgeKind::kStream);
  EXPECT_TRUE(binding(s, 1).is_order_only);
  EXPECT_EQ(replayed_us(s, {}), 82);
  EXPECT_EQ(replayed_us(s, {.data_order_only = true}), 50);  // the end of a
}

TEST(GraphData, data_skips_what_lies_between) {
  // c reads a, b is independent: a 20..50, c 51..61, b 25..45.
  const Study s = study(joined(on_one_stream(), {"A", "B", "C"}, {{"C", "A"}}));
  EXPECT_EQ(replayed_us(s, {}), 82);
  EXPECT_EQ(replayed_us(s, {.data_order_only = true}), 61);
}

TEST(GraphData, work_that_nothing_is_known_of_keeps_its_place) {
  // b is unknown: it stays behind a, and c behind it.
  const Study s = study(joined(on_one_stream(), {"A", "C"}, {{"A", ""}}));
  EXPECT_EQ(replayed_us(s, {.data_order_only = true}), 82);
}

TEST(GraphData, kernels_of_one_operator_keep_their_order) {
  TraceBuilder builder;
  builder.step(1, {.start_us = 0, .end_us = 40})
      .op("A", {.start_us = 9, .end_us = 24})
      .call("cudaLaunchKernel", {.start_us = 10, .end_us = 13, .correlation = 1})
      .call("cudaLaunchKernel", {.start_us = 15, .end_us = 18, .correlation = 2})
      .kernel("first", {.start_us = 20, .end_us = 50, .correlation = 1})
      .kernel("second", {.start_us = 51, .end_us = 71, .correlation = 2});
  const Study s = study(joined(builder.build(), {"A"}, {{"A", ""}}));
  EXPECT_EQ(replayed_us(s, {.data_order_only = true}), 71);
}

// b, on a stream of its own, begins right after a ended.
Model on_two_streams() {
  TraceBuilder builder = three_launches();
  builder.kernel("a", {.start_us = 20, .end_us = 50, .correlation = 1})
      .kernel("b", {.start_us = 51, .end_us = 71, .stream = 8, .correlation = 2})
      .kernel("c", {.start_us = 52, .end_us = 62, .correlation = 3});
  return builder.build();
}
Row work_named(const Model& m, std::string_view name) {
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    if (m.text(m.device_slices.name[row]) == name) return row;
  }
  ADD_FAILURE() << "no work " << name;
  return 0;
}

TEST(GraphData, a_wait_for_another_stream_is_known_and_not_inferred) {
  const Model plain = on_two_streams();
  const Study inferred = study(plain);
  EXPECT_EQ(binding(inferred, work_named(plain, "b")).kind, EdgeKind::kOtherStream);
  EXPECT_EQ(inferred.graph.inferred_waits, 1);
  const Model with_data = joined(on_two_streams(), {"A", "B", "C"}, {{"B", "A"}});
  const Study known = study(with_data);
  EXPECT_EQ(binding(known, work_named(with_data, "b")).kind, EdgeKind::kData);
  EXPECT_EQ(known.graph.inferred_waits, 0);
  // a twice as fast: 20..35, b 36..56, and c, one us behind it on its stream, 37..47 at the earliest.
  EXPECT_EQ(replayed_us(known, {.device = {{.row = work_named(with_data, "a"), .keep = 0.5}}}), 56);
}

TEST(GraphData, a_dependency_that_the_recorded_times_contradict_is_no_edge) {
  TraceBuilder builder = three_launches();
  builder.kernel("a", {.start_us = 20, .end_us = 50, .correlation = 1})
      .kernel("b", {.start_us = 30, .end_us = 71, .stream = 8, .correlation = 2})
      .kernel("c", {.start_us = 52, .end_us = 62, .correlation = 3});
  const Study s = study(joined(builder.build(), {"A", "B", "C"}, {{"B", "A"}}));
  EXPECT_EQ(replayed_us(s, {}), 71);
}

// Stream 7 runs a 20..50 and c 51..81. Stream 8 waits for an event behind c: b runs 82..102, and reads a alone.
// Launched at 14 us, c also keeps the host: its step ends at 40 us.
Model with_a_late_event() {
  const auto op = [](const char* name, int ts, int id) {
    return std::string(R"({"ph": "X", "cat": "cpu_op", "name": ")") + name + R"(", "pid": 1, "tid": 1, "ts": )" +
           std::to_string(ts) + R"(, "dur": 4, "args": {"External id": )" + std::to_string(id) +
           R"(, "Record function id": )" + std::to_string(id) + "}},";
  };
  const auto call = [](const char* name, int ts, int correlation) {
    return std::string(R"({"ph": "X", "cat": "cuda_runtime", "name": ")") + name + R"(", "pid": 1, "tid": 1, "ts": )" +
           std::to_string(ts) + R"(, "dur": 1, "args": {"correlation": )" + std::to_string(correlation) + "}},";
  };
  const auto kernel = [](const char* name, int ts, int end, int stream, int correlation) {
    return std::string(R"({"ph": "X", "cat": "kernel", "name": ")") + name + R"(", "pid": 0, "tid": )" +
           std::to_string(stream) + R"(, "ts": )" + std::to_string(ts) + R"(, "dur": )" + std::to_string(end - ts) +
           R"(, "args": {"device": 0, "stream": )" + std::to_string(stream) + R"(, "correlation": )" +
           std::to_string(correlation) + "}},";
  };
  const std::string text =
      R"({"schemaVersion": 1, "traceEvents": [)" + op("A", 9, 1) + call("cudaLaunchKernel", 10, 1) + op("C", 14, 2) +
      call("cudaLaunchKernel", 15, 2) + call("cudaEventRecord", 18, 3) + call("cudaStreamWaitEvent", 19, 4) +
      op("B", 20, 3) + call("cudaLaunchKernel", 21, 5) + kernel("a", 20, 50, 7, 1) + kernel("c", 51, 81, 7, 2) +
      kernel("b", 82, 102, 8, 5) +
      R"({"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 8, "ts": 19, "dur": 1,
          "args": {"device": 0, "stream": 8, "correlation": 4, "wait_on_stream": 7,
                   "wait_on_cuda_event_record_corr_id": 3}},
         {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 40}]})";
  Result<Model> loaded = importer::load_trace_bytes(text, "late.json");
  EXPECT_TRUE(loaded.ok());
  return std::move(loaded).value();
}

TEST(GraphData, a_recorded_wait_that_is_longer_than_the_data_needs_was_not_seen_behind_the_data) {
  const Model m = joined(with_a_late_event(), {"A", "C", "B"}, {{"B", "A"}});
  const Study s = study(m);
  const GraphEdge& edge = binding(s, work_named(m, "b"));
  EXPECT_EQ(edge.kind, EdgeKind::kOtherStream);
  EXPECT_EQ(s.graph.nodes[edge.source].row, work_named(m, "c"));
  EXPECT_TRUE(edge.is_order_only);
  EXPECT_EQ(replayed_us(s, {}), 102);
  // Both read nothing of each other: b could follow a, 51..71, and c run beside it.
  EXPECT_LT(replayed_us(s, {.data_order_only = true}), 75);
}

TEST(GraphData, a_recorded_wait_whose_data_is_needed_stays) {
  const Model m = joined(with_a_late_event(), {"A", "C", "B"}, {{"C", "A"}, {"B", "C"}});
  EXPECT_EQ(replayed_us(study(m), {.data_order_only = true}), 102);
}

TEST(GraphData, work_that_nothing_is_known_of_waits_for_all_that_was_recorded) {
  // b is unknown: it stays behind c, and a, which c may leave behind, too.
  const Model m = joined(with_a_late_event(), {"A", "C"}, {{"A", ""}});
  const Study s = study(m);
  EXPECT_FALSE(binding(s, work_named(m, "b")).is_order_only);
  // c beside a from 25 us on, 30 us long; b behind both.
  EXPECT_GE(replayed_us(s, {.data_order_only = true}), 55 + 20);
}

TEST(GraphData, random_dependencies_never_change_what_was_recorded) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    Model m = random_trace(seed);
    std::mt19937 random(seed);
    std::vector<RawDataDependency> rows;
    int64_t node = 0;
    for (Row detail = 0; detail < m.op_details.size(); ++detail) {
      if (random() % 4 != 0) m.op_details.data_node[detail] = ++node;
      if (node > 1 && random() % 2 == 0)
        rows.push_back(
            {.producer_node = 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(node - 1)), .op = detail});
    }
    m.data_dependencies.resize(rows.size());
    for (size_t i = 0; i < rows.size(); ++i)
      m.data_dependencies.set(i, rows[i], [](const auto& value) { return value; });
    link_data(m);
    const Study s = study(m);  // checks that replaying gives the recorded times
    EXPECT_LE(replayed_us(s, {.data_order_only = true}), replayed_us(s, {})) << "seed " << seed;
    const CriticalPath path = critical_path(*s.host, s.graph, s.recorded);
    int64_t sum = 0;
    for (const int64_t time : path.by_edge) sum += time;
    EXPECT_EQ(sum, path.total_ns) << "seed " << seed;
  }
}

TEST(DataChain, the_longest_chain_adds_the_work_of_operators_that_need_each_other) {
  // A 10 us, B 20 us reads A, C 5 us alone, D 7 us reads C and B: A, B, D = 37 of 42 us.
  const Model m = joined(TraceBuilder()
                             .op("A", {.start_us = 0, .end_us = 10})
                             .op("B", {.start_us = 10, .end_us = 30})
                             .op("C", {.start_us = 30, .end_us = 35})
                             .op("D", {.start_us = 35, .end_us = 42})
                             .build(),
                         {"A", "B", "C", "D"}, {{"B", "A"}, {"D", "C"}, {"D", "B"}, {"A", ""}});
  const DataChain chain = data_chain(m);
  EXPECT_EQ(chain.work_ns, 42'000);
  EXPECT_EQ(chain.length_ns, 37'000);
  EXPECT_EQ(chain.dependencies, 3);
  EXPECT_EQ(chain.outside, 1);
  ASSERT_EQ(chain.links.size(), 3u);
  EXPECT_EQ(m.text(m.host_slices.name[chain.links[1].op]), "B");
  EXPECT_EQ(chain.links[1].done_ns, 30'000);
}

TEST(DataChain, a_caller_is_done_after_those_that_it_calls) {
  // Outer 30 us: Inner takes 20 of them. Next, 5 us, reads Inner and need not wait for the rest of Outer.
  const Model m = joined(TraceBuilder()
                             .op("Outer", {.start_us = 0, .end_us = 30})
                             .op("Inner", {.start_us = 5, .end_us = 25})
                             .op("Next", {.start_us = 30, .end_us = 35})
                             .build(),
                         {"Outer", "Inner", "Next"}, {{"Next", "Inner"}});
  const DataChain chain = data_chain(m);
  EXPECT_EQ(chain.work_ns, 35'000);
  EXPECT_EQ(chain.length_ns, 30'000);  // Inner and then Outer's own 10 us
}

TEST(DataChain, the_work_of_an_operator_that_launches_is_on_the_device) {
  const Model m = joined(on_one_stream(), {"A", "B", "C"}, {{"B", "A"}});
  EXPECT_EQ(data_chain(m).work_ns, 60'000);
  EXPECT_EQ(data_chain(m).length_ns, 50'000);
}

}  // namespace
}  // namespace firelane::analyze
