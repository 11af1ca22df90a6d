// What torch.compile says about itself: graph breaks, recompilations, the time it takes, CUDA graphs that it skipped.
//
// Dynamo counts these in the program; our recorder's notes (python/firelane/profiler/_surroundings.py) bring them into
// the trace. Other traces have none.
#include <cmath>
#include <string>
#include <vector>

#include "advise/host_evidence.h"
#include "advise/notes.h"
#include "advise/rule.h"
#include "advise/text.h"

namespace firelane::advise {

namespace {

int64_t noted_count(const Context& context, std::string_view key) {
  return std::llround(noted_number(context.model, key).value_or(0));
}

int64_t noted_ns(const Context& context, std::string_view key) {
  return std::llround(1e9 * noted_number(context.model, key).value_or(0));
}

// Recordings before compile_failed was noted count graphs of some backends only.
bool compiles_nothing(const Context& context) {
  return noted_count(context, "compile_failed") > 0 && noted_count(context, "compile_graphs") == 0;
}

// A compiler that was asked for and does nothing: what it would do is no advice before it does. Nor is fewer launches,
// where the compiler would see to that.
Precedence before_others(const Context& context) {
  const bool is_late = context.study != nullptr && context.study->bound.limit == analyze::Limit::kOverhead;
  return compiles_nothing(context) || is_late ? Precedence::kNeedless : Precedence::kByGain;
}

// A break inside of a loop, say: Dynamo leaves the whole function, with all that it calls, as it was.
std::vector<Finding> find_left_out(const Context& context) {
  const int64_t failed = noted_count(context, "compile_failed");
  if (failed == 0) return {};
  const std::string place = noted_text(context.model, "compile_failed_at");
  const std::string reason = noted_text(context.model, "compile_fail_reason");
  return {
      {.id = "graph-breaks",
       .title = "torch.compile gave up on " + counted(failed, "function", "functions") +
                (place.empty() ? "" : ", first " + place) + ", and it runs uncompiled" +
                (compiles_nothing(context) ? ": nothing is compiled" : "") + (reason.empty() ? "" : "; why: " + reason),
       .events = failed,
       .try_text = "make the function compile in one piece: no print, no number read from a tensor (.item(), float()), "
                   "no if that depends on data, and especially none inside a loop",
       .try_code = "torch.compile(model, fullgraph=True)  # fails at the first break, and says why",
       .confidence = Confidence::kHigh,
       .precedence = before_others(context)}};
}

std::vector<Finding> find_graph_breaks(const Context& context) {
  const int64_t breaks = noted_count(context, "compile_graph_breaks");
  if (breaks == 0) return find_left_out(context);
  const std::string reason = noted_text(context.model, "compile_break_reason");
  const int64_t graphs = noted_count(context, "compile_graphs");
  return {{.id = "graph-breaks",
           .title = "torch.compile broke its graph at " + counted(breaks, "place", "places") +
                    (compiles_nothing(context) ? ", and compiled nothing"
                     : graphs == 0             ? ""
                                               : ", into " + counted(graphs, "graph", "graphs")) +
                    (reason.empty() ? "" : "; most often: " + reason),
           .events = breaks,
           .try_text = "make the function compile in one piece: no print, no data-dependent if, no calls of code that "
                       "Dynamo cannot trace",
           .try_code = "torch.compile(model, fullgraph=True)  # fails at the first break, and says why",
           .confidence = Confidence::kHigh,
           .precedence = before_others(context)}};
}

// Compiled again while steps were already running: sizes, numbers or objects that guards took for constant.
std::vector<Finding> find_recompilations(const Context& context) {
  const int64_t again = noted_count(context, "compile_recompiles");
  const int64_t recent_ns = noted_ns(context, "compile_recent_seconds");
  if (again == 0) return {};
  const std::string where = noted_text(context.model, "compile_recompiled");
  const std::string reason = noted_text(context.model, "compile_recompile_reason");
  Finding finding{.id = "recompilations", .events = again};
  const int64_t steps = std::max(context.step_count, static_cast<int64_t>(context.model.timed_steps.size()));
  finding.cost_ns = noted_count(context, "compile_recent") > 0 ? recent_ns / steps : 0;
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.title = "torch.compile compiled the same code again " + counted(again, "time", "times") +
                  (where.empty() ? "" : ", last " + where) + (reason.empty() ? "" : ", because of " + reason) +
                  (finding.cost_ns == 0
                       ? ""
                       : "; " + short_time(recent_ns) + " of it in the " + std::to_string(steps) + " analyzed steps");
  finding.try_text =
      "keep what the guard names constant, or mark it as dynamic; put numbers that change in every step into tensors";
  finding.try_code = "torch._dynamo.mark_dynamic(x, 0)  # or torch.compile(model, dynamic=True)";
  finding.confidence = Confidence::kHigh;
  return {finding};
}

std::vector<Finding> find_cold_start(const Context& context) {
  constexpr int64_t kLongNs = 60'000'000'000;
  const int64_t ns = noted_ns(context, "compile_seconds");
  if (ns < kLongNs) return {};
  return {{.id = "compile-cold-start",
           .title = "compiling took " + short_time(ns) + " of this run, before its steps were fast (" +
                    counted(noted_count(context, "compile_frames"), "function", "functions") + ")",
           .events = noted_count(context, "compile_frames"),
           .try_text = "compile the repeated block instead of the whole model, and keep Inductor's cache between runs",
           .try_code = "for block in model.blocks: block.compile()  # TORCHINDUCTOR_CACHE_DIR on a disk that stays",
           .confidence = Confidence::kHigh}};
}

std::vector<Finding> find_cudagraph_skips(const Context& context) {
  const int64_t skips = noted_count(context, "compile_cudagraph_skips");
  if (skips == 0) return {};
  return {{.id = "cuda-graphs-skipped",
           .title = "torch.compile was asked for CUDA graphs and skipped them for " +
                    counted(skips, "graph", "graphs") + ": each of their kernels is launched by the host",
           .events = skips,
           .try_text = "see why: inputs that are mutated, tensors on the CPU, or sizes that change",
           .try_code = "TORCH_LOGS=cudagraphs python train.py",
           .confidence = Confidence::kMedium,
           .confirm_by = "TORCH_LOGS=cudagraphs names the operator",
           .precedence = before_others(context)}};
}

}  // namespace

std::vector<Rule> compile_rules() {
  return {
      {"graph-breaks", "compile", 0, false,
       "torch.compile could not trace a function in one piece: at each break the compiled code returns to Python,\n"
       "and nothing is fused across it. On a break inside a loop it gives up on the whole function, which then runs\n"
       "uncompiled. "
       "Counted by Dynamo itself, over the whole run, in recordings of firelane.\n\n"
       "What to do: TORCH_LOGS=graph_breaks names each place; take print, .item() and data-dependent ifs out of "
       "compiled\n"
       "code, or leave the part out with torch.compiler.disable on purpose.\n\n"
       "When not: a break between two large parts costs next to nothing.",
       find_graph_breaks},
      {"recompilations", "compile", 0, false,
       "torch.compile guarded on sizes, numbers or objects that later changed, and compiled the function again.\n"
       "Each recompilation takes seconds; after eight (torch._dynamo.config.recompile_limit) the function runs\n"
       "without being compiled.\n\n"
       "What to do: TORCH_LOGS=recompiles names each guard. Mark dimensions that change as dynamic, pad to a few "
       "sizes, put\n"
       "numbers that change into tensors.\n\n"
       "When not: two or three sizes that each occur often, and are each compiled once.",
       find_recompilations},
      {"compile-cold-start", "compile", 0, false,
       "Compiling took a minute or more of the run. Each new run pays this again unless Inductor's cache is kept.\n\n"
       "What to do: compile one block of a model that repeats it (regional compilation), keep TORCHINDUCTOR_CACHE_DIR, "
       "or\n"
       "use torch.compiler.save_cache_artifacts().\n\n"
       "When not: the run takes days.",
       find_cold_start},
      {"cuda-graphs-skipped", "compile", 0, false,
       "mode=\"reduce-overhead\" asks for CUDA graphs; Inductor skips them where they would be incorrect or bring\n"
       "nothing: inputs "
       "that are mutated, work on the CPU in between, sizes that change.\n\n"
       "What to do: TORCH_LOGS=cudagraphs says why for each graph.\n\n"
       "When not: launches are not what limits the program.",
       find_cudagraph_skips},
  };
}

}  // namespace firelane::advise
