#include "advise/diagnose.h"

#include <algorithm>
#include <utility>

#include "advise/context.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/compute/roofline.h"
#include "analyze/verdict/study.h"

namespace firelane::advise {

namespace {

Context context_of(const StudiedTrace& trace) {
  const auto& study = trace.get<analyze::study>();
  Context context{.trace = trace, .window = study.steps.window};
  context.step_count = std::max<int64_t>(1, study.steps.judged);
  context.recorded_ns = study.undone.recorded_ns;
  context.step_ns = study.undone.step_ns;
  context.device_busy_ns = study.per_step(study.breakdown.total.busy_ns());
  context.has_device_work = study.has_device_work;
  context.gain_ns = [&study](const analyze::WhatIf& change) { return study.gain_ns(change); };
  context.study = &study;
  return context;
}

struct Found {
  Finding finding;
  bool about_time = true;
};

// What specific findings save is not promised again by the general ones that they are part of.
void take_parts_out(std::vector<Found>& all, const Context& context) {
  for (Found& general : all) {
    if (general.finding.cause.empty()) continue;
    Gain& gain = general.finding.gain;
    for (const Found& part : all) {
      if (part.finding.part_of != general.finding.cause) continue;
      gain.low_ns = std::max<int64_t>(0, gain.low_ns - part.finding.gain.middle_ns());
      gain.high_ns = std::max<int64_t>(0, gain.high_ns - part.finding.gain.middle_ns());
    }
  }
  std::erase_if(all, [&](const Found& found) {
    const Rule* rule = find_rule(found.finding.id);
    return found.about_time && rule != nullptr &&
           context.share_of_step(found.finding.gain.middle_ns()) < rule->floor_share;
  });
}

// What the order goes by: of two equal middles the surer one comes first.
int64_t likely_ns(const Gain& gain) { return gain.low_ns + (gain.high_ns - gain.low_ns) / 3; }

std::vector<Found> ask_rules(const Context& context) {
  std::vector<Found> all;
  for (const Rule& rule : all_rules()) {
    for (Finding& finding : rule.find(context)) {
      finding.gain.low_ns = std::clamp<int64_t>(finding.gain.low_ns, 0, context.step_ns);
      finding.gain.high_ns = std::clamp<int64_t>(finding.gain.high_ns, finding.gain.low_ns, context.step_ns);
      const double share = rule.about_time ? context.share_of_step(finding.gain.middle_ns()) : finding.share_of_step;
      if (share >= rule.floor_share) all.push_back({std::move(finding), rule.about_time});
    }
  }
  take_parts_out(all, context);
  std::stable_sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
    if (a.about_time != b.about_time) return a.about_time;
    if (!a.about_time) return a.finding.share_of_step > b.finding.share_of_step;
    return likely_ns(a.finding.gain) > likely_ns(b.finding.gain);
  });
  return all;
}

// One cause, one finding: the first (largest) stays, the events of the others are counted with it.
std::vector<Finding> merged(std::vector<Found> all) {
  std::vector<Finding> out;
  for (Found& found : all) {
    const std::string& cause = found.finding.cause;
    const auto same = std::find_if(out.begin(), out.end(),
                                   [&](const Finding& kept) { return !cause.empty() && kept.cause == cause; });
    if (same == out.end()) {
      out.push_back(std::move(found.finding));
    } else {
      same->events += found.finding.id == same->id ? found.finding.events : 0;
    }
  }
  return out;
}

// "overhead-bound", "mixed"
std::string bound_by(analyze::Limit limit) {
  return std::string(analyze::name_of(limit)) +
         (limit == analyze::Limit::kMixed || limit == analyze::Limit::kUnknown ? "" : "-bound");
}

