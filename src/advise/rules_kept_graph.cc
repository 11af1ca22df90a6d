// Backward passes that get longer from step to step, through the graphs of all steps before.
#include <algorithm>
#include <string>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/kept_graph.h"
#include "advise/rule.h"
#include "advise/text.h"

namespace firelane::advise {

namespace {

std::vector<Finding> find_growing_backward(const Context& context) {
  if (context.study == nullptr) return {};
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const auto& kept = context.trace.get<kept_graph>();
  if (kept.empty()) return {};
  Evidence evidence(context);
  int64_t spent_ns = 0;
  for (size_t i = 0; i < kept.nodes.size(); ++i) {
    const Row node = kept.nodes[i];
    if (context.has_device_work) {
      evidence.add_host(node, 0, 0);
    } else {
      evidence.add_call(node, 0, 0);
    }
    const analyze::Interval& span = kept.spans[i];
    evidence.add_stretch(kept.lanes[i], host.end_ns(node), span.end_ns);
    if (context.in_window(span.start_ns)) spent_ns += span.end_ns - span.start_ns;
  }
  for (Row work = 0; context.has_device_work && work < model.device_slices.size(); ++work) {
    const Row launch = model.device_slices.launch[work];
    if (launch == kNoRow) continue;
    const auto after = std::partition_point(kept.spans.begin(), kept.spans.end(), [&](const analyze::Interval& each) {
      return each.start_ns <= host.start_ns[launch];
    });
    if (after == kept.spans.begin() || host.start_ns[launch] >= std::prev(after)->end_ns) continue;
    if (host.lane[launch] == kept.lanes[static_cast<size_t>(std::prev(after) - kept.spans.begin())])
      evidence.add_device(work, 0, 0);
  }
  if (evidence.empty()) return {};
  Finding finding{
      .id = "growing-backward",
      .try_text =
          "detach what is carried over to the next step: it keeps the graphs of all earlier steps alive, and "
          "backward(retain_graph=True) goes through them again",
      .try_code = "state = state.detach()  # at the start of each step; and total += loss.detach()",
      .confidence = Confidence::kMedium,
      .confirm_by = "detach it and compare step times and results",
      .cause = "kept-graph",
      .part_of = "overhead",
      .precedence = Precedence::kFails};
  evidence.fill(finding);
  finding.cost_ns = std::max(finding.cost_ns, context.study->per_step(spent_ns));
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.events = static_cast<int64_t>(kept.nodes.size());
  finding.title = "the backward pass goes through the graphs of up to " +
                  counted(std::max<int64_t>(2, kept.passed), "earlier step", "earlier steps") + ", and gets " +
                  counted(kept.more_nodes, "node", "nodes") +
                  " longer with each step: " + short_percent(finding.share_of_step) + " of a step";
  add_longest(finding, model, kept.nodes);
  return {finding};
}

}  // namespace

std::vector<Rule> kept_graph_rules() {
  return {
      {"growing-backward", "waste", 0.05, true,
       "The backward pass goes through operators of earlier steps, and through more of them in each step. Something\n"
       "that lives from step to step (the state of a recurrent layer, a sum of losses, a running average) still has\n"
       "its history: each step hangs its own graph on it. Time and memory of a step grow until memory is full;\n"
       "backward(retain_graph=True) is what keeps PyTorch from saying so.\n\n"
       "Found are nodes of the backward pass whose number is lower than that of the first operator of their step,\n"
       "where passes go back further than the one before and get longer in more than half of the steps (a graph may\n"
       "be cut now and then). The gain is a replay without these nodes, for the steps that were recorded; a longer\n"
       "run gains more.\n\n"
       "What to do: detach() what is handed on to the next step, and sum up losses as numbers.\n\n"
       "When not: gradients are meant to go back through several steps; there the graph has to be cut after a fixed\n"
       "number of them.",
       find_growing_backward},
  };
}

}  // namespace firelane::advise
