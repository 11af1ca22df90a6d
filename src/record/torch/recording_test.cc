// Ops of a real torch, recorded and read back as text: overloads, collectives, and the C++ Profiler's timed steps.
#include "record/torch/recording.h"

#include <ATen/ATen.h>
#include <firelane/profiler.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "record/core/testing.h"
#include "record/torch/input_capture.h"

namespace firelane::torch_hooks {
namespace {

using record::test::records_of;
using record::test::TemporaryFolder;

std::vector<std::string> lines_with(const std::string& text, std::string_view wanted) {
  std::vector<std::string> found;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.find(wanted) != std::string::npos) found.push_back(line);
  }
  return found;
}

std::string record(const record::RecordOptions& options, const std::function<void()>& program) {
  auto recording = Recording::start(options);
  EXPECT_TRUE(recording.ok());
  program();
  recording.value()->stop();
  return records_of(recording.value()->session().path(), {.times = false, .chunks = false});
}

TEST(Recording, the_overload_of_an_op_is_noted_once) {
  TemporaryFolder folder;
  const std::string text = record({.output = folder / "run.lane"}, [] {
    const at::Tensor x = at::ones({2});
    for (int i = 0; i < 3; ++i) x.add(x);
  });
  EXPECT_EQ(lines_with(text, "begin \"aten::add\"").size(), 3u);
  EXPECT_EQ(lines_with(text, "note overload of text").size(), 3u) << text;  // empty, fill_, add
  EXPECT_EQ(lines_with(text, " Tensor").size(), 1u);
}

TEST(Recording, light_steps_have_no_ops_and_no_memory_until_full_ones_begin) {
  TemporaryFolder folder;
  auto recording = Recording::start({.memory = true, .start_light = true, .output = folder / "run.lane"});
  ASSERT_TRUE(recording.ok());
  const at::Tensor x = at::ones({2});
  x.exp();
  recording.value()->begin_full();
  recording.value()->begin_full();  // idempotent
  x.add(x);
  recording.value()->pause();
  recording.value()->resume();
  x.mul(x);
  recording.value()->stop();
  const std::string text = records_of(recording.value()->session().path(), {.times = false, .chunks = false});
  EXPECT_TRUE(lines_with(text, "aten::exp").empty()) << text;
  EXPECT_EQ(lines_with(text, "begin \"aten::add\"").size(), 1u);
  EXPECT_EQ(lines_with(text, "begin \"aten::mul\"").size(), 1u);
  EXPECT_EQ(lines_with(text, "note level full").size(), 1u);
  EXPECT_EQ(lines_with(text, " memory 0 address ").size(), 2u) << text;  // of add and mul
}

std::atomic<int> g_stage{0};  // 1: an op asks for its line; 2: it gets one

TEST(Recording, an_op_that_asks_for_its_line_while_the_next_recording_begins_without_lines_crashed) {
  TemporaryFolder folder;
  const record::CallLines slow = {.find = [](uint64_t& position) noexcept -> uint64_t {
                                    int before = 0;
                                    if (g_stage.compare_exchange_strong(before, 1)) {
                                      g_stage.notify_all();
                                      g_stage.wait(1);
                                    }
                                    return position = 7;
                                  },
                                  .describe = [](char* text, size_t) noexcept -> size_t {
                                    *text = 'a';
                                    return 1;
                                  }};
  auto first = Recording::start({.lines = true, .call_lines = slow, .output = folder / "first.lane"});
  ASSERT_TRUE(first.ok());
  std::thread op([] { at::ones({2}); });
  g_stage.wait(0);
  first.value()->stop();
  auto second = Recording::start({.output = folder / "second.lane"});
  ASSERT_TRUE(second.ok());
  g_stage = 2;
  g_stage.notify_all();
  op.join();
  second.value()->stop();
}

TEST(Recording, what_is_written_differently_has_another_key) {
  const at::Tensor x = at::ones({2, 3});
  const std::vector<std::vector<c10::IValue>> calls = {
      {},
      {x},
      {x.t()},
      {at::ones({3, 2})},
      {x.to(at::kDouble)},
      {x.to_sparse()},
      {at::Tensor()},
      {x, x},
      {x, 1},
      {x, 1.0},
      {x, true},
      {x, false},
      {x, 0},
      {x, -1},
      {x, 0.5},
      {x, c10::complex<double>(1, 2)},
      {x, c10::IValue()},
      {c10::List<at::Tensor>({x, x})},
      {c10::List<at::Tensor>({x})},
      {c10::List<int64_t>({1, 2})},
      {c10::List<int64_t>({2, 1})},
      {c10::List<int64_t>({1})},
      {c10::List<int64_t>()},
      {c10::List<double>({1, 2})},
      {c10::List<std::string>({"a"})},
      {c10::List<int64_t>(std::vector<int64_t>(40, 1))},
  };
  for (const InputValues values : {InputValues::kKeep, InputValues::kLeaveOut}) {
    std::map<uint64_t, std::string> written;  // by key
    for (const auto& call : calls) {
      const c10::ArrayRef<const c10::IValue> inputs(call.data(), call.size());
      record::InputBlob blob;
      capture_inputs(inputs, values, blob);
      const auto [place, is_new] = written.try_emplace(key_of_inputs(inputs, values), blob.bytes());
      EXPECT_EQ(place->second, blob.bytes()) << "call " << &call - calls.data();
      EXPECT_EQ(key_of_inputs(inputs, values), place->first);
    }
  }
}

