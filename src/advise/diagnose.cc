#include "advise/diagnose.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <thread>
#include <utility>

#include "advise/context.h"
#include "advise/device_words.h"
#include "advise/gain.h"
#include "advise/kernel_evidence.h"
#include "advise/largest_note.h"
#include "advise/light_note.h"
#include "advise/padding.h"
#include "advise/proofs.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/compute/copies.h"
#include "analyze/compute/fusion.h"
#include "analyze/compute/roofline.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/sampled.h"
#include "analyze/verdict/study.h"
#include "base/parallel.h"
#include "base/shell_quoted.h"
#include "model/unknown_lanes.h"

namespace firelane::advise {

namespace {

constexpr size_t kManyRows = 100'000;  // for fewer, starting a thread takes longer than it saves

Context context_of(const StudiedTrace& trace) {
  const auto& study = trace.get<analyze::study>();
  Context context{.trace = trace, .window = study.steps.window};
  context.step_count = std::max<int64_t>(1, study.steps.judged);
  context.recorded_ns = study.undone.recorded_ns;
  context.step_ns = study.mean_step_ns();
  context.device_busy_ns = study.per_step(study.breakdown.total.busy_ns());
  context.has_device_work = study.has_device_work;
  context.gain_ns = [&study](const analyze::WhatIf& change) { return saved_ns(study, change); };
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
    const auto whole = static_cast<double>(gain.middle_ns());
    double left = whole;
    for (const Found& part : all) {
      if (part.finding.part_of == general.finding.cause) left -= static_cast<double>(part.finding.gain.middle_ns());
    }
    if (left == whole) continue;
    // What is left is as uncertain as the whole was.
    const double kept = whole <= 0 ? 0 : std::max(0.0, left) / whole;
    const auto of = [&](int64_t ns) { return std::llround(kept * static_cast<double>(ns)); };
    gain = {.low_ns = of(gain.low_ns), .high_ns = of(gain.high_ns), .likely_ns = of(gain.middle_ns())};
  }
  std::erase_if(all, [&](const Found& found) {
    const Rule* rule = find_rule(found.finding.id);
    return found.about_time && !found.finding.said_by_share && rule != nullptr &&
           context.share_of_step(found.finding.gain.middle_ns()) < rule->floor_share;
  });
}

// No finding gains more than there is of a step, whatever its replay says.
void fit_to_step(std::vector<Found>& all, const Context& context) {
  const int64_t most_ns = most_of_step_ns(*context.study);
  for (Found& each : all) {
    Gain& gain = each.finding.gain;
    const int64_t likely_ns = std::min(gain.middle_ns(), most_ns);
    gain = {
        .low_ns = std::min(gain.low_ns, most_ns), .high_ns = std::min(gain.high_ns, most_ns), .likely_ns = likely_ns};
  }
}

// Needless work that takes less of a step than this takes its place among the others.
constexpr double kWorthFirst = 0.04;
// So does one that gains so many times less than another finding.
constexpr int64_t kFarLess = 5;

// Casts are no cause beside fusing that gains far more: a compiler joins them with what stands around them.
bool is_joined_by_fusing(const Finding& finding, int64_t fusing_ns) {
  constexpr double kFarMore = 1.5;
  return finding.id == "dtype-ping-pong" &&
         static_cast<double>(fusing_ns) > kFarMore * static_cast<double>(finding.gain.middle_ns());
}
int64_t fusing_ns_of(const std::vector<Found>& all) {
  const auto fusing =
      std::find_if(all.begin(), all.end(), [](const Found& each) { return each.finding.cause == kFusion; });
  return fusing == all.end() ? 0 : fusing->finding.gain.middle_ns();
}

// The sort key: of two findings with the same expected gain the more certain one comes first, and a specific cause
// before a general remedy (a graph or a compiler), unless that gains twice as much.
int64_t surely_ns(const Finding& finding, int64_t fusing_ns) {
  const Gain& gain = finding.gain;
  const int64_t surely = gain.middle_ns() - (gain.middle_ns() - gain.low_ns) / 3;
  const bool is_general =
      finding.cause == kOverhead || finding.cause == kFusion || is_joined_by_fusing(finding, fusing_ns);
  return is_general ? surely / 2 : surely;
}

// A general finding says how much there is to gain; what to do first is what has a cause of its own and is worth doing:
// parts of it, and others that gain nearly as much by themselves.
void put_causes_first(std::vector<Found>& all, const Context& context) {
  constexpr double kWorthDoing = 0.1;  // of a step
  constexpr double kPartWorth = 0.06;  // of a step, for a part of the general one
  constexpr int64_t kOfGeneral = 3;    // others gain at least a third of what the general one does
  for (size_t general = 0; general < all.size(); ++general) {
    const std::string cause = all[general].finding.cause;
    if (cause != kOverhead && cause != kFusion) continue;
    const int64_t general_ns = all[general].finding.gain.middle_ns();
    const auto is_first = [&](const Found& each) {
      const Finding& finding = each.finding;
      if (!each.about_time || finding.cause == kOverhead || finding.cause == kFusion) return false;
      if (cause == kFusion && is_joined_by_fusing(finding, general_ns)) return false;
      const double share = context.share_of_step(finding.gain.middle_ns());
      // What may gain nothing does not come before what surely does; and fusing is a remedy for everything, too.
      const bool is_sure = finding.gain.low_ns > 0 && finding.id != "pointwise-unfused";
      if (finding.part_of == cause && share >= (is_sure ? kPartWorth : kWorthDoing)) return true;
      return share >= kWorthDoing && finding.gain.middle_ns() * kOfGeneral >= general_ns;
    };
    std::stable_partition(all.begin() + static_cast<std::ptrdiff_t>(general), all.end(), is_first);
    break;
  }
}

// On a machine that stalls every operator (busy-machine, said before all others) the rest is chance to some degree.
void doubt_on_stalled_machine(std::vector<Found>& all) {
  const bool stalled = std::any_of(all.begin(), all.end(), [](const Found& each) {
    return each.finding.id == "busy-machine" && each.finding.precedence == Precedence::kNeedless;
  });
  for (Found& each : all) {
    if (!stalled || !each.about_time) continue;
    each.finding.confidence = Confidence::kLow;
    each.finding.confirm_by = "record again with a free core for each thread";
  }
}

std::vector<Found> ask_rules(const Context& context) {
  const auto& rules = all_rules();
  std::vector<std::vector<Finding>> by_rule(rules.size());
  const unsigned threads = context.model.host_slices.size() < kManyRows ? 1 : std::thread::hardware_concurrency();
  parallel_each(rules.size(), std::min(threads, 4U), [&](size_t i) { by_rule[i] = rules[i].find(context); });
  std::vector<Found> all;
  for (size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    for (Finding& finding : by_rule[i]) {
      if (rule.about_time) finding.gain = gain_range(context, finding);
      if (finding.confidence > most_sure(rule.id)) {
        finding.confidence = most_sure(rule.id);
        if (rule.about_time && finding.confirm_by.empty()) finding.confirm_by = "time some steps with the change";
      }
      const bool by_gain = rule.about_time && !finding.said_by_share;
      const double share = by_gain ? context.share_of_step(finding.gain.middle_ns()) : finding.share_of_step;
      if (share >= rule.floor_share) all.push_back({std::move(finding), rule.about_time});
    }
  }
  take_parts_out(all, context);
  int64_t most_ns = 0;  // of what has a cause of its own
  for (const Found& each : all) {
    if (each.finding.cause != kOverhead && each.finding.cause != kFusion)
      most_ns = std::max(most_ns, each.finding.gain.middle_ns());
  }
  const auto precedence = [&](const Found& found) {
    const int64_t ns = found.finding.gain.middle_ns();
    const bool small = found.about_time && (context.share_of_step(ns) < kWorthFirst || kFarLess * ns < most_ns);
    return small ? Precedence::kByGain : found.finding.precedence;
  };
  const int64_t fusing_ns = fusing_ns_of(all);
  std::stable_sort(all.begin(), all.end(), [&](const Found& a, const Found& b) {
    if (precedence(a) != precedence(b)) return precedence(a) > precedence(b);
    if (a.about_time != b.about_time) return a.about_time;
    if (!a.about_time) return a.finding.share_of_step > b.finding.share_of_step;
    return surely_ns(a.finding, fusing_ns) > surely_ns(b.finding, fusing_ns);
  });
  put_causes_first(all, context);
  doubt_on_stalled_machine(all);
  fit_to_step(all, context);
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

// What another finding has a remedy for need not be said to be large.
void drop_explained(std::vector<Finding>& findings, const Model& model) {
  const auto name_of_slice = [&](const SliceRef& slice) {
    return slice.on_device ? model.device_slices.name[slice.row] : model.host_slices.name[slice.row];
  };
  const auto large = std::find_if(findings.begin(), findings.end(),
                                  [](const Finding& finding) { return finding.id == "dominant-operator"; });
  if (large == findings.end() || large->slices.empty()) return;
  const SliceRef worst = large->slices[0];
  const bool explained = std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
    if (other.id == large->id) return false;
    const bool gains_more = other.gain.high_ns > 0 && other.gain.middle_ns() >= large->gain.middle_ns();
    if (other.share_of_step >= large->share_of_step / 2 && gains_more) return true;
    return std::any_of(other.slices.begin(), other.slices.end(), [&](const SliceRef& slice) {
      return slice.on_device == worst.on_device && name_of_slice(slice) == name_of_slice(worst);
    });
  });
  if (explained) findings.erase(large);
}

