// What is asked of one trace: /api/t/T/NAME. Each handler is a pure function of the trace and the request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "serve/answer.h"
#include "serve/request.h"
#include "serve/trace.h"

namespace firelane::serve {

inline Answer bad_request(const Parameters& wanted) { return refusal(400, wanted.complaint()); }

// rows=N: how many rows of a table are sent.
size_t wanted_rows(Parameters& wanted);  // reports.cc

// from_ns=&to_ns=&bins=: a stretch of the trace in equal bins; all of it when nothing is said.
struct Window {
  int64_t from_ns = 0;
  int64_t to_ns = 1;
  int64_t bin_ns = 1;
  size_t bins = 1;
};
Window wanted_window(Parameters& wanted, const ServedTrace& trace);  // lanes.cc

// Threads whose stacks were sampled, those with the most samples first.
struct SampledThread {
  LaneId lane{};
  int64_t samples = 0;
};
std::vector<SampledThread> sampled_threads(const Model& model);  // lanes.cc

Answer light(const ServedTrace& trace, const Request& request);     // light.cc
Answer overview(const ServedTrace& trace, const Request& request);  // overview.cc
Answer diagnosis(const ServedTrace& trace, const Request& request);
Answer explain(const ServedTrace& trace, const Request& request);
Answer report(const ServedTrace& trace, const Request& request);  // reports.cc
Answer lanes(const ServedTrace& trace, const Request& request);   // lanes.cc
Answer tiles(const ServedTrace& trace, const Request& request);
Answer counters(const ServedTrace& trace, const Request& request);  // counters.cc
Answer slice(const ServedTrace& trace, const Request& request);     // slice.cc
Answer range(const ServedTrace& trace, const Request& request);     // range.cc
Answer flame(const ServedTrace& trace, const Request& request);
Answer search(const ServedTrace& trace, const Request& request);  // search.cc
Answer find(const ServedTrace& trace, const Request& request);
Answer gap(const ServedTrace& trace, const Request& request);
Answer memory_curve(const ServedTrace& trace, const Request& request);  // memory.cc
Answer memory_alive(const ServedTrace& trace, const Request& request);
Answer memory_segments(const ServedTrace& trace, const Request& request);
Answer sql(const ServedTrace& trace, const Request& request);  // sql.cc

}  // namespace firelane::serve
