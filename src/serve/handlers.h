// What is asked of one trace: /api/t/T/NAME. Each handler is a pure function of the trace and the request.
#pragma once

#include "serve/answer.h"
#include "serve/request.h"
#include "serve/trace.h"

namespace firelane::serve {

// rows=N: how many rows of a table are sent.
size_t wanted_rows(Parameters& wanted);  // reports.cc
inline Answer bad_request(const Parameters& wanted) { return refusal(400, wanted.complaint()); }

Answer overview(const ServedTrace& trace, const Request& request);  // overview.cc
Answer diagnosis(const ServedTrace& trace, const Request& request);
Answer explain(const ServedTrace& trace, const Request& request);
Answer report(const ServedTrace& trace, const Request& request);  // reports.cc
Answer lanes(const ServedTrace& trace, const Request& request);   // lanes.cc
Answer tiles(const ServedTrace& trace, const Request& request);
Answer slice(const ServedTrace& trace, const Request& request);  // slice.cc

}  // namespace firelane::serve
