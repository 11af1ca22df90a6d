// Stacks that are sampled beside a recording: the thread, and what a trace gets of it.
#include "live/stack_recorder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

namespace firelane::live {
namespace {

Samples two_threads() {
  Samples samples;
  samples.knows_cpu = true;
  samples.functions = {{.name = "load", .file = "/home/a/data;set.py"}, {.name = "main", .file = "/home/a/train.py"}};
  samples.stacks = {{{.function = 0, .line = 7}, {.function = 1, .line = 41}}, {{.function = 1, .line = 42}}};
  samples.threads = {{.native_id = 100}, {.native_id = 101}};
  samples.timed = {{.ticks = 1000, .weight_ns = 10, .thread = 0, .stack = 1, .on_cpu = true, .has_gil = true},
                   {.ticks = 1000, .weight_ns = 10, .thread = 1, .stack = 0},
                   {.ticks = 2000, .weight_ns = 10, .thread = 0, .stack = 1, .on_cpu = true}};
  return samples;
}

TEST(SamplesJson, HasEachStackOnceAndNoMarkInsideOfAFrame) {
  EXPECT_EQ(samples_json(two_threads(), 1 << 20),
            (std::vector<std::string>{
                "{\"stacks\":[\"/home/a/train.py(42): main\",\"/home/a/data:set.py(7): load;/home/a/train.py(41): "
                "main\"],\"samples\":[[1000,10,100,0,3],[1000,10,101,1,0],[2000,10,100,0,1]]}"}));
  EXPECT_TRUE(samples_json({}, 1 << 20).empty());
}

TEST(SamplesJson, PiecesAreCompleteInThemselves) {
  const std::vector<std::string> pieces = samples_json(two_threads(), 1);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[2], "{\"stacks\":[\"/home/a/train.py(42): main\"],\"samples\":[[2000,10,100,0,1]]}");
}

TEST(StackRecorder, GivesWhatItsThreadSawOnce) {
  std::atomic<bool> runs{false};
  auto recorder = StackRecorder::start([&](const std::atomic<bool>& stop) {
    runs = true;
    while (!stop) std::this_thread::yield();
    return two_threads();
  });
  ASSERT_TRUE(recorder.ok());
  while (!runs) std::this_thread::yield();
  EXPECT_EQ(recorder.value()->stop().size(), 1u);
  EXPECT_TRUE(recorder.value()->stop().empty());
}

TEST(StackRecorder, EndsWithItsObject) {
  auto recorder = StackRecorder::start([](const std::atomic<bool>& stop) {
    while (!stop) std::this_thread::yield();
    return Samples{};
  });
  ASSERT_TRUE(recorder.ok());
}

TEST(StackRecorder, AForkedChildHasNoThreadAndWaitsForNone) {
  auto recorder = StackRecorder::start([](const std::atomic<bool>& stop) {
    while (!stop) std::this_thread::yield();
    return two_threads();
  });
  ASSERT_TRUE(recorder.ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_empty = recorder.value()->stop().empty();
    recorder.value().reset();
    ::_exit(is_empty ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(recorder.value()->stop().size(), 1u);
}

TEST(StackRecorder, AProgramWithoutPythonIsRefused) { EXPECT_FALSE(StackRecorder::start(100.0).ok()); }

}  // namespace
}  // namespace firelane::live
