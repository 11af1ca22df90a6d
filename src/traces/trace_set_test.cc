#include "traces/trace_set.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <new>
#include <thread>

#include "model/trace_builder.h"

namespace firelane {
namespace {

Model named(const std::string& path) {
  Model model = TraceBuilder().op("aten::mm", {.start_us = 0, .end_us = 20}).build();
  model.info.path = path;
  return model;
}

Result<Model> load_named(const std::string& path, const LoadProgress&) { return named(path); }

TEST(TraceSet, holds_the_traces_in_the_order_of_their_paths) {
  TraceSet traces({"a.json", "b.lane"}, load_named);
  traces.wait_until_loaded();
  ASSERT_EQ(traces.size(), 2u);
  EXPECT_EQ(traces.trace(0)->model().info.path, "a.json");
  EXPECT_EQ(traces.trace(1)->model().info.path, "b.lane");
  EXPECT_EQ(traces.trace(2), nullptr);
}

TEST(TraceSet, one_that_is_there_already_is_ready_and_shared) {
  const auto trace = std::make_shared<const StudiedTrace>(named("a.json"));
  const TraceSet traces(trace);
  EXPECT_EQ(traces.path(0), "a.json");
  EXPECT_EQ(traces.status(0).state, TraceSet::State::kReady);
  EXPECT_EQ(traces.trace(0), trace);
}

TEST(TraceSet, a_trace_that_loads_tells_its_progress_and_cannot_be_had_yet) {
  std::barrier half(2);
  std::barrier rest(2);
  TraceSet traces({"a.json"}, [&](const std::string& path, const LoadProgress& progress) -> Result<Model> {
    progress(50, 100);
    half.arrive_and_wait();
    rest.arrive_and_wait();
    return named(path);
  });
  half.arrive_and_wait();
  const TraceSet::Status status = traces.status(0);
  EXPECT_EQ(status.state, TraceSet::State::kLoading);
  EXPECT_EQ(status.bytes_done, 50u);
  EXPECT_EQ(status.bytes_total, 100u);
  EXPECT_EQ(traces.trace(0), nullptr);
  rest.arrive_and_wait();
  while (traces.status(0).state == TraceSet::State::kLoading) traces.wait_for(0, std::chrono::seconds(1));
  EXPECT_NE(traces.trace(0), nullptr);
}

TEST(TraceSet, one_that_fails_says_why_and_leaves_the_others_alone) {
  TraceSet traces({"a.json", "b.json", "c.json"}, [](const std::string& path, const LoadProgress&) -> Result<Model> {
    if (path == "a.json") return Error{"a.json: empty"};
    if (path == "b.json") throw std::bad_alloc();
    return named(path);
  });
  traces.wait_until_loaded();
  EXPECT_EQ(traces.status(0).error, "a.json: empty");
  EXPECT_EQ(traces.status(1).error, "b.json: not enough memory");
  EXPECT_EQ(traces.trace(1), nullptr);
  EXPECT_EQ(traces.status(2).state, TraceSet::State::kReady);
}

TEST(TraceSet, loads_what_is_asked_for_and_keeps_the_latest) {
  std::atomic<int> loads = 0;
  const auto load = [&](const std::string& path, const LoadProgress&) -> Result<Model> {
    ++loads;
    return named(path);
  };
  const TraceSet traces({"a.json", "b.json", "c.json"}, load, {}, {.when_asked = true, .most_loaded = 2});
  const auto get = [&](size_t id) {
    traces.ask_for(id);
    while (traces.status(id).state == TraceSet::State::kLoading) traces.wait_for(id, std::chrono::seconds(1));
    return traces.trace(id);
  };
  EXPECT_EQ(traces.status(0).state, TraceSet::State::kUnloaded);
  EXPECT_EQ(traces.trace(0), nullptr);
  const auto first = get(0);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(get(0), first);
  EXPECT_NE(get(2), nullptr);
  EXPECT_EQ(loads, 2);
  EXPECT_EQ(get(0), first);  // asked for again: now 2 is the older one
  EXPECT_NE(get(1), nullptr);
  EXPECT_EQ(traces.status(2).state, TraceSet::State::kUnloaded);
  EXPECT_EQ(first->model().info.path, "a.json");  // whoever holds it keeps it
  EXPECT_EQ(traces.trace(0), first);
  EXPECT_EQ(get(2)->model().info.path, "c.json");
  EXPECT_EQ(loads, 4);
}

size_t slice_count(const Model& model) { return model.host_slices.size(); }

TEST(TraceSet, a_trace_is_prepared_before_it_counts_as_loaded) {
  std::atomic<bool> was_ready = true;
  TraceSet* set = nullptr;
  std::barrier known(2);
  TraceSet traces({"a.json"}, load_named, [&](const StudiedTrace& trace) {
    known.arrive_and_wait();
    was_ready = set->trace(0) != nullptr;
    trace.get<slice_count>();
  });
  set = &traces;
  known.arrive_and_wait();
  traces.wait_until_loaded();
  EXPECT_FALSE(was_ready);
  EXPECT_NE(traces.trace(0), nullptr);
}

}  // namespace
}  // namespace firelane
