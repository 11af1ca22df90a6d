// A recording that began before the program started CUDA (GPU memory was missing from it): what waits for that begins
// at the first op afterwards, once, and never after it was forgotten.
#include "record/torch/late_start.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace firelane::torch_hooks {
namespace {

std::atomic<bool> g_started{false};
bool is_started() noexcept { return g_started; }

TEST(LateStart, what_waits_for_cuda_begins_at_the_first_op_after_it_was_started_and_only_once) {
  g_started = false;
  int begun = 0;
  begin_when(is_started, [&] { ++begun; });
  at::ones({2});
  EXPECT_EQ(begun, 0);
  g_started = true;
  EXPECT_EQ(begun, 0);
  at::ones({2});
  EXPECT_EQ(begun, 1);
  at::ones({2});
  EXPECT_EQ(begun, 1);
  forget_late_start();
}

TEST(LateStart, one_of_many_threads_begins_it) {
  g_started = true;
  std::atomic<int> begun{0};
  begin_when(is_started, [&] { ++begun; });
  std::vector<std::thread> team;
  for (int i = 0; i < 4; ++i) {
    team.emplace_back([] {
      for (int n = 0; n < 50; ++n) at::ones({2});
    });
  }
  for (std::thread& thread : team) thread.join();
  EXPECT_EQ(begun, 1);
  forget_late_start();
}

TEST(LateStart, what_was_forgotten_does_not_begin_and_a_new_one_takes_its_place) {
  g_started = true;
  int first = 0;
  int second = 0;
  begin_when(is_started, [&] { ++first; });
  forget_late_start();
  at::ones({2});
  EXPECT_EQ(first, 0);
  begin_when(is_started, [&] { ++first; });
  begin_when(is_started, [&] { ++second; });
  at::ones({2});
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
}

TEST(LateStart, it_does_not_begin_in_a_forked_child) {
  g_started = true;
  int begun = 0;
  begin_when(is_started, [&] { ++begun; });
  const pid_t child = ::fork();
  if (child == 0) {
    at::ones({2});
    ::_exit(begun);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  at::ones({2});
  EXPECT_EQ(begun, 1);
}

}  // namespace
}  // namespace firelane::torch_hooks
