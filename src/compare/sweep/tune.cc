#include "compare/sweep/tune.h"

#include <algorithm>
#include <cstdlib>

#include "compare/sweep/sweep.h"

namespace firelane::compare {

namespace {

constexpr double kMatters = 0.02;    // of a step: a shorter wait is not worth a trial
constexpr double kBetter = 0.99;     // of the best cost: what is nearer may be noise
constexpr double kMemoryUsed = 0.9;  // of the GPU's memory, at most

Settings with(Settings settings, const std::string& name, const std::string& value) {
  const auto known =
      std::find_if(settings.begin(), settings.end(), [&](const auto& setting) { return setting.first == name; });
  if (known != settings.end()) {
    known->second = value;
  } else {
    settings.emplace_back(name, value);
  }
  return settings;
}

std::string percent(double share) {
  const std::string tenths = std::to_string(static_cast<int>(share * 1000 + 0.5));
  return (tenths.size() < 2 ? "0" : tenths.substr(0, tenths.size() - 1)) + "." + tenths.back() + "%";
}

class Tuner {
 public:
  Tuner(const std::function<Result<TimedRun>(const Settings&)>& measure, const TuneOptions& options)
      : measure_(measure), options_(options) {}

  Result<TuneResult> run() {
    FL_TRY(const TimedRun first, measure_({}));
    if (!first.failure.empty()) return Error{first.failure};
    result_.trials.push_back({{}, first, "the unchanged program", true});
    best_ = first.timed;
    FL_TRY_VOID(tune_loader());
    FL_TRY_VOID(tune_device());
    for (const TuneVariable& variable : options_.variables) FL_TRY_VOID(tune_variable(variable));
    return std::move(result_);
  }

 private:
  double cost(const TimedSteps& timed, const Settings& settings) const {
    return cost_ns(timed, settings, options_.variables);
  }

  // Null when it failed or there are no trials left.
  Result<const TimedSteps*> attempt(const Settings& settings, const std::string& why) {
    if (result_.trials.size() >= options_.max_trials) return nullptr;
    FL_TRY(TimedRun run, measure_(settings));
    const bool failed = !run.failure.empty();
    const double before = cost(best_, result_.best);
    const double after = failed ? 0 : cost(run.timed, settings);
    const bool kept = !failed && (before == 0 || after < kBetter * before);
    result_.trials.push_back({settings, std::move(run), why, kept});
    const TimedSteps& timed = result_.trials.back().run.timed;
    if (kept) keep(settings, timed);
    return failed ? nullptr : &timed;
  }

  void keep(const Settings& settings, const TimedSteps& timed) {
    result_.best = settings;
    best_ = timed;
  }

  Result<void> tune_loader() {
    const TimedSteps& first = result_.trials[0].run.timed;
    if (first.workers < 0) {
      result_.left_alone.emplace_back("loading: the program has no DataLoader");
      return {};
    }
    if (first.wait_share() < kMatters) {
      result_.left_alone.push_back("loading: the program waits for its DataLoader for only " +
                                   percent(first.wait_share()) + " of a step");
      return {};
    }
    FL_TRY_VOID(tune_workers());
    if (best_.workers > 0 && best_.wait_share() >= kMatters) {
      FL_TRY_VOID(attempt(with(result_.best, "prefetch_factor", "4"),
                          "it still waits " + percent(best_.wait_share()) + " of a step: more batches loaded ahead"));
    }
    if (best_.has_gpu) {
      FL_TRY_VOID(attempt(with(result_.best, "pin_memory", "1"), "copies from pinned memory are faster"));
    }
    return {};
  }

  Result<void> tune_workers() {
    const int most = options_.max_workers;
    int now = static_cast<int>(best_.workers);
    for (int round = 0; round < 4 && now < most && best_.wait_share() >= kMatters; ++round) {
      const auto step = static_cast<double>(best_.step_ns);
      const int next =
          std::min(most, std::max(now + 1, workers_needed(step, static_cast<double>(best_.wait_ns), now, most)));
      const double before = cost(best_, result_.best);
      FL_TRY(const TimedSteps* timed, attempt(with(result_.best, "workers", std::to_string(next)),
                                              "it waits " + percent(best_.wait_share()) +
                                                  " of a step: " + std::to_string(next) + " would keep up"));
      if (timed == nullptr || cost(*timed, result_.trials.back().settings) >= kBetter * before) break;
      now = next;
    }
    return try_fewer_workers();
  }

  // What loads as fast with half of the processes leaves cores and memory to the rest.
  Result<void> try_fewer_workers() {
    const int fewer = static_cast<int>(best_.workers + 1) / 2;
    const bool is_tried = std::any_of(result_.trials.begin(), result_.trials.end(), [&](const TuneTrial& trial) {
      return trial.run.failure.empty() && trial.run.timed.workers == fewer;
    });
    if (result_.best.empty() || best_.workers < 2 || is_tried || best_.wait_share() >= kMatters) return {};
    const double before = cost(best_, result_.best);
    const Settings settings = with(result_.best, "workers", std::to_string(fewer));
    FL_TRY(const TimedSteps* timed, attempt(settings, "as fast with fewer processes?"));
    if (timed != nullptr && cost(*timed, settings) < before / kBetter) {
      result_.trials.back().kept = true;
      keep(settings, *timed);
    }
    return {};
  }

  Result<void> tune_device() {
    const TimedSteps& first = result_.trials[0].run.timed;
    if (first.has_gpu && first.convolutions) {
      FL_TRY_VOID(attempt(with(result_.best, "cudnn_benchmark", "1"), "there are convolutions"));
    }
    if (first.allocates) {
      FL_TRY_VOID(attempt(with(result_.best, "expandable_segments", "1"),
                          "the allocator requests memory from the driver in every step"));
    }
    return {};
  }

  Result<void> tune_variable(const TuneVariable& variable) {
    std::vector<MemoryPoint> memory;
    for (const std::string& value : variable.values) {
      const double number = std::atof(value.c_str());
      const auto predicted = predict_memory(memory, number);
      const auto limit = kMemoryUsed * static_cast<double>(best_.memory_bytes);
      if (variable.counts_samples && predicted && limit > 0 && *predicted > limit) {
        result_.left_alone.push_back(variable.name + "=" + value + ": it would take " +
                                     percent(*predicted / static_cast<double>(best_.memory_bytes)) +
                                     " of the GPU's memory; 10% are kept free");
        continue;
      }
      FL_TRY(const TimedSteps* timed, attempt(with(result_.best, variable.name, value), "a value of --var"));
      if (timed != nullptr && timed->peak_bytes > 0) memory.push_back({number, static_cast<double>(timed->peak_bytes)});
    }
    return {};
  }

  const std::function<Result<TimedRun>(const Settings&)>& measure_;
  const TuneOptions& options_;
  TuneResult result_;
  TimedSteps best_;
};

}  // namespace

double cost_ns(const TimedSteps& timed, const Settings& settings, const std::vector<TuneVariable>& variables) {
  const auto step = static_cast<double>(timed.step_ns);
  for (const TuneVariable& variable : variables) {
    if (!variable.counts_samples) continue;
    for (const auto& [name, value] : settings) {
      if (name == variable.name && std::atof(value.c_str()) > 0) return step / std::atof(value.c_str());
    }
    return timed.batch > 0 ? step / static_cast<double>(timed.batch) : 0;
  }
  return step;
}

Result<TuneResult> tune(const std::function<Result<TimedRun>(const Settings&)>& measure, const TuneOptions& options) {
  return Tuner(measure, options).run();
}

}  // namespace firelane::compare
