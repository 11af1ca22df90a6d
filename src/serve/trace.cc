#include "serve/trace.h"

#include <new>
#include <thread>

namespace firelane::serve {

// One thread of a program often has most of the slices, and its rows cannot be shared out: the other cores have time.
Timeline ServedTrace::make_timeline(unsigned threads) const {
  if (threads < 2) return Timeline(model_, threads);
  const std::jthread beside([this] {
    try {
      counters();
      lane_rows();
      step_marks();
    } catch (const std::bad_alloc&) {  // Whoever asks for it will hear of it.
    }
  });
  return Timeline(model_, threads);
}

}  // namespace firelane::serve
