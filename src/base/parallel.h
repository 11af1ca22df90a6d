// Work on a few threads, and waiting for all of it: a range in pieces, many pieces one by one, two things side by side.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace firelane {

// fn(begin, end) is called once per piece. Small counts run on the calling thread.
template <typename Fn>
void parallel_ranges(size_t count, unsigned threads, const Fn& fn, size_t min_piece = 4096) {
  const size_t pieces = std::clamp<size_t>(count / min_piece, 1, std::max(threads, 1u));
  if (pieces == 1) {
    if (count > 0) fn(size_t{0}, count);
    return;
  }
  std::vector<std::thread> running;
  running.reserve(pieces - 1);
  for (size_t p = 1; p < pieces; ++p)
    running.emplace_back([&fn, count, pieces, p] { fn(count * p / pieces, count * (p + 1) / pieces); });
  fn(size_t{0}, count / pieces);
  for (std::thread& thread : running) thread.join();
}

// fn(i) for each of [0, count), the next one by whoever is free: for few pieces of very different length.
template <typename Fn>
void parallel_each(size_t count, unsigned threads, const Fn& fn) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) fn(i);
  };
  std::vector<std::jthread> running;
  for (size_t t = 1; t < std::min<size_t>(threads, count); ++t) running.emplace_back(work);
  work();
}

// Both, side by side where that is worth a thread.
template <typename First, typename Second>
void run_both(bool side_by_side, const First& first, const Second& second) {
  if (!side_by_side) {
    first();
    second();
    return;
  }
  const std::jthread beside([&] { first(); });
  second();
}

}  // namespace firelane
