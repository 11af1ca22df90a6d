// One trace that is being looked at: the model, where everything is drawn, and what analyses said about it. Results are
// made when first asked for and kept. Thread-safe.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "advise/diagnose.h"
#include "analyze/find_steps.h"
#include "analyze/memory.h"
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
      : owner_(std::move(model)), model_(*owner_), timeline_(model_, threads) {}
  explicit ServedTrace(Model model, unsigned threads = 1)
      : ServedTrace(std::make_shared<const Model>(std::move(model)), threads) {}

  const Model& model() const { return model_; }
  const Timeline& timeline() const { return timeline_; }
  const Diagnosis& diagnosis() const {
    return diagnosis_.get([this] { return diagnose(model_); });
  }
  const Steps& steps() const {
    return steps_.get([this] { return marked_or_found_steps(model_); });
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
  const MemoryReport& memory() const {
    return memory_.get([this] { return memory_report(model_); });
  }

 private:
  std::shared_ptr<const Model> owner_;
  const Model& model_;
  Timeline timeline_;
  Once<Diagnosis> diagnosis_;
  Once<Steps> steps_;
  Once<NameIndex> names_;
  Once<LinkIndex> links_;
  Once<std::vector<CounterTrack>> counters_;
  Once<MemoryReport> memory_;
};

}  // namespace firelane::serve
