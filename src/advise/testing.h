// What tests of rules share.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>

#include "advise/diagnose.h"
#include "analyze/verdict/study.h"
#include "model/trace_builder.h"
#include "traces/studied_trace.h"

namespace firelane::advise {

// A diagnosis, and the study behind it, which does not look at the model again.
struct Judged : Diagnosis {
  std::shared_ptr<const StudiedTrace> trace;
  const analyze::Study& study = trace->get<analyze::study>();
};

inline Judged diagnose(const Model& model) {
  const std::shared_ptr<const Model> kept(std::shared_ptr<void>(), &model);
  auto trace = std::make_shared<const StudiedTrace>(kept);
  return {diagnose(*trace), trace};
}

// The finding of that rule; null when there is none.
inline const Finding* find(const Diagnosis& diagnosis, std::string_view id) {
  const auto found = std::find_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                                  [&](const Finding& finding) { return finding.id == id; });
  return found == diagnosis.findings.end() ? nullptr : &*found;
}

// A program that a test writes down, one thing after another. `Derived` adds what happens at `at_`, and moves it on.
template <typename Derived>
class WrittenProgram {
 public:
  Derived& end_step() {
    builder_.step(number_++, {.start_us = from_, .end_us = at_});
    from_ = at_;
    return static_cast<Derived&>(*this);
  }
  const Model& model() {
    model_ = builder_.build();
    return model_;
  }
  Judged judged() { return diagnose(model()); }

 protected:
  TraceBuilder builder_;
  double at_ = 0;            // us
  int64_t correlation_ = 1;  // of the next launch

 private:
  Model model_;
  double from_ = 0;
  int64_t number_ = 0;
};

}  // namespace firelane::advise
