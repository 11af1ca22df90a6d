// Work on several threads: every piece is done once, and what one of them throws arrives at the caller.
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <utility>
#include <vector>

namespace firelane {
namespace {

TEST(Parallel, every_piece_is_done_once) {
  for (const unsigned threads : {0u, 1u, 3u, 64u}) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{5}, size_t{1000}}) {
      std::vector<std::atomic<int>> done(count);
      parallel_each(count, threads, [&](size_t i) { ++done[i]; });
      for (const auto& times : done) EXPECT_EQ(times, 1);
    }
  }
}

TEST(Parallel, ranges_cover_everything_without_overlap) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{1000}}) {
    std::vector<std::atomic<int>> done(count);
    parallel_ranges(
        count, 4,
        [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) ++done[i];
        },
        2);
    for (const auto& times : done) EXPECT_EQ(times, 1);
  }
}

TEST(Parallel, memory_that_runs_out_on_a_thread_does_not_end_the_process) {
  for (const unsigned threads : {1u, 2u, 8u}) {
    std::atomic<int> done = 0;
    const auto work = [&](size_t i) {
      if (i == 40) throw std::bad_alloc();
      ++done;
    };
    EXPECT_THROW(parallel_each(100, threads, work), std::bad_alloc);
    EXPECT_LT(done, 100);
  }
  EXPECT_THROW(run_both(true, [] { throw std::bad_alloc(); }, [] {}), std::bad_alloc);
  EXPECT_THROW(run_both(false, [] {}, [] { throw std::bad_alloc(); }), std::bad_alloc);
}

}  // namespace
}  // namespace firelane
