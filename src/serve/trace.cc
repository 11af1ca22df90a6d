#include "serve/trace.h"

#include <algorithm>
#include <new>
#include <thread>

namespace firelane::serve {

// One thread of a program often has most of the slices, and its rows cannot be shared out: the other cores have time.
Timeline make_timeline(const StudiedTrace& trace) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  if (cores < 2) return Timeline(trace.model());
  const std::jthread beside([&] {
    try {
      const ServedTrace served(trace);
      served.counters();
      served.lane_rows();
      served.step_marks();
    } catch (const std::bad_alloc&) {  // Whoever asks for it will hear of it.
    }
  });
  return Timeline(trace.model(), cores);
}

NameIndex make_name_index(const Model& model) { return NameIndex(model); }

LinkIndex make_link_index(const Model& model) { return LinkIndex(model); }

}  // namespace firelane::serve
