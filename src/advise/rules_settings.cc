// Settings and surroundings: more threads than cores, other processes, deterministic algorithms.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "advise/host_evidence.h"
#include "advise/notes.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

std::vector<Finding> find_oversubscription(const Context& context) {
  const Model& model = context.model;
  const int64_t cores = model.info.environment.cores_allowed;
  const int64_t threads = model.info.environment.torch_threads;
  const auto ranks = std::max<int64_t>(1, std::llround(noted_number(model, "local_world_size").value_or(1)));
  if (cores <= 0 || threads == kNoNumber || threads * ranks <= cores) return {};
  const std::string threads_text =
      ranks > 1 ? std::to_string(ranks) + " ranks with " + counted(threads, "thread", "threads") + " each"
                : counted(threads, "thread", "threads");
  // Every operator of a program on the CPU waits for all of its threads: nothing else can be judged before.
  const bool first = !context.has_device_work && 2 * threads * ranks >= 3 * cores;
  return {{.id = "cpu-oversubscription",
           .title = "torch computes with " + threads_text + " on " + counted(cores, "core", "cores") +
                    ": operators wait for threads that have no core",
           .events = threads * ranks,
           .try_text = "use no more threads than there are cores for this process",
           .try_code = "torch.set_num_threads(" + std::to_string(std::max<int64_t>(1, cores / ranks)) +
                       ")  # or OMP_NUM_THREADS, before the program starts",
           .confidence = Confidence::kHigh,
           .precedence = first ? Precedence::kNeedless : Precedence::kByGain}};
}

std::vector<Finding> find_busy_machine(const Context& context) {
  constexpr double kFull = 0.9;    // of the machine's cores
  constexpr double kOthers = 0.2;  // of them
  const Model& model = context.model;
  const auto own = noted_number(model, "cores_used");
  const auto others = noted_number(model, "cores_used_by_others");
  if (model.info.environment.cores <= 0 || !own || !others) return {};
  const auto cores = static_cast<double>(model.info.environment.cores);
  if (*others + *own < kFull * cores || *others < kOthers * cores) return {};
  return {{.id = "busy-machine",
           .title = "other processes used " + short_percent(std::min(1.0, *others / cores)) +
                    " of the machine's cores meanwhile, and none was free: steps are slower, and vary",
           .events = 1,
           .try_text = "measure on a machine that does nothing else, or give the program cores of its own",
           .try_code = "taskset -c 0-7 python train.py",
           .confidence = Confidence::kHigh}};
}

std::vector<Finding> find_deterministic(const Context& context) {
  const bool algorithms = context.model.info.environment.deterministic_algorithms == 1;
  const bool cudnn = context.model.info.environment.cudnn_deterministic == 1;
  if (!context.has_device_work) return {};
  if (!algorithms && !cudnn) return {};
  return {
      {.id = "deterministic-algorithms",
       .title = std::string(algorithms ? "torch.use_deterministic_algorithms(True)" : "cudnn.deterministic = True") +
                " is on: operators take slower kernels, and cuDNN's choice is narrower",
       .events = 1,
       .try_text = "leave it on for tests only",
       .try_code =
           algorithms ? "torch.use_deterministic_algorithms(False)" : "torch.backends.cudnn.deterministic = False",
       .confidence = Confidence::kMedium,
       .confirm_by = "time some steps without it: what it costs depends on the operators"}};
}

}  // namespace

std::vector<Rule> settings_rules() {
  return {
      {"cpu-oversubscription", "host", 0, false,
       "torch splits an operator over its threads and waits for all of them. With more threads than the process may "
       "use "
       "cores,\n"
       "some have to wait for a core, and every operator takes as long as the last. Several ranks on a machine count\n"
       "together.\n\n"
       "What to do: OMP_NUM_THREADS or torch.set_num_threads(cores per rank). DataLoader workers set theirs to 1 "
       "themselves.\n\n"
       "When not: the threads are never used, because all work is on the GPU.",
       find_oversubscription},
      {"busy-machine", "host", 0, false,
       "While this was recorded, programs outside of this one (and its children) kept most of the other cores busy. "
       "What "
       "is\n"
       "measured then is partly them.\n\n"
       "What to do: measure again when the machine is free, or pin the program to cores that nobody else uses.\n\n"
       "When not: the program always shares its machine, and what counts is how it does there.",
       find_busy_machine},
      {"deterministic-algorithms", "kernels", 0, false,
       "Deterministic modes make some operators (index_add, scatter, the backward of embeddings and of interpolation) "
       "take\n"
       "slower algorithms, fill memory that operators leave uninitialized, and limit what cuDNN may choose.\n\n"
       "What to do: switch them on for debugging and tests, not for long runs.\n\n"
       "When not: runs have to be repeatable bit by bit.",
       find_deterministic},
  };
}

}  // namespace firelane::advise