// The two largest sides of the critical path.
std::vector<std::pair<double, analyze::Limit>> largest_shares(const analyze::Bound& bound) {
  std::vector<std::pair<double, analyze::Limit>> sides;
  for (size_t i = 0; i < analyze::kLimitCount; ++i) sides.emplace_back(bound.shares[i], static_cast<analyze::Limit>(i));
  std::stable_sort(sides.begin(), sides.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  sides.resize(2);
  return sides;
}

std::string limit_text(const analyze::Study& study) {
  const analyze::Limit limit = study.bound.limit;
  if (study.cold) {
    return study.other_limit == analyze::Limit::kMixed
               ? "in between: the host limits these first steps, and once it is warm the device about as much"
               : "in between: " + bound_by(limit) + " in these first steps, " + bound_by(study.other_limit) +
                     " once the host is warm";
  }
  if (study.undone.undecided) {
    return bound_by(limit) + " or " + bound_by(study.other_limit) +
           ": recording slowed the program too much to tell which";
  }
  if (!study.has_device_work) {
    if (limit == analyze::Limit::kCompute) return "compute-bound: the CPU is busy in operators";
    if (limit == analyze::Limit::kOverhead) return "overhead-bound: Python and dispatch take longer than the numbers";
  }
  std::string text(analyze::words_for(limit));
  if (limit == analyze::Limit::kMixed) {
    const char* before = " (";
    for (const auto& [share, side] : largest_shares(study.bound)) {
      text += before + std::string(analyze::name_of(side)) + " " + short_percent(share);
      before = ", ";
    }
    text += ")";
  }
  return text;
}

std::string verdict_of(const analyze::Study& study) {
  const int64_t step_ns = study.usual_step_ns;
  std::string text = limit_text(study) + "; a step takes " + short_time(step_ns);
  const int64_t recorded_ns = study.usual_recorded_ns;
  if (recorded_ns - step_ns > recorded_ns / 50 && short_time(recorded_ns) != short_time(step_ns)) {
    text += " (" + short_time(recorded_ns) + " while recording)";
  }
  // Slow steps: what findings save is measured against the mean.
  if (study.undone.step_ns > step_ns + step_ns / 10) text += ", " + short_time(study.undone.step_ns) + " in the mean";
  if (study.has_device_work && step_ns > 0) {
    const int64_t busy = study.per_step(study.breakdown.total.busy_ns());
    const double share = std::min(1.0, static_cast<double>(busy) / static_cast<double>(step_ns));
    text += ", the device works " + short_percent(share) + " of it";
  }
  return text;
}

// Nothing but what a recorder writes about itself.
bool is_empty(const Model& model, const analyze::Study& study) {
  const auto& kinds = model.host_slices.kind;
  return !study.has_device_work && std::all_of(kinds.begin(), kinds.end(), [](HostKind kind) {
    return kind == HostKind::kSpan || kind == HostKind::kOverhead;
  });
}

// How near the kernels whose work is known come to what the device can do: 0..1; -1 when not known.
double share_of_roof(const analyze::Roofline& roofline) {
  double roof_ns = 0;
  int64_t taken_ns = 0;
  for (const analyze::RooflineRow& row : roofline.rows) {
    if (row.roof_ns < 0) continue;
    roof_ns += row.roof_ns;
    taken_ns += row.device_ns;
  }
  return taken_ns == 0 ? -1 : std::min(1.0, roof_ns / static_cast<double>(taken_ns));
}

std::string why_healthy(const Context& context) {
  const analyze::Study& study = *context.study;
  std::string why;
  if (context.has_device_work) {
    why = "the device works " + short_percent(context.share_of_step(context.device_busy_ns)) + " of a step";
    const double roof = share_of_roof(context.trace.get<analyze::roofline>());
    if (roof >= 0) why += ", its kernels reach " + short_percent(roof) + " of what it can do";
  } else {
    why = "operators compute " + short_percent(study.bound.shares[static_cast<size_t>(analyze::Limit::kCompute)]) +
          " of a step";
  }
  return why + ", and no rule found anything that would save a visible part of it";
}

void add_notes(const Model& model, const analyze::Study& study, Diagnosis& out) {
  int64_t warm_up = 0;
  for (const analyze::FoundStep& step : study.steps.steps) warm_up += step.warm_up;
  if (warm_up > 0) {
    out.notes.push_back(counted(warm_up, "warm-up step is", "warm-up steps are") + " left out");
  }
  if (study.steps.source == analyze::StepSource::kWholeTrace) {
    out.notes.push_back("no steps were found: the whole trace is judged as one; call prof.step() after each iteration");
  } else if (study.steps.source != analyze::StepSource::kMarked) {
    out.notes.push_back("steps were found by " + std::string(study.steps.source == analyze::StepSource::kOptimizer
                                                                 ? "the optimizer's steps"
                                                                 : "a repeating sequence of operators"));
  }
  if (study.cold) {
    out.notes.push_back(
        "the judged steps last " + short_time(study.played.total_ns()) +
        " in all: a program's first steps are slower on the host than the later ones; record after a few hundred "
        "steps, or more of them");
  } else if (study.undone.undecided) {
    out.notes.push_back(
        "how much recording slowed the program is not known well enough to be sure what limits it: between " +
        short_time(study.undone.low_ns) + " and " + short_time(study.undone.high_ns) +
        " a step; record with firelane, which times steps without recording too, or without stacks and shapes");
  }
  const auto& kinds = model.host_slices.kind;
  if (!study.has_device_work && std::find(kinds.begin(), kinds.end(), HostKind::kRuntime) != kinds.end()) {
    out.notes.push_back(
        "the program calls CUDA, but the trace has no device work: there was none, or it was not recorded; only the "
        "host is judged");
  } else if (!study.has_device_work) {
    out.notes.push_back("no device work in this trace: only the host is judged");
  } else if (!study.graph.has_sync_records && study.graph.tail.size() > 1) {
    out.notes.push_back("waits between streams are inferred: the trace has no synchronisation records");
  }
  if (model.losses[Stat::kKernelBeforeLaunch] > 0) {
    out.notes.push_back("some kernels start before their launch: host and device clocks disagree");
  }
}

}  // namespace

Diagnosis diagnose(const StudiedTrace& trace) {
  const Model& model = trace.model();
  const auto& study = trace.get<analyze::study>();
  Diagnosis out{.empty = is_empty(model, study)};
  if (out.empty) {
    out.verdict = "nothing to judge: the trace holds no operators and no device work";
    out.notes = {
        "record while the program works: firelane record -- python train.py; or run some steps inside of `with "
        "firelane.profiler.profile() as prof:`, with prof.step() after each"};
    return out;
  }
  const Context context = context_of(trace);
  std::vector<Found> found = ask_rules(context);
  out.healthy = std::none_of(found.begin(), found.end(), [](const Found& each) { return each.about_time; });
  out.findings = merged(std::move(found));
  out.verdict = verdict_of(study);
  if (out.healthy) out.why = why_healthy(context);
  add_notes(model, study, out);
  return out;
}

}  // namespace firelane::advise
