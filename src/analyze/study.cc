#include "analyze/study.h"

#include <algorithm>

#include "analyze/device_work.h"
#include "analyze/dispatch.h"

namespace firelane {

int64_t Study::gain_ns(const WhatIf& change) const {
  const Replay changed = replay(graph, change, {.recording_removed = undone.factor});
  return per_step(played.total_ns() - changed.total_ns());
}

int64_t Study::sure_gain_ns(const WhatIf& change) const {
  const ReplayOptions options{.recording_removed = undone.most};
  return per_step(replay(graph, {}, options).total_ns() - replay(graph, change, options).total_ns());
}

namespace {

Limit limit_at(const Model& model, const Study& s, double factor) {
  const Replay played = replay(s.graph, {}, {.recording_removed = factor});
  const CriticalPath path = critical_path(s.host, s.graph, played);
  return bound_of(model, path, played.start_ns, played.end_ns, s.computing_share).limit;
}

}  // namespace

Study study(const Model& model) {
  Study s;
  const auto& kinds = model.device_slices.kind;
  s.has_device_work = std::any_of(kinds.begin(), kinds.end(), is_device_work);
  s.host = host_time(model);
  s.steps = find_steps(model, s.host);
  if (!s.has_device_work && !s.host.chains.empty()) {
    s.computing_share = computing_share(model, s.host.chains[0], s.steps.window);
  }
  const RecordingCosts costs = recording_costs(model);
  s.graph = build_graph(model, s.host, s.steps, costs.costs);
  s.recorded = replay(s.graph, {}, {.recording_removed = 0});
  s.undone = undo_recording(model, s.graph, costs, s.steps);
  s.played = replay(s.graph, {}, {.recording_removed = s.undone.factor});
  s.idle = idle_table(model, s.host, s.graph, s.recorded);
  s.breakdown = break_down(model, s.host, s.graph, s.recorded, s.steps, s.idle);
  s.launches = launch_table(model, s.steps.window);
  s.syncs = sync_table(model, s.graph, s.steps.window);
  s.path = critical_path(s.host, s.graph, s.played);
  s.bound = bound_of(model, s.path, s.played.start_ns, s.played.end_ns, s.computing_share);
  s.step_spans = step_spans(model, s.graph, s.played, s.steps);
  for (const Interval& span : s.step_spans) {
    s.step_bounds.push_back(bound_of(model, s.path, span.start_ns, span.end_ns, s.computing_share));
  }
  if (s.undone.source != CostSource::kBaseline) {
    for (const double factor : {costs.low, costs.high}) {
      const Limit limit = limit_at(model, s, factor);
      if (limit == s.bound.limit) continue;
      s.undone.undecided = true;
      s.other_limit = limit;
    }
  }
  return s;
}

}  // namespace firelane
