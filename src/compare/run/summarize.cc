#include <algorithm>
#include <map>
#include <numeric>

#include "advise/diagnose.h"
#include "analyze/compute/roofline.h"
#include "analyze/memory/memory.h"
#include "analyze/steps/input_pipeline.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/cost.h"
#include "base/check.h"
#include "base/parallel.h"
#include "compare/run/pieces.h"
#include "compare/statistics/samples.h"

namespace firelane::compare {

namespace {

void take_steps(const Model& model, const analyze::Study& study, Run& run) {
  run.step_ns = study.usual_step_ns;
  run.recorded_ns = study.usual_recorded_ns;
  run.recording_estimated = study.undone.source == analyze::CostSource::kEstimated;
  run.steps_by = analyze::name_of(study.steps.source);
  std::vector<double> by_host;
  std::vector<double> by_device;
  const TimedSteps& timed_steps = model.timed_steps;
  for (size_t i = 0; i < timed_steps.size(); ++i) {
    if (timed_steps.disturbance[i] != StepDisturbance::kNone) continue;
    by_host.push_back(static_cast<double>(timed_steps.duration_ns[i]));
    if (timed_steps.device_ns[i] != kNoNumber) by_device.push_back(static_cast<double>(timed_steps.device_ns[i]));
  }
  // The host may run ahead of a device that is behind: a step takes what the slower of both takes.
  const std::vector<double>& timed = median(by_device) > median(by_host) ? by_device : by_host;
  constexpr size_t kFewestTimed = 3;  // as analyze::find_step_times
  constexpr size_t kShowsWarmUp = 8;  // fewer steps do not tell warm-up from noise
  if (timed.size() >= kFewestTimed && study.steps.source == analyze::StepSource::kMarked) {
    const std::span<const double> kept = timed.size() >= kShowsWarmUp ? steady(timed) : std::span<const double>(timed);
    for (const double ns : kept) run.steps_ns.push_back(static_cast<int64_t>(ns));
    run.step_ns = static_cast<int64_t>(median(kept));
    return;
  }
  for (const analyze::Interval& span : study.step_spans) run.steps_ns.push_back(span.end_ns - span.start_ns);
}

void take_parts(const Model& model, const analyze::Study& study, Run& run) {
  Parts sums{};
  for (size_t i = 0; i < analyze::kActivityCount; ++i) {
    sums[static_cast<size_t>(part_of_activity(static_cast<analyze::Activity>(i)))] += study.path.host[i];
  }
  analyze::DeviceClasses classes(model);
  analyze::TraitsOfNames traits(model);
  for (const analyze::PathPiece& piece : study.path.pieces) {
    const int64_t ns = piece.end_ns - piece.start_ns;
    switch (piece.path_class) {
      case analyze::PathClass::kHost:
      case analyze::PathClass::kInput: break;
      case analyze::PathClass::kCompute:
      case analyze::PathClass::kCommunication:
      case analyze::PathClass::kCopy:
        sums[static_cast<size_t>(part_of_work(model, piece.row, classes.of(piece.row), traits))] += ns;
        break;
      case analyze::PathClass::kLatency: sums[static_cast<size_t>(Part::kLatency)] += ns; break;
      case analyze::PathClass::kUnknown: sums[static_cast<size_t>(Part::kUnknown)] += ns; break;
    }
  }
  const int64_t judged = std::max<int64_t>(1, study.steps.judged);
  int64_t given = 0;
  for (size_t i = 0; i < kPartCount; ++i) {
    run.parts[i] = sums[i] / judged;
    given += run.parts[i];
  }
  run.parts[static_cast<size_t>(Part::kUneven)] += run.step_ns - given;
  FL_CHECK(std::accumulate(run.parts.begin(), run.parts.end(), int64_t{0}) == run.step_ns,
           "summarize: parts must add up to the step");
}

void take_counts(const Model& model, const analyze::Study& study, Run& run) {
  const auto steps = static_cast<double>(std::max<int64_t>(1, study.steps.judged));
  run.launches = static_cast<double>(study.launches.calls) / steps;
  run.busy_ns = study.per_step(study.breakdown.total.busy_ns());
  double gpu_ns = 0;
  for (const WorkGroup& group : run.work) {
    if (!run.has_device_work) {
      run.ops += group.calls;
      continue;
    }
    gpu_ns += group.total_ns;
    (group.part == Part::kCopies ? run.copies : run.kernels) += group.calls;
  }
  run.gpu_ns = static_cast<int64_t>(gpu_ns);
  const analyze::Interval window = study.steps.window;
  const HostSlices& host = model.host_slices;
  int64_t ops = 0;
  int64_t allocator_calls = 0;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.start_ns[row] < window.start_ns || host.start_ns[row] >= window.end_ns) continue;
    if (host.kind[row] == HostKind::kOp) ++ops;
    if (is_call(host.kind[row]) && analyze::is_allocator_call(model.text(host.name[row]))) ++allocator_calls;
  }
  run.ops = static_cast<double>(ops) / steps;
  run.allocator_calls = static_cast<double>(allocator_calls) / steps;
  std::map<std::tuple<std::string, std::string, std::string>, SyncPlace> places;
  for (const analyze::SyncRow& sync : study.syncs.rows) {
    if (!sync.in_window || sync.reason == analyze::SyncReason::kRecorder) continue;
    SyncPlace place{.reason = std::string(analyze::name_of(sync.reason)),
                    .op = sync.op == kNoRow ? "" : std::string(model.text(host.name[sync.op])),
                    .line = line_of(model, sync.call)};
    SyncPlace& kept = places.try_emplace({place.reason, place.op, place.line}, place).first->second;
    kept.calls += 1 / steps;
    kept.ns += static_cast<double>(sync.duration_ns) / steps;
    run.syncs += 1 / steps;
  }
  for (const auto& [key, place] : places) run.sync_places.push_back(place);
  std::stable_sort(run.sync_places.begin(), run.sync_places.end(),
                   [](const SyncPlace& a, const SyncPlace& b) { return a.ns > b.ns; });
  const auto& input = static_cast<size_t>(analyze::Activity::kInput);
  run.input_wait_ns = study.per_step(study.breakdown.total.host[input]);
}