// Nothing but what a recorder writes about itself.
bool is_empty(const Model& model, const analyze::Study& study) {
  const auto& kinds = model.host_slices.kind;
  return !study.has_device_work && std::all_of(kinds.begin(), kinds.end(), [](HostKind kind) {
    return kind == HostKind::kSpan || kind == HostKind::kOverhead;
  });
}

// How close the kernels whose work is known come to the roofline: 0..1; -1 when not known.
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

// Less is no good news, whatever rules say of it.
constexpr double kLeastBusy = 0.5;

bool is_mostly_idle(const Context& context) {
  return context.has_device_work && context.share_of_step(context.device_busy_ns) < kLeastBusy;
}

// Where nothing was found and the device idles: what is known of the reason.
std::string why_idle(const Context& context) {
  const analyze::IdleTable& idle = context.study->idle;
  const auto largest = std::max_element(idle.by_cause.begin(), idle.by_cause.end());
  const auto cause = static_cast<analyze::IdleCause>(largest - idle.by_cause.begin());
  const double share = 1 - context.share_of_step(context.device_busy_ns);
  return "the device is idle " + short_percent(share) +
         " of a step (most of it: " + std::string(analyze::words_for(cause)) + "), and no rule knows what to change";
}

std::string why_healthy(const Context& context) {
  const analyze::Study& study = *context.study;
  std::string why;
  if (context.has_device_work) {
    why = "the device is busy " + short_percent(context.share_of_step(context.device_busy_ns)) + " of a step";
    const double roof = share_of_roof(context.trace.get<analyze::roofline>());
    if (roof >= 0) why += ", its kernels reach " + short_percent(roof) + " of the roofline";
  } else {
    why = "operators compute for " + short_percent(study.bound.shares[static_cast<size_t>(analyze::Limit::kCompute)]) +
          " of a step";
  }
  return why + ", and no rule found a change that would save a noticeable part of it";
}

