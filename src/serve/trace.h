// One trace that is being looked at: the model, where everything is drawn, and what analyses said about it.
// Thread-safe.
//
// What the first picture needs (the timeline, and what /lanes says) is made on all cores before the trace counts as
// loaded; other results when they are first asked for. All are kept.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "advise/diagnose.h"
#include "analyze/memory/memory.h"
#include "analyze/steps/find_steps.h"
#include "analyze/trace/lanes.h"
#include "model/model.h"
#include "serve/counters.h"
#include "serve/links.h"
#include "serve/names.h"
#include "serve/once.h"
#include "serve/timeline.h"

namespace firelane::serve {

class ServedTrace {
 public:
  explicit ServedTrace(std::shared_ptr<const Model> model, unsigned threads = 1)
      : owner_(std::move(model)), model_(*owner_), timeline_(make_timeline(threads)) {}
  explicit ServedTrace(Model model, unsigned threads = 1)
      : ServedTrace(std::make_shared<const Model>(std::move(model)), threads) {}

  const Model& model() const { return model_; }
  const Timeline& timeline() const { return timeline_; }
  const advise::Diagnosis& diagnosis() const {
    return diagnosis_.get([this] { return advise::diagnose(model_); });
  }
  const std::vector<analyze::LaneRow>& lane_rows() const {
    return lane_rows_.get([this] { return analyze::lane_table(model_); });
  }
  const Steps& steps() const {
    return steps_.get([this] { return analyze::trace_steps(model_); });
  }
  // What the timeline's ruler shows.
  const Steps& step_marks() const {
    return step_marks_.get([this] { return analyze::trace_steps(model_, analyze::StepUse::kShow); });
  }
  const NameIndex& names() const {
    return names_.get([this] { return NameIndex(model_); });
  }
  const LinkIndex& links() const {
    return links_.get([this] { return LinkIndex(model_); });
  }
  const std::vector<CounterTrack>& counters() const {
    return counters_.get([this] { return find_counters(model_); });
  }
  const analyze::MemoryReport& memory() const {
    return memory_.get([this] { return analyze::memory_report(model_); });
  }

 private:
  Timeline make_timeline(unsigned threads) const;

  std::shared_ptr<const Model> owner_;
  const Model& model_;
  Once<advise::Diagnosis> diagnosis_;
  Once<std::vector<analyze::LaneRow>> lane_rows_;
  Once<Steps> steps_;
  Once<Steps> step_marks_;
  Once<NameIndex> names_;
  Once<LinkIndex> links_;
  Once<std::vector<CounterTrack>> counters_;
  Once<analyze::MemoryReport> memory_;
  Timeline timeline_;  // last: while it is built, the others are made beside it
};

}  // namespace firelane::serve
