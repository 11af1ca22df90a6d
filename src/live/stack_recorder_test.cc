// Stacks that are sampled beside a recording: the thread, and what a trace gets of it.
#include "live/stack_recorder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <new>
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
  uint64_t left_out = 0;
  EXPECT_EQ(samples_json(two_threads(), {}, left_out),
            (std::vector<std::string>{
                "{\"stacks\":[\"/home/a/train.py(42): main\",\"/home/a/data:set.py(7): load;/home/a/train.py(41): "
                "main\"],\"samples\":[[1000,10,100,0,3],[1000,10,101,1,0],[2000,10,100,0,1]]}"}));
  EXPECT_TRUE(samples_json({}, {}, left_out).empty());
  EXPECT_EQ(left_out, 0u);
}

TEST(SamplesJson, PiecesAreCompleteInThemselves) {
  uint64_t left_out = 0;
  const std::vector<std::string> pieces = samples_json(two_threads(), {.piece_bytes = 1}, left_out);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[2], "{\"stacks\":[\"/home/a/train.py(42): main\"],\"samples\":[[2000,10,100,0,1]]}");
}

TEST(SamplesJson, SamplesThatDoNotFitWereLostInSilence) {
  uint64_t left_out = 0;
  EXPECT_EQ(samples_json(two_threads(), {.piece_bytes = 1, .all_bytes = 1}, left_out).size(), 1u);
  EXPECT_EQ(left_out, 2u);
}

// Until it is told to stop, then what `result` gives.
std::unique_ptr<StackRecorder> started(std::function<Result<Samples>()> result = [] { return two_threads(); }) {
  auto recorder = StackRecorder::prepare([result = std::move(result)](const std::atomic<bool>& stop) {
    while (!stop) std::this_thread::yield();
    return result();
  });
  recorder->start();
  return recorder;
}

std::string losses_text(const RecordedStacks& stacks) {
  std::string out;
  for (const LostSamples& loss : stacks.losses) out += std::to_string(loss.count) + " " + loss.reason + "\n";
  return out;
}

TEST(StackRecorder, GivesWhatItsThreadSawOnce) {
  const auto recorder = started();
  const RecordedStacks seen = recorder->stop();
  EXPECT_EQ(seen.texts.size(), 1u);
  EXPECT_EQ(losses_text(seen), "");
  EXPECT_TRUE(recorder->stop().texts.empty());
  EXPECT_EQ(losses_text(recorder->stop()), "");
}

TEST(StackRecorder, EndsWithItsObject) { (void)started(); }

TEST(StackRecorder, IsAtRestUntilItIsStarted) {
  std::atomic<bool> runs{false};
  auto recorder = StackRecorder::prepare([&](const std::atomic<bool>&) -> Result<Samples> {
    runs = true;
    return Samples{};
  });
  EXPECT_TRUE(recorder->stop().texts.empty());
  recorder->start();
  EXPECT_FALSE(runs);
}

TEST(StackRecorder, AnExceptionInItsThreadEndedTheProgram) {
  EXPECT_EQ(losses_text(started([]() -> Result<Samples> { throw std::bad_alloc(); })->stop()),
            "0 stacks: sampling ended early: std::bad_alloc\n");
}

TEST(StackRecorder, WhatWasSeenBeforeAnExceptionIsKept) {
  const RecordedStacks seen = started([] {
                                Samples samples = two_threads();
                                samples.failure = "std::bad_alloc";
                                return samples;
                              })->stop();
  EXPECT_EQ(seen.texts.size(), 1u);
  EXPECT_EQ(losses_text(seen), "0 stacks: sampling ended early: std::bad_alloc\n");
}

TEST(StackRecorder, SamplingThatFailedLaterWasSilent) {
  EXPECT_EQ(losses_text(started([]() -> Result<Samples> { return Error{"no Python"}; })->stop()),
            "0 stacks: sampling ended early: no Python\n");
}

TEST(StackRecorder, DroppedSamplesWereSilent) {
  const RecordedStacks seen = started([] {
                                Samples samples = two_threads();
                                samples.untimed_count = 7;
                                samples.torn_count = 2;
                                return samples;
                              })->stop();
  EXPECT_EQ(losses_text(seen),
            "7 stack samples dropped: too many for the trace; sample less often\n"
            "2 stack samples dropped: the stacks changed while they were read\n");
}

TEST(StackRecorder, AForkedChildHasNoThreadAndWaitsForNone) {
  auto recorder = started();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    recorder->start();
    const bool is_empty = recorder->stop().texts.empty();
    recorder.reset();
    ::_exit(is_empty ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(recorder->stop().texts.size(), 1u);
}

TEST(StackRecorder, AProgramWithoutPythonIsRefused) { EXPECT_FALSE(StackRecorder::prepare(100.0).ok()); }

// 2e9 a second was an interval of 0 ns, and a division by it.
TEST(Rate, ARateThatIsNoneEndedTheProgram) {
  for (const double rate : {2e9, 10'001.0, 0.0, -5.0, 0.05, double{NAN}, double{INFINITY}}) {
    const auto refused = StackRecorder::prepare(rate);
    ASSERT_FALSE(refused.ok()) << rate;
    EXPECT_EQ(refused.error().message, wrong_rate(rate));
    EXPECT_FALSE(sample({}, {}, {.rate = rate}).ok());
  }
  EXPECT_EQ(wrong_rate(2e9), "2e+09 is not a rate between 0.1 and 10000 samples per second");
  EXPECT_EQ(wrong_rate(200), "");
}

}  // namespace
}  // namespace firelane::live