void add_notes(const Model& model, const analyze::Study& study, Diagnosis& out) {
  int64_t warm_up = 0;
  for (const analyze::FoundStep& step : study.steps.steps) warm_up += step.warm_up;
  if (warm_up > 0) {
    out.notes.push_back(counted(warm_up, "warm-up step is", "warm-up steps are") + " left out");
  }
  if (study.steps.source == analyze::StepSource::kWholeTrace) {
    out.notes.push_back(
        "no steps were found: the whole trace counts as one step; call prof.step() after each iteration");
  } else if (study.steps.source != analyze::StepSource::kMarked) {
    out.notes.push_back("steps were inferred from " + std::string(study.steps.source == analyze::StepSource::kOptimizer
                                                                      ? "the optimizer's steps"
                                                                      : "a repeating sequence of operators"));
  }
  if (study.cold) {
    out.notes.push_back(
        "the analyzed steps last " + short_time(study.played.total_ns()) +
        " in total: a program's first steps are slower on the host than later ones; record after a few hundred "
        "steps, or record more of them");
  } else if (study.undone.undecided) {
    out.notes.push_back(
        "how much recording slowed the program is not known well enough to be sure what limits it: a step takes "
        "between " +
        short_time(study.undone.low_ns) + " and " + short_time(study.undone.high_ns) +
        "; record with firelane, which times steps without recording too, or without stacks and shapes");
  }
  const auto& kinds = model.host_slices.kind;
  if (!study.has_device_work && std::find(kinds.begin(), kinds.end(), HostKind::kRuntime) != kinds.end()) {
    out.notes.push_back(
        "the program calls CUDA, but the trace has no device work: there was none, or it was not recorded; only the "
        "CPU is analyzed");
  } else if (!study.has_device_work) {
    out.notes.push_back("no device work in this trace: only the CPU is analyzed");
  } else if (!study.graph.has_sync_records && study.graph.tail.size() > 1) {
    out.notes.push_back("waits between streams are inferred: the trace has no synchronization records");
  }
  if (study.host_unknown) {
    out.notes.push_back("the host was not recorded: why the device waits is not known");
  }
  if (model.losses[Stat::kDeviceNotUnderstood] > 0) {
    out.notes.push_back("some lanes of a device hold events of an unknown kind, which do not count as work");
  }
  if (model.losses[Stat::kKernelBeforeLaunch] > 0) {
    out.notes.push_back("some kernels start before their launch: host and device clocks disagree");
  }
}