void take_memory(const StudiedTrace& trace, Run& run) {
  if (trace.model().memory_events.size() == 0) return;
  const auto& memory = trace.get<analyze::memory_report>();
  if (memory.devices.empty()) return;
  const analyze::DeviceMemory* most = &memory.devices[0];  // GPUs first
  for (const analyze::DeviceMemory& device : memory.devices) {
    if (device.device_type == most->device_type && device.peak.allocated_bytes > most->peak.allocated_bytes) {
      most = &device;
    }
  }
  run.has_memory = true;
  run.memory_device = most->name;
  run.peak_bytes = most->peak.allocated_bytes;
  run.reserved_bytes = most->peak_reserved_bytes;
  run.memory = most->at_peak;
}

std::string precision_words(const analyze::RooflineRow& row) {
  const std::string name(analyze::name_of(row.precision));
  if (row.precision == analyze::Precision::kFp32 && row.tensor_cores == analyze::TensorCores::kYes) {
    return name + " on tensor cores";
  }
  const bool has_units = row.precision != analyze::Precision::kFp32 && row.precision != analyze::Precision::kFp64;
  return has_units && row.tensor_cores == analyze::TensorCores::kNo ? name + " without tensor cores" : name;
}

// The peak is that at which all of them take as long as each at its own: what MFU is made of.
void take_precisions(const analyze::Roofline& roof, double steps, Run& run) {
  std::vector<double> at_peak_s;
  for (const analyze::RooflineRow& row : roof.rows) {
    if (row.flops <= 0 || row.device_ns <= 0) continue;
    const std::string name = precision_words(row);
    const auto found = std::find_if(run.precisions.begin(), run.precisions.end(),
                                    [&](const PrecisionUse& use) { return use.precision == name; });
    const auto at = static_cast<size_t>(found - run.precisions.begin());
    if (at == run.precisions.size()) {
      run.precisions.push_back({.precision = name});
      at_peak_s.push_back(0);
    }
    run.precisions[at].flops += static_cast<double>(row.flops) / steps;
    run.precisions[at].device_ns += static_cast<double>(row.device_ns) / steps;
    const double peak = roof.peaks == nullptr ? 0 : roof.peaks->flops_per_s(row.precision, row.tensor_cores);
    if (peak > 0) at_peak_s[at] += static_cast<double>(row.flops) / steps / peak;
  }
  for (size_t i = 0; i < at_peak_s.size(); ++i) {
    if (at_peak_s[i] > 0) run.precisions[i].peak_flops_per_s = run.precisions[i].flops / at_peak_s[i];
  }
  std::stable_sort(run.precisions.begin(), run.precisions.end(),
                   [](const PrecisionUse& a, const PrecisionUse& b) { return a.flops > b.flops; });
}

void take_flops(const StudiedTrace& trace, const analyze::Study& study, Run& run) {
  const auto& roof = trace.get<analyze::roofline>();
  const auto steps = static_cast<double>(std::max<size_t>(1, study.steps.steps.size()));
  run.flops = static_cast<double>(std::max<int64_t>(0, roof.whole.flops)) / steps;
  if (roof.whole.mfu_percent >= 0 && run.step_ns > 0 && roof.whole.flops > 0) {
    // The same FLOPs in a step without recording.
    run.mfu_percent = roof.whole.mfu_percent * static_cast<double>(roof.whole.duration_ns) /
                      (steps * static_cast<double>(run.step_ns));
  }
  take_precisions(roof, steps, run);
}

std::string outermost_module(const Model& model) {
  for (Row row = 0; row < model.host_slices.size(); ++row) {
    if (analyze::is_module_slice(model, row)) return std::string(analyze::module_type(model, row));
  }
  return "";
}

}  // namespace

Run summarize(const StudiedTrace& trace) {
  const Model& model = trace.model();
  advise::study_ahead(trace);
  const auto& study = trace.get<analyze::study>();
  Run run{.path = model.info.path, .format = model.info.format, .has_device_work = study.has_device_work};
  run.model_name = outermost_module(model);
  run.environment = environment_of(model);
  run.recording = recording_of(model);
  const advise::Diagnosis* diagnosis = nullptr;
  constexpr size_t kManyRows = 100'000;  // for fewer, starting a thread takes longer than it saves
  run_both(
      model.host_slices.size() > kManyRows, [&] { diagnosis = &trace.get<advise::diagnose>(); },
      [&] {
        take_steps(model, study, run);
        take_parts(model, study, run);
        run.work = work_groups(model, study);
        run.places = host_places(model, study);
        take_counts(model, study, run);
        take_memory(trace, run);
      });
  const BatchSize batch = batch_size(model, study);
  run.samples = batch.samples;
  run.samples_are = batch.what;
  run.tokens = batch.tokens;
  take_flops(trace, study, run);
  const analyze::Cost cost = analyze::cost_of(trace);
  run.energy_joules = cost.energy_per_step_joules;
  run.mean_power_watts = cost.mean_power_watts;
  run.limit = analyze::name_of(study.bound.limit);
  run.verdict = diagnosis->verdict.headline();
  for (const advise::Finding& finding : diagnosis->findings) {
    run.findings.push_back({finding.id, finding.title, finding.gain.middle_ns()});
  }
  return run;
}

}  // namespace firelane::compare
