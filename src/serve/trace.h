// A trace as the viewer asks about it: what analyses say, and the indexes that its pictures are made from, each made
// when it is first asked for and kept with the trace. A view: cheap to make, and as thread-safe as the trace it looks
// at.
#pragma once

#include <vector>

#include "advise/diagnose.h"
#include "analyze/memory/memory.h"
#include "analyze/steps/find_steps.h"
#include "analyze/trace/lanes.h"
#include "analyze/verdict/study.h"
#include "model/model.h"
#include "serve/counters.h"
#include "serve/links.h"
#include "serve/names.h"
#include "serve/timeline.h"
#include "traces/studied_trace.h"

namespace firelane::serve {

// On all cores; and beside it, what else the first picture needs.
Timeline make_timeline(const StudiedTrace& trace);
NameIndex make_name_index(const Model& model);
LinkIndex make_link_index(const Model& model);

class ServedTrace {
 public:
  explicit ServedTrace(const StudiedTrace& trace) : trace_(trace) {}

  const StudiedTrace& studied() const { return trace_; }
  const Model& model() const { return trace_.model(); }
  const Timeline& timeline() const { return trace_.get<make_timeline>(); }
  const analyze::Study& study() const { return trace_.get<analyze::study>(); }
  const advise::Diagnosis& diagnosis() const { return trace_.get<advise::diagnose>(); }
  const std::vector<analyze::LaneRow>& lane_rows() const { return trace_.get<analyze::lane_table>(); }
  const Steps& steps() const { return trace_.get<analyze::trace_steps>(analyze::StepUse::kHost); }
  // What the timeline's ruler shows.
  const Steps& step_marks() const { return trace_.get<analyze::trace_steps>(analyze::StepUse::kShow); }
  const NameIndex& names() const { return trace_.get<make_name_index>(); }
  const LinkIndex& links() const { return trace_.get<make_link_index>(); }
  const std::vector<CounterTrack>& counters() const { return trace_.get<find_counters>(); }
  const analyze::MemoryReport& memory() const { return trace_.get<analyze::memory_report>(); }

 private:
  const StudiedTrace& trace_;
};

}  // namespace firelane::serve