// Where the training thread was, by its samples: while the device was idle, or in steps where there is no device.
std::string sampled_note(const StudiedTrace& trace) {
  const auto& places = trace.get<analyze::sampled_places>();
  const bool has_device = trace.get<analyze::study>().has_device_work;
  const std::vector<analyze::SampledLine>& lines = has_device ? places.in_gaps : places.in_steps;
  const int64_t all_ns = has_device ? places.gaps_ns : places.steps_ns;
  if (lines.empty() || all_ns <= 0) return "";
  const double share = static_cast<double>(lines[0].ns) / static_cast<double>(all_ns);
  return (has_device ? "while the device was idle, the training thread was at "
                     : "in these steps the training thread was at ") +
         std::string(lines[0].frame) + " for " + short_percent(share) +
         " of the sampled time; more lines: firelane idle";
}

// What a memory snapshot shows beside time: allocations that failed, fragmentation, leaks.
Diagnosis judged_without_time(const StudiedTrace& trace) {
  const Model& model = trace.model();
  const bool is_memory = model.info.origin == Origin::kMemorySnapshot;
  if (model.info.origin == Origin::kExecutionTrace) {
    return {.verdict = no_verdict("an execution trace has operators and their data, but no times"),
            .state = State::kNoVerdict,
            .notes = {"open the trace of the same run with it: firelane diagnose TRACE --execution-trace " +
                      shell_quoted(model.info.path)}};
  }
  Diagnosis out{.verdict = no_verdict(is_memory ? "a memory snapshot has no times of operators or kernels"
                                                : "a flight recorder has collectives alone"),
                .state = State::kNoVerdict};
  std::vector<Found> found = ask_rules(context_of(trace));
  std::erase_if(found, [](const Found& each) { return each.about_time; });
  out.findings = merged(std::move(found));
  out.notes.push_back(is_memory ? "where memory went, and who holds it at the peak: firelane memory"
                                : "which rank the others wait for: firelane hangs DIR, with the dumps of all ranks");
  return out;
}

// Lanes of a device that no reader knows: whatever the CPU did meanwhile, it may have waited for them.
Diagnosis not_judged(const Model& model) {
  const std::vector<LaneId> lanes = unknown_device_lanes(model);
  std::string names;
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(kShown, lanes.size()); ++i) {
    const auto lane = static_cast<size_t>(lanes[i]);
    const std::string_view process = model.text(model.lanes.process_name[lane]);
    const std::string_view name = model.text(model.lanes.name[lane]);
    names += (names.empty() ? "" : ", ") +
             std::string(process.empty() ? model.text(model.lanes.process_labels[lane]) : process) + ": " +
             (name.empty() ? model.id_text(model.lanes.tid[lane]) : std::string(name));
  }
  if (lanes.size() > kShown) names += ", ...";
  return {.verdict = no_verdict("the trace has " +
                                counted(static_cast<int64_t>(lanes.size()), "lane of a device whose events are",
                                        "lanes of a device whose events are") +
                                " of an unknown kind"),
          .state = State::kNoVerdict,
          .notes = {"lanes that were not understood: " + names,
                    "the timeline shows all of it (firelane view), and operators are counted (firelane ops); what "
                    "limits the program is not judged, because it may be what these lanes show"}};
}

}  // namespace

