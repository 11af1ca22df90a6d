// Threads that take pieces of work until none is left.
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace firelane {

namespace {

class Pieces {
 public:
  Pieces(size_t count, PieceOfWork work) : count_(count), work_(work) {}

  void take_all() noexcept {
    for (size_t i = next_++; i < count_; i = next_++) {
      try {
        work_(i);
      } catch (...) {
        const std::scoped_lock lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        next_ = count_;
      }
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  const size_t count_;
  const PieceOfWork work_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

void run_pieces(size_t count, unsigned threads, PieceOfWork work) {
  const size_t used = std::min<size_t>(threads, count);
  if (used <= 1) {
    for (size_t i = 0; i < count; ++i) work(i);
    return;
  }
  Pieces pieces(count, work);
  {
    std::vector<std::jthread> running;
    running.reserve(used - 1);
    try {
      while (running.size() < used - 1) running.emplace_back([&pieces] { pieces.take_all(); });
    } catch (const std::system_error&) {  // no more threads: those that run, and this one, do it all
    }
    pieces.take_all();
  }
  pieces.rethrow();
}

}  // namespace firelane
