// Work that does not change the part of its result that is read.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/kernel_evidence.h"
#include "advise/op_facts.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/ops/op_inputs.h"
#include "analyze/verdict/results.h"

namespace firelane::advise {

namespace {

// The dimension that an op works along, from 0; nothing: not recorded.
std::optional<int64_t> dim_of(const Model& model, Row op) {
  const std::vector<analyze::Dims> shapes = shapes_of_op(model, op);
  const std::optional<int64_t> dim = number_of_op(model, op, 1);
  if (!dim || shapes.empty()) return {};
  return *dim < 0 ? *dim + static_cast<int64_t>(shapes[0].size()) : *dim;
}

// Whether it puts another number for each, of which the largest is where it was.
bool keeps_order(const Model& model, Row op, Row reader) {
  const std::string_view name = name_of_op(model, op);
  if (name == "aten::sigmoid" || name == "aten::log_sigmoid") return true;
  if (name != "aten::softmax" && name != "aten::log_softmax") return false;
  // Along another dimension, each number is changed by other ones.
  const std::optional<int64_t> along = dim_of(model, op);
  return along && along == dim_of(model, reader);
}
bool looks_at_order(std::string_view name) { return name == "aten::argmax" || name == "aten::argsort"; }

std::vector<Finding> find_order_preserving(const Context& context) {
  if (context.study == nullptr) return {};
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  Evidence evidence(context);
  std::vector<Row> ops;
  Row reader = kNoRow;
  for (const analyze::Result& result : context.trace.get<analyze::find_results>()) {
    if (!result.is_freed || result.readings.empty() || !context.in_window(host.start_ns[result.op])) continue;
    const bool by_order =
        std::all_of(result.readings.begin(), result.readings.end(), [&](const analyze::Reading& reading) {
          return looks_at_order(name_of_op(model, reading.op)) && keeps_order(model, result.op, reading.op);
        });
    if (!by_order || (!ops.empty() && ops.back() == result.op)) continue;
    ops.push_back(result.op);
    reader = result.readings[0].op;
    if (!context.has_device_work) {
      evidence.add_call(result.op, 0, 0);
      continue;
    }
    for (const Row work : context.trace.get<launched_work>().during(result.op)) {
      // It may put its input into another order first, which the reader then does, or pays for.
      const Row by = model.device_slices.op[work];
      const bool is_copy = by != kNoRow && name_of_op(model, by) == "aten::copy_";
      if (is_copy) {
        evidence.add_beside(work, 1, 0);
      } else {
        evidence.add_device(work, 0, 0);
      }
    }
    evidence.add_host(result.op, 0);
    evidence.add_way_to(result.op);
  }
  if (evidence.empty()) return {};
  Finding finding{.id = "order-preserving-work",
                  .try_text = "leave it out: the largest score has the largest probability, too",
                  .try_code = "chosen = scores.argmax(1)  # instead of scores.softmax(1).argmax(1)",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "compare results and step times",
                  .cause = "order-preserving-work",
                  .part_of = kFusion,
                  .precedence = Precedence::kNeedless};
  evidence.fill(finding);
  finding.events = static_cast<int64_t>(ops.size());
  const Row longest = *std::max_element(ops.begin(), ops.end(),
                                        [&](Row a, Row b) { return host.duration_ns[a] < host.duration_ns[b]; });
  finding.title = std::string(name_of_op(model, longest)) + " of " + shapes_text_of_op(model, longest) +
                  " is read by " + std::string(name_of_op(model, reader)) +
                  " alone, which gives the same result without it: " + short_percent(finding.share_of_step) +
                  " of a step";
  add_longest(finding, model, ops);
  return {finding};
}

}  // namespace

std::vector<Rule> unread_rules() {
  return {
      {"order-preserving-work", "waste", 0.05, true,
       "A softmax, log_softmax or sigmoid whose result is read only by argmax or argsort: it changes the numbers\n"
       "but not their order, so the result is the same without it. For large scores (all classes of all pixels) it\n"
       "costs several passes over memory.\n\n"
       "Detected where all readers of the result, until it is freed, are argmax or argsort along the same\n"
       "dimension. Needs a recording that follows tensors and memory (firelane record does), without compiled parts\n"
       "or CUDA graphs. The gain is a replay without it.\n\n"
       "What to do: apply argmax or argsort to the scores themselves.\n\n"
       "When not: ties caused by rounding may be broken differently.",
       find_order_preserving},
  };
}

}  // namespace firelane::advise