TEST(Recording, tensors_are_told_apart_while_they_are_held_and_let_go_at_the_end) {
  TemporaryFolder folder;
  auto recording = Recording::start({.shapes = true, .tensors = true, .output = folder / "run.lane"});
  ASSERT_TRUE(recording.ok());
  c10::weak_intrusive_ptr<c10::TensorImpl> gone(at::ones({2}).getIntrusivePtr());
  std::set<const void*> addresses;
  for (int i = 0; i < 100; ++i) addresses.insert(at::ones({2}).unsafeGetTensorImpl());  // each is an input of fill_
  EXPECT_EQ(addresses.size(), 100u);
  EXPECT_TRUE(gone.expired());
  EXPECT_EQ(gone.weak_use_count(), 2u);  // ours and the recorder's
  recording.value()->stop();
  EXPECT_EQ(gone.weak_use_count(), 1u);
  const std::string text = records_of(recording.value()->session().path(), {.times = false, .chunks = false});
  EXPECT_EQ(lines_with(text, "attribute 11 = ").size(), 101u) << text;
}

// 5,000 different shapes, each twice in a row: far more than a thread's table holds.
TEST(Recording, inputs_are_those_of_their_op_when_the_table_of_texts_overflows) {
  TemporaryFolder folder;
  const std::string text = record({.shapes = true, .output = folder / "run.lane"}, [] {
    const at::Tensor x = at::ones({1});
    for (int64_t i = 1; i <= 5000; ++i) {
      x.expand({i});
      x.expand({i});
    }
  });
  const auto lines = lines_with(text, "");
  int64_t seen = 0;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    if (lines[i].find("begin \"aten::expand\"") == std::string::npos) continue;
    ++seen;
    EXPECT_NE(lines[i + 1].find("[" + std::to_string((seen + 1) / 2) + "]"), std::string::npos) << lines[i + 1];
  }
  EXPECT_EQ(seen, 10000);
}

TEST(Recording, the_gpu_is_asked_for_only_where_the_driver_is) {
  TemporaryFolder devices;
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_FALSE(has_gpu(devices.path()));
  std::ofstream(devices / "nvidiactl");
  EXPECT_TRUE(has_gpu(devices.path()));
  for (const char* none : {"", "-1"}) {
    ::setenv("CUDA_VISIBLE_DEVICES", none, 1);
    EXPECT_FALSE(has_gpu(devices.path()));
  }
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

void all_reduce() {
  RECORD_PARAM_COMMS(std::make_tuple(int64_t{7}, false), std::make_tuple(std::string("0"), std::string("default_pg")),
                     1, "allreduce", 64, 64, at::kBFloat16, std::vector<int64_t>(), std::vector<int64_t>(), 0, 1, 2);
}

TEST(Recording, a_collective_says_what_was_asked_of_it) {
  for (const bool shapes : {false, true}) {
    TemporaryFolder folder;
    const std::string text = record({.shapes = shapes, .output = folder / "run.lane"}, all_reduce);
    EXPECT_EQ(lines_with(text, "begin \"record_param_comms\"").size(), 1u) << text;
    const auto args = lines_with(text, "attribute 6");
    ASSERT_EQ(args.size(), 1u) << text;
    for (const std::string key : {"Collective name", "dtype", "In msg nelems", "Group size", "Process Group Name"}) {
      EXPECT_NE(args[0].find(key), std::string::npos) << key << " in " << args[0];
    }
    EXPECT_NE(args[0].find("BFloat16"), std::string::npos);
  }
}

TEST(Recording, the_first_step_and_the_one_cut_off_are_no_baseline) {
  TemporaryFolder folder;
  ProfilerOptions options;
  options.schedule = schedule({.wait = 3, .warmup = 1, .active = 2, .repeat = 1});
  Profiler profiler(options);
  for (int i = 0; i < 5; ++i) {  // 0 cold, 1 and 2 timed, 3 warms up, 4 recorded, 5 cut off
    at::ones({2});
    profiler.step();
  }
  profiler.stop();
  ASSERT_EQ(profiler.save((folder / "run.lane").string()), "");
  const std::string text = records_of(folder / "run.lane", {.times = false, .chunks = false});
  const auto steps = lines_with(text, "note step ");
  ASSERT_EQ(steps.size(), 5u) << text;
  for (const auto& [step, phase] : {std::pair{0, 1}, {1, 0}, {2, 0}, {3, 1}, {4, 2}}) {
    EXPECT_TRUE(steps[static_cast<size_t>(step)].starts_with("note step " + std::to_string(step) + " phase " +
                                                             std::to_string(phase) + " "))
        << steps[static_cast<size_t>(step)];
  }
  EXPECT_EQ(lines_with(text, "note metadata unfinished_step = 5").size(), 1u);
}

TEST(Recording, the_cpp_front_took_any_interval_of_metrics) {
  for (const double interval_ms : {0.0, -1.0, 1e9, double{NAN}}) {
    ProfilerOptions options;
    options.metrics = true;
    options.metric_interval_ms = interval_ms;
    Profiler profiler(options);
    profiler.stop();
    const std::vector<std::string> losses = profiler.losses();
    const auto found = std::ranges::find(losses, "GPU metrics: " + format::wrong_metric_interval(interval_ms));
    EXPECT_NE(found, losses.end()) << interval_ms;
  }
  EXPECT_EQ(format::wrong_metric_interval(5000), "metric_interval_ms: between 0.02 and 1000, not 5000");
  EXPECT_EQ(format::wrong_metric_interval(0.02), "");
}

}  // namespace
}  // namespace firelane::torch_hooks
