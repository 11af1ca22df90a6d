// Work on a few threads, and waiting for all of it: a range in pieces, many pieces one by one, two things side by side.
//
// What a piece throws (memory ran out) is thrown again on the calling thread once no piece runs any more. If the system
// has no thread left, the calling one does the work.
#pragma once

#include <cstddef>

namespace firelane {

// A function object by reference, so that threads are handled in one place and not once for each caller.
class PieceOfWork {
 public:
  template <typename Fn>
  explicit PieceOfWork(const Fn& fn)
      : fn_(&fn), call_([](const void* erased, size_t piece) { (*static_cast<const Fn*>(erased))(piece); }) {}
  void operator()(size_t piece) const { call_(fn_, piece); }

 private:
  const void* fn_;
  void (*call_)(const void*, size_t);
};

void run_pieces(size_t count, unsigned threads, PieceOfWork work);

// fn(i) for each of [0, count), the next one by whoever is free: for few pieces of very different length.
template <typename Fn>
void parallel_each(size_t count, unsigned threads, const Fn& fn) {
  run_pieces(count, threads, PieceOfWork(fn));
}

// fn(begin, end) is called once per piece. Small counts run on the calling thread.
template <typename Fn>
void parallel_ranges(size_t count, unsigned threads, const Fn& fn, size_t min_piece = 4096) {
  if (count == 0) return;
  const size_t wanted = count / min_piece < threads ? count / min_piece : threads;
  const size_t pieces = wanted > 1 ? wanted : 1;
  const auto one = [&](size_t p) { fn(count * p / pieces, count * (p + 1) / pieces); };
  run_pieces(pieces, threads, PieceOfWork(one));
}

// Both, side by side where that is worth a thread.
template <typename First, typename Second>
void run_both(bool side_by_side, const First& first, const Second& second) {
  const auto one = [&](size_t which) { which == 0 ? first() : second(); };
  run_pieces(2, side_by_side ? 2 : 1, PieceOfWork(one));
}

}  // namespace firelane