std::string_view name_of(State state) {
  static constexpr std::array<std::string_view, 3> kNames = {"judged", "no_verdict", "empty"};
  return kNames[static_cast<size_t>(state)];
}

std::string Diagnosis::headline() const {
  if (why.empty()) {
    if (!findings.empty()) return "What to fix, largest first";
    return state == State::kNoVerdict ? "" : "Not enough data";
  }
  if (findings.empty()) return healthy ? "Nothing worth fixing" : "No fix found";
  // Findings about memory or the recording may follow, so it must not say that there is nothing at all.
  return "No change found that would make steps shorter (" +
         counted(static_cast<int64_t>(findings.size()), "remark", "remarks") + " below)";
}

void study_ahead(const StudiedTrace& trace) {
  const Model& model = trace.model();
  if (model.device_slices.size() == 0 || model.host_slices.size() <= kManyRows) {
    trace.get<analyze::study>();
    return;
  }
  run_both(
      true,
      [&] {
        trace.get<analyze::find_phases>();  // first what needs no steps, which the other finds meanwhile
        trace.get<analyze::fusion_table>();
        trace.get<analyze::copy_table>();
        trace.get<analyze::roofline>();
      },
      [&] { trace.get<analyze::study>(); });
}

Diagnosis diagnose(const StudiedTrace& trace) {
  const Model& model = trace.model();
  if (is_dump(model.info.origin)) return judged_without_time(trace);
  study_ahead(trace);
  const auto& study = trace.get<analyze::study>();
  Diagnosis out;
  if (is_empty(model, study)) {
    out.state = State::kEmpty;
    out.verdict = {.label = "nothing to analyze", .reason = "the trace has no operators and no device work"};
    out.notes = {
        "record while the program runs: firelane record -- python train.py; or run some steps inside `with "
        "firelane.profile() as prof:`, with prof.step() after each"};
    return out;
  }
  if (study.not_understood) return not_judged(model);
  if (model.info.origin == Origin::kStacks) {
    return {
        .verdict = no_verdict("the file holds stacks, but no timeline of operators or device work"),
        .state = State::kNoVerdict,
        .notes = {"firelane ops and the flame graph (firelane view) show where the time went; record with firelane or "
                  "torch.profiler for a verdict"}};
  }
  const Context context = context_of(trace);
  std::vector<Found> found = ask_rules(context);
  // To find nothing is good news only where there was enough to judge.
  const bool saves_none =
      study.bound.limit != analyze::Limit::kUnknown && std::none_of(found.begin(), found.end(), [](const Found& each) {
        return each.about_time || each.finding.gain.middle_ns() > 0;
      });
  out.healthy = saves_none && !is_mostly_idle(context);
  out.findings = merged(std::move(found));
  drop_explained(out.findings, model);
  fit_to_device(model.info, out.findings);
  for (Finding& finding : out.findings) finding.places = places_of(trace, finding);
  out.lines = largest_lines(trace);
  out.verdict = verdict_of(timed_trace(trace).get<analyze::study>());
  if (saves_none) out.why = fit_note(model.info, out.healthy ? why_healthy(context) : why_idle(context));
  add_notes(model, study, out);
  if (std::string note = light_note(trace); !note.empty()) out.notes.push_back(std::move(note));
  if (std::string note = sampled_note(timed_trace(trace)); !note.empty()) out.notes.push_back(std::move(note));
  const auto is_padding = [](const Finding& finding) { return finding.id == "padding"; };
  if (std::none_of(out.findings.begin(), out.findings.end(), is_padding)) {
    const std::string note = unseen_padding(context);
    if (!note.empty()) out.notes.push_back(note);
  }
  const auto names_largest = [](const Finding& finding) { return finding.id == "dominant-operator"; };
  if (std::none_of(out.findings.begin(), out.findings.end(), names_largest)) {
    if (std::string note = largest_note(context, out.findings); !note.empty()) out.notes.push_back(std::move(note));
  }
  for (std::string& note : out.notes) note = fit_note(model.info, std::move(note));
  out.verdict.meaning = fit_meaning(model.info, std::move(out.verdict.meaning));
  return out;
}

}  // namespace firelane::advise
