// The host as the bottleneck: launches, waits, and recording itself.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "advise/copy_runs.h"
#include "advise/grad_scaler.h"
#include "advise/host_evidence.h"
#include "advise/host_work.h"
#include "advise/less_dispatch.h"
#include "advise/light_note.h"
#include "advise/loops.h"
#include "advise/notes.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/host/dispatch.h"
#include "analyze/trace/info.h"

namespace firelane::advise {

namespace {

// Recorded by firelane, with no step that was timed without recording.
bool is_ours(const analyze::Study& study) { return study.undone.source != analyze::CostSource::kEstimated; }
constexpr const char* kTimeSomeSteps = "leave some steps unrecorded, so that they can be timed: schedule(wait=5, ...)";

// To compile what is compiled already is no advice: what keeps torch.compile from CUDA graphs is.
void advise_fewer_launches(const Context& context, Finding& finding) {
  const auto noted = [&](std::string_view key) { return noted_number(context.model, key).value_or(0) > 0; };
  if (noted("compile_cudagraph_skips")) {
    finding.try_text =
        "torch.compile left out CUDA graphs (cuda-graphs-skipped): fix that first, or take a larger batch";
    finding.try_code = "TORCH_LOGS=cudagraphs python train.py";
  } else if (is_compile_broken(context.model)) {
    finding.try_text = "torch.compile broke its graph (graph-breaks): fix that first, or take a larger batch";
    finding.try_code = "torch.compile(model, fullgraph=True)  # fails at the first break, and says why";
  } else {
    finding.try_text = "launch less often and do more per launch: CUDA graphs, torch.compile, or a larger batch";
    finding.try_code = "model = torch.compile(model, mode=\"reduce-overhead\")";
  }
}

std::vector<Finding> find_overhead(const Context& context) {
  const analyze::Study& study = *context.study;
  if (!context.has_device_work && study.bound.limit != analyze::Limit::kOverhead) return {};
  if (study.bound.limit == analyze::Limit::kUnknown) return {};  // nor what the host has to do with it
  // A graph of the whole step leaves a twentieth of the host's work, compiled code or graphs of parts about a third.
  constexpr double kOfGraph = 0.05;
  analyze::WhatIf less;
  analyze::WhatIf least;
  int64_t compiled_ns = 0;  // that compiled code takes for itself
  if (context.has_device_work) {
    least = less = less_dispatch(context, 0.35);
    for (analyze::HostCut& cut : least.host) cut.keep = kOfGraph;
  } else {
    CompiledChange compiled = compiled_on_cpu(context, 0.5);
    less = std::move(compiled.change);
    least = compiled_on_cpu(context, 0.2).change;
    compiled_ns = compiled.own_ns;
  }
  const auto on_path = [&](analyze::PathClass path_class) {
    return study.per_step(study.path.by_class[static_cast<size_t>(path_class)]);
  };
  Finding finding{.id = "launch-overhead"};
  finding.cost_ns = on_path(analyze::PathClass::kHost) + on_path(analyze::PathClass::kLatency);
  if (!context.has_device_work) finding.cost_ns = context.gain_ns(less_dispatch(context, 0));
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  // A slow recorder looks like a slow host: the lower end is what remains if it cost the most that is likely.
  finding.gain = {std::min(study.sure_gain_ns(less), context.gain_ns(less)), context.gain_ns(least)};
  if (context.has_device_work) {
    // The replay lets work of two streams run side by side that shares one device: more than its idle time is not sure.
    // And the kernels of a CUDA graph do not follow each other without a gap.
    constexpr int64_t kGapInGraphNs = 1'000;
    const auto idle_ns =
        std::max<int64_t>(0, std::llround((1 - study.bound.device_busy) * static_cast<double>(context.step_ns)) -
                                 study.per_step(study.launches.work) * kGapInGraphNs);
    finding.gain = {std::min(finding.gain.low_ns, idle_ns), std::min(finding.gain.high_ns, idle_ns)};
    finding.most_ns = idle_ns;
  }
  finding.events = study.launches.calls;
  if (context.has_device_work) {
    const double idle = 1 - context.share_of_step(context.device_busy_ns);
    const int64_t launches = study.per_step(study.launches.calls);
    finding.title = "the host cannot feed the device: it idles " + short_percent(idle) + " of a step while " +
                    (launches > 1    ? std::to_string(launches) + " launches are prepared one by one"
                     : launches == 1 ? "its launch is prepared"
                                     : "launches are prepared");
    if (study.launches.work > 0) {
      finding.title +=
          " (" +
          short_percent(static_cast<double>(study.launches.short_work) / static_cast<double>(study.launches.work)) +
          " of the kernels are shorter than their launch)";
    }
    advise_fewer_launches(context, finding);
    add_gaps(finding, context, [](analyze::IdleCause cause) {
      return analyze::is_host_late(cause) && cause != analyze::cause_of(analyze::Activity::kInput);
    });
  } else {
    for (int64_t* ns : {&finding.gain.low_ns, &finding.gain.high_ns}) *ns = std::max<int64_t>(0, *ns - compiled_ns);
    finding.title = "Python and operator dispatch take " + short_percent(finding.share_of_step) +
                    " of a step: the operators do too little work per call";
    finding.try_text = "do more per operator with a larger batch; torch.compile fuses elementwise operators";
    finding.try_code = "model = torch.compile(model)";
    if (is_compile_broken(context.model)) {
      finding.try_text = "torch.compile broke its graph (graph-breaks): fix that first; or take a larger batch";
      finding.try_code = "torch.compile(model, fullgraph=True)  # fails at the first break, and says why";
    } else if (is_compiled(context.model)) {
      finding.gain = {};
      finding.try_text = "do more per operator: a larger batch; torch.compile has already fused what it can";
      finding.try_code = "DataLoader(dataset, batch_size=2 * batch_size)";
    }
    // What is large and true is said, also where a compiler would change nothing; but nothing is promised then.
    finding.said_by_share = true;
  }
  finding.confidence = study.undone.source == analyze::CostSource::kBaseline ? Confidence::kHigh
                       : study.undone.undecided                              ? Confidence::kLow
                                                                             : Confidence::kMedium;
  if (!context.has_device_work) {
    // Of six programs, three became faster.
    finding.confidence = Confidence::kLow;
    finding.confirm_by = "run with torch.compile and compare step times";
  } else if (finding.confidence != Confidence::kHigh) {
    finding.confirm_by =
        is_ours(study) ? kTimeSomeSteps : "time a few steps without the profiler, or record with firelane, which does";
  }
  finding.cause = "overhead";
  return {finding};
}

struct SyncAdvice {
  analyze::SyncReason reason;
  const char* who;
  const char* text;
  const char* code;
};
constexpr SyncAdvice kSyncAdvice[] = {
    {analyze::SyncReason::kItem, ".item() (or float(), int(), bool(), if on a tensor)",
     "keep numbers on the device and read them every few hundred steps",
     "total += loss.detach()  # and total.item() once per epoch"},
    {analyze::SyncReason::kNonzero,
     "an operator whose result size depends on the data (nonzero, mask as index, unique)",
     "use an operator whose result has a fixed size", "torch.where(mask, x, 0)  # instead of x[mask]"},
    {analyze::SyncReason::kCopyToHost, "a copy to the CPU", "copy asynchronously into pinned memory, and read it later",
     "host.copy_(x, non_blocking=True)  # host = torch.empty_like(x, device=\"cpu\").pin_memory()"},
    {analyze::SyncReason::kSynchronize, "torch.cuda.synchronize()", "take it out of the loop; time with CUDA events",
     "start.record(); ...; end.record()  # torch.cuda.Event(enable_timing=True)"},
    {analyze::SyncReason::kOther, "an operator", "look at the operator that waits",
     "torch.cuda.set_sync_debug_mode(\"warn\")"},
};

// With a GradScaler: its step() reads whether the gradients were finite, right after they were unscaled.
constexpr SyncAdvice kScalerAdvice = {analyze::SyncReason::kItem,
                                      "GradScaler, which reads whether the gradients are finite before each step",
                                      "train in bf16, which needs no scaler",
                                      "with torch.autocast(\"cuda\", dtype=torch.bfloat16): ...  # and no GradScaler"};

constexpr SyncAdvice kNormAdvice = {
    analyze::SyncReason::kItem, "the norm of the gradients, which is read in every step",
    "clip_grad_norm_ needs no read: leave error_if_nonfinite out, and log the norm every few hundred steps",
    "norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)  # stays on the device; no norm.item()"};

// Loops that read one number a round: without the loop the numbers are computed together and read once.
std::vector<Finding> find_reads_in_loops(const Context& context) {
  std::vector<const analyze::Loop*> chosen;
  const analyze::Loop* longest = nullptr;
  for (const analyze::Loop& loop : context.trace.get<analyze::loops>()) {
    if (loop.backward || !only_reads(loop)) continue;
    chosen.push_back(&loop);
    if (longest == nullptr || loop.end_ns - loop.start_ns > longest->end_ns - longest->start_ns) longest = &loop;
  }
  if (longest == nullptr) return {};
  const Model& model = context.model;
  Finding finding{.id = "host-sync"};
  fill_from_loops(context, chosen, finding);
  finding.title =
      "numbers are read one by one: " + body_text(model, *longest) + " " + counted(longest->rounds, "time", "times") +
      " in a row" +
      (longest->python == kNoRow ? "" : ", in " + std::string(model.text(model.host_slices.name[longest->python]))) +
      ": " + short_time(finding.cost_ns) + " of each step (" + short_percent(finding.share_of_step) + ")";
  add_longest(finding, model, longest->body);
  finding.ranges.push_back({longest->start_ns, longest->end_ns});
  finding.try_text = "compute the numbers together and read them once, or every few hundred steps";
  finding.try_code =
      "norms = torch.stack(torch._foreach_norm(grads)).tolist()  # instead of [g.norm().item() for g in grads]";
  finding.confidence = Confidence::kHigh;
  if (longest->python == kNoRow && !knows_lines(context))
    finding.try_text += "; " + context.flag(RecordOption::kLines) + " shows the line of the loop";
  finding.part_of = "overhead";
  finding.cause = "reads";
  return {finding};
}

// Within a loop that another finding takes out.
bool is_in_loop(const std::vector<analyze::Loop>& loops, LaneId lane, int64_t time_ns) {
  auto after = std::partition_point(loops.begin(), loops.end(),
                                    [&](const analyze::Loop& loop) { return loop.start_ns <= time_ns; });
  while (after != loops.begin()) {
    --after;
    if (after->lane == lane) return time_ns < after->end_ns;
  }
  return false;
}

// Share of the operator that asks, at best: a number that nobody reads costs nothing; an index still does its work.
double keeps_of_asker(analyze::SyncReason reason) { return reason == analyze::SyncReason::kItem ? 0 : 0.5; }

std::vector<Finding> find_host_sync(const Context& context) {
  const Model& model = context.model;
  const analyze::Study& study = *context.study;
  std::vector<Finding> findings = find_reads_in_loops(context);
  const auto& loops = context.trace.get<analyze::loops>();
  const auto& computed = context.trace.get<host_work>();  // waits for what the CPU computes with go with that
  const auto& weights = context.trace.get<weight_copy_runs>();
  const auto is_in_host_work = [&](int64_t time_ns) {
    const auto after = std::partition_point(computed.begin(), computed.end(),
                                            [&](const HostWork& work) { return work.end_ns <= time_ns; });
    return after != computed.end() && after->holds(time_ns);
  };
  for (SyncAdvice advice : kSyncAdvice) {
    analyze::WhatIf waits_only;
    analyze::WhatIf change;
    std::vector<Row> calls;
    int64_t waited = 0;
    Row asker = kNoRow;
    int64_t longest_ns = -1;
    for (const analyze::SyncRow& sync : study.syncs.rows) {
      // One wait at the end of the recording belongs to the measuring, not to the loop.
      const bool in_loop = sync.in_window && sync.start_ns + sync.duration_ns < study.steps.window.end_ns;
      const LaneId lane = model.host_slices.lane[sync.call];
      if (!in_loop || sync.reason != advice.reason || is_in_loop(loops, lane, sync.start_ns)) continue;
      if (is_in_host_work(sync.start_ns) || is_in_run(weights, lane, sync.start_ns)) continue;
      calls.push_back(sync.call);
      waited += sync.duration_ns;
      waits_only.waits.push_back(sync.call);
      waits_only.host.push_back({lane, sync.start_ns, sync.start_ns + sync.duration_ns, 0});
      if (sync.op == kNoRow) continue;
      const HostSlices& host = model.host_slices;
      change.host.push_back({lane, host.start_ns[sync.op], host.end_ns(sync.op), keeps_of_asker(advice.reason)});
      if (sync.duration_ns > longest_ns) {
        longest_ns = sync.duration_ns;
        asker = sync.op;
      }
    }
    if (calls.empty()) continue;
    if (advice.reason == analyze::SyncReason::kItem && are_of_scaler(model, calls)) {
      advice = kScalerAdvice;
    } else if (advice.reason == analyze::SyncReason::kItem && are_of_norms(model, calls)) {
      advice = kNormAdvice;
    }
    change.waits = waits_only.waits;
    change.host.insert(change.host.begin(), waits_only.host.begin(), waits_only.host.end());
    Finding finding{.id = "host-sync", .cost_ns = study.per_step(waited)};
    finding.share_of_step = context.share_of_step(finding.cost_ns);
    finding.gain.low_ns = std::max<int64_t>(0, context.gain_ns(waits_only));
    finding.gain.high_ns = std::max(finding.gain.low_ns, context.gain_ns(change));
    finding.events = static_cast<int64_t>(calls.size());
    const int64_t per_step = std::max<int64_t>(1, study.per_step(finding.events));
    finding.title = "the host waits for the device " + counted(per_step, "time", "times") + " a step because of " +
                    advice.who +
                    (asker == kNoRow ? "" : " (in " + std::string(model.text(model.host_slices.name[asker])) + ")") +
                    ": " + short_time(finding.cost_ns) + " of each step (" + short_percent(finding.share_of_step) +
                    "), and then has to catch up";
    add_longest(finding, model, std::move(calls));
    finding.try_text = advice.text;
    finding.try_code = advice.code;
    finding.confidence = study.graph.has_sync_records ? Confidence::kHigh : Confidence::kMedium;
    if (finding.confidence != Confidence::kHigh) {
      finding.confirm_by = knows_lines(context) ? "take the synchronization out and time some steps"
                           : is_ours(study)
                               ? "record with " + context.flag(RecordOption::kLines) + " to see the line"
                               : "record with enable_cuda_sync_events=True, and with_stack=True to see the line";
    }
    finding.part_of = "overhead";
    finding.cause = "sync:" + std::string(analyze::name_of(advice.reason));
    findings.push_back(std::move(finding));
  }
  return findings;
}

// What the command records unless told not to.
std::string_view flag_against(const Context& context, RecordOption option) {
  if (context.model.info.environment.front != Front::kCommand) return {};
  switch (option) {
    case RecordOption::kShapes: return "--no-shapes";
    case RecordOption::kMemory: return "--no-memory";
    case RecordOption::kLines: return "--no-lines";
    default: return {};
  }
}

// How to record less beside operators, in the words of who recorded: "leave out stacks=True, shapes=True",
// "firelane record --no-lines --no-shapes", which records these unless told not to; "": there is nothing more to leave
// out.
std::string without_extras(const Context& context) {
  static constexpr std::array<std::pair<std::string_view, RecordOption>, 6> kExtras = {
      {{"with_stack", RecordOption::kStacks},
       {"with_modules", RecordOption::kModules},
       {"with_lines", RecordOption::kLines},
       {"record_shapes", RecordOption::kShapes},
       {"profile_memory", RecordOption::kMemory},
       {"enable_cuda_sync_events", RecordOption::kCudaSync}}};
  const std::vector<analyze::RecordingOption> options = analyze::recording_options(context.model);
  std::string left_out;
  std::string told_not_to;
  for (const auto& [name, option] : kExtras) {
    const auto is_on = [&](const analyze::RecordingOption& each) {
      return each.name == name && each.state == analyze::Switch::kOn;
    };
    if (std::none_of(options.begin(), options.end(), is_on)) continue;
    if (const std::string_view flag = flag_against(context, option); !flag.empty()) {
      told_not_to += " " + std::string(flag);
    } else {
      left_out += (left_out.empty() ? "" : ", ") + context.flag(option);
    }
  }
  if (!left_out.empty()) left_out = "leave out " + left_out;
  if (told_not_to.empty()) return left_out;
  return "firelane record" + told_not_to + " ..." + (left_out.empty() ? "" : "  # and " + left_out);
}

void advise_to_record_less(const Context& context, Finding& finding) {
  if (!is_ours(*context.study)) {
    finding.try_text = "record less at a time (no stacks, no shapes), or with firelane";
    finding.try_code = "from firelane.profiler import profile";
    return;
  }
  const std::string less = without_extras(context);
  if (!less.empty()) {
    finding.try_text = "record less at a time";
    finding.try_code = less;
  } else if (&timed_trace(context.trace) != &context.trace) {
    finding.try_text = "nothing more to leave out; times are those of light steps, which cost less";
  } else {
    finding.try_text =
        "nothing more to leave out: recording operators alone costs that; go by the step without recording";
  }
}

std::vector<Finding> find_recorder(const Context& context) {
  const analyze::Study& study = *context.study;
  const analyze::RecordingUndone& undone = study.undone;
  Finding finding{.id = "recording-distorts", .cost_ns = undone.cost_ns};
  if (undone.step_ns <= 0 || finding.cost_ns <= 0) return {};
  const bool is_timed = undone.source == analyze::CostSource::kBaseline;
  // As the verdict has it, unless steps have changed so much that those timed tell nothing of those recorded.
  constexpr double kSame = 0.1;
  int64_t without_ns = study.usual_recorded_ns - undone.cost_ns;
  if (is_timed && std::abs(static_cast<double>(undone.usual_ns - without_ns)) < kSame * static_cast<double>(without_ns))
    without_ns = undone.usual_ns;
  if (without_ns >= study.usual_recorded_ns) return {};
  finding.share_of_step =
      1.0 - static_cast<double>(std::max<int64_t>(without_ns, 0)) / static_cast<double>(study.usual_recorded_ns);
  finding.title = "recording took " + short_percent(finding.share_of_step) + " of each " +
                  (study.recorded_steps == analyze::RecordedSteps::kFull ? "full" : "recorded") +
                  " step: " + short_time(study.usual_recorded_ns) + " while recording, " + (is_timed ? "" : "about ") +
                  short_time(without_ns) + " without";
  if (!is_timed) {
    finding.title += " (" + short_time(undone.low_ns) + " to " + short_time(undone.high_ns) + ")";
  }
  finding.title += "; it is subtracted before the analysis";
  advise_to_record_less(context, finding);
  finding.confidence = is_timed ? Confidence::kHigh : undone.undecided ? Confidence::kLow : Confidence::kMedium;
  if (!is_timed) {
    finding.confirm_by = is_ours(study) ? kTimeSomeSteps : "time the same steps without a profiler";
  }
  return {finding};
}

}  // namespace

std::vector<Rule> host_rules() {
  return {
      {"launch-overhead", "host", 0.10, true,
       "Every operator costs the host a few microseconds: Python, dispatch, the launch call. When the kernels are\n"
       "shorter than that, the device spends most of its time waiting for the next launch.\n\n"
       "The expected gain is a replay of the trace in which the host's work shrinks to 35% (lower end: compiled\n"
       "code, graphs of parts of the step) or 5% (upper end: a CUDA graph of the step), while kernels and waits\n"
       "stay as they are. Without a device it is what torch.compile fuses: 20 to 50% of the dispatch time of\n"
       "elementwise operators and their backward nodes remains; matmuls, lookups and the optimizer are called as\n"
       "before, and the compiled code costs 0.1 ms per call.\n\n"
       "What to do: torch.compile (mode=\"reduce-overhead\" uses CUDA graphs), torch.cuda.graph by hand, a larger "
       "batch,\n"
       "fused optimizers, fewer small operators.\n\n"
       "When not: shapes that change in every step cannot be captured in a graph. Recording itself also slows\n"
       "launches down; firelane subtracts an estimate of that first.",
       find_overhead},
      {"host-sync", "host", 0.02, true,
       "Some calls need an answer from the device: a number, a size, data on the CPU. The host then blocks until\n"
       "the device has finished all earlier work, and afterwards the device idles until the host has launched more.\n\n"
       "What to do: do not read values in the loop (loss.item(), print(loss), if tensor), use operators with fixed\n"
       "sizes, copy with non_blocking=True into pinned memory. torch.cuda.set_sync_debug_mode(\"warn\") prints the\n"
       "lines that synchronize.\n\n"
       "When not: one read every few hundred steps costs nothing.",
       find_host_sync},
      {"recording-distorts", "host", 0.15, false,
       "The profiler itself takes time for every operator, call, allocation and Python function. That makes the host "
       "look\n"
       "slower than it is, and a busy device look idle.\n\n"
       "Firelane subtracts the cost per event and replays the dependencies before the analysis. Firelane's own\n"
       "traces contain the cost as measured in the program, and steps that were timed without recording; for\n"
       "torch.profiler's traces typical costs are used, and the range is shown.\n\n"
       "What to do: record fewer things, or with firelane.\n\n"
       "When not: shares and gains already refer to the step without recording; only the recorded times are\n"
       "distorted.",
       find_recorder},
  };
}

}  // namespace firelane::advise
