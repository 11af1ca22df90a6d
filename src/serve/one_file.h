// `firelane report -o report.html`, of a trace or of a comparison: the viewer's page with the answers it needs inside,
// to be sent and opened from disk.
//
// The page is viewer/dist/report.html; the answers are those of the Api, as docs/viewer-protocol.md says under "In one
// file". What fits goes in, most needed first: overview, tables, the whole timeline coarsely, then ever finer tiles of
// the whole trace and of the findings' windows. So the finest are left out first. Of a comparison it has the tables of
// all runs, and timelines and panes of the first run of each side.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "serve/api.h"

namespace firelane::serve {

inline constexpr size_t kMaxOneFileBytes = 5'000'000;

// REQUIRES: the traces of `api` are loaded. `page` is report.html with the place for the answers in it.
Result<std::string> one_file(Api& api, std::string_view page, size_t max_bytes = kMaxOneFileBytes);

// The page that the program holds; an Error says how to get a program with one.
Result<std::string_view> one_file_page();

}  // namespace firelane::serve
