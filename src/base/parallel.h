// Runs a function over [0, count) in contiguous pieces on a few threads, and waits.
#pragma once

#include <algorithm>
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

}  // namespace firelane
