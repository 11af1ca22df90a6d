#include "advise/kept_graph.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "advise/host_evidence.h"
#include "analyze/common/median.h"
#include "analyze/verdict/study.h"

namespace firelane::advise {

namespace {

// Between two nodes, gradients of the same tensor are added up; longer pauses are something else.
constexpr int64_t kLongestBetweenNs = 300'000;

struct GraphStep {
  int64_t first_number = kNoNumber;  // of the nodes that the step's own forward pass made
  int64_t oldest = kNoNumber;        // of those that its backward pass went through
  std::vector<Row> old;
  int64_t nodes = 0;
};

int64_t number_at(const Model& model, Row op) {
  const Row detail = model.op_detail(op);
  return detail == kNoRow ? kNoNumber : model.op_details.sequence_number[detail];
}

class GraphSteps {
 public:
  GraphSteps(const Model& model, const analyze::Study& study) : model_(model), study_(study) {}

  std::vector<GraphStep> all() {
    const HostSlices& host = model_.host_slices;
    const LaneId lead = study_.host->chains[0].lanes[0];
    std::vector<GraphStep> steps(study_.steps.steps.size());
    std::vector<std::pair<Row, size_t>> nodes;
    for (Row row = 0; row < host.size(); ++row) {
      if (host.kind[row] != HostKind::kOp) continue;
      const size_t at = step_at(host.start_ns[row]);
      if (at == steps.size()) continue;
      if (host.role[row] == HostRole::kBackwardNode) {
        nodes.emplace_back(row, at);
        continue;
      }
      // Numbers are counted for each thread. Without a graph, an op has that of the next node: no lower one.
      const int64_t number = host.lane[row] == lead ? number_at(model_, row) : kNoNumber;
      if (number == kNoNumber || !is_forward(row)) continue;
      GraphStep& step = steps[at];
      step.first_number = step.first_number == kNoNumber ? number : std::min(step.first_number, number);
    }
    std::set<int64_t> threads;  // torch's ids of the leading thread
    for (const auto& [row, at] : nodes) {
      const Row detail = detail_of(row);
      if (detail == kNoRow || model_.op_details.forward[detail] == kNoRow) continue;
      if (host.lane[model_.op_details.forward[detail]] == lead)
        threads.insert(model_.op_details.forward_thread[detail]);
    }
    for (const auto& [row, at] : nodes) {
      GraphStep& step = steps[at];
      ++step.nodes;
      const Row detail = detail_of(row);
      const int64_t number = detail == kNoRow ? kNoNumber : model_.op_details.sequence_number[detail];
      if (number == kNoNumber || step.first_number == kNoNumber || number >= step.first_number) continue;
      const Row forward = model_.op_details.forward[detail];
      const bool is_earlier =
          forward != kNoRow ? host.lane[forward] == lead && host.start_ns[forward] < study_.steps.steps[at].start_ns
                            : threads.contains(model_.op_details.forward_thread[detail]);
      if (!is_earlier) continue;
      step.old.push_back(row);
      step.oldest = step.oldest == kNoNumber ? number : std::min(step.oldest, number);
    }
    return steps;
  }

 private:
  size_t step_at(int64_t time_ns) const {
    const auto& steps = study_.steps.steps;
    const auto step = std::partition_point(steps.begin(), steps.end(),
                                           [&](const analyze::FoundStep& each) { return each.end_ns <= time_ns; });
    return step == steps.end() || step->start_ns > time_ns ? steps.size() : static_cast<size_t>(step - steps.begin());
  }
  // No node, nor within one: those of a CPU's backward pass run in the leading thread.
  bool is_forward(Row row) const {
    const HostSlices& host = model_.host_slices;
    for (Row each = row; each != kNoRow; each = host.parent[each]) {
      const Row detail = host.kind[each] == HostKind::kOp ? model_.op_detail(each) : kNoRow;
      if (detail == kNoRow) continue;
      if (model_.op_details.forward_thread[detail] != kNoNumber && model_.op_details.forward_thread[detail] != 0)
        return false;
      if (model_.text(host.name[each]).starts_with("autograd::")) return false;
    }
    return true;
  }
  // The node's own, or that of the function that it calls.
  Row detail_of(Row node) const {
    const HostSlices& host = model_.host_slices;
    Row best = model_.op_detail(node);
    if (best != kNoRow && model_.op_details.forward[best] != kNoRow) return best;
    const Row inner = node + 1;
    if (inner >= host.size() || host.parent[inner] != node || host.kind[inner] != HostKind::kOp) return best;
    const Row detail = model_.op_detail(inner);
    return detail != kNoRow && model_.op_details.sequence_number[detail] != kNoNumber ? detail : best;
  }

  const Model& model_;
  const analyze::Study& study_;
};

// From each old node to the next node of its lane.
void add_spans(const Model& model, KeptGraph& out) {
  const HostSlices& host = model.host_slices;
  for (const Row node : out.nodes) {
    const Row lane_end = model.lanes.host_end[static_cast<size_t>(host.lane[node])];
    int64_t end_ns = host.end_ns(node);
    for (Row next = node + 1; next < lane_end; ++next) {
      if (host.start_ns[next] < end_ns) continue;
      if (host.start_ns[next] - end_ns > kLongestBetweenNs) break;
      if (host.role[next] == HostRole::kBackwardNode) {
        end_ns = host.start_ns[next];
        break;
      }
      if (host.kind[next] != HostKind::kOp) break;
      end_ns = host.end_ns(next);
    }
    out.spans.push_back({host.start_ns[node], end_ns});
    out.lanes.push_back(host.lane[node]);
  }
}

}  // namespace

KeptGraph kept_graph(const StudiedTrace& trace) {
  const auto& study = trace.get<analyze::study>();
  if (study.host->chains.empty() || study.steps.source == analyze::StepSource::kWholeTrace) return {};
  const Model& model = trace.model();
  const std::vector<GraphStep> steps = GraphSteps(model, study).all();
  KeptGraph out;
  std::vector<int64_t> rises;
  int64_t pairs = 0;  // of steps with a backward pass, one after the other
  int64_t far = 0;    // passes that go back further than the one before
  const GraphStep* last = nullptr;
  for (size_t i = 0; i < steps.size(); ++i) {
    // One pass for several steps (losses that are added up, an episode) goes back to the first of them on purpose.
    if (steps[i].nodes == 0) continue;
    const GraphStep* const before = std::exchange(last, &steps[i]);
    if (study.steps.steps[i].warm_up) continue;
    ++out.steps;
    out.nodes.insert(out.nodes.end(), steps[i].old.begin(), steps[i].old.end());
    if (before == nullptr || steps[i].first_number == kNoNumber || before->first_number == kNoNumber) continue;
    ++pairs;
    far += steps[i].oldest != kNoNumber && steps[i].oldest < before->first_number ? 1 : 0;
    const auto more = static_cast<int64_t>(steps[i].old.size()) - static_cast<int64_t>(before->old.size());
    if (more > 0) rises.push_back(more);
  }
  constexpr int64_t kFewSteps = 3;
  const bool grows = 2 * static_cast<int64_t>(rises.size()) > pairs && 2 * far > pairs;
  if (out.steps < kFewSteps || !grows) return {};
  out.more_nodes = analyze::median(rises);
  for (const GraphStep& step : steps) {
    const auto old = static_cast<int64_t>(step.old.size());
    out.passed = std::max(out.passed, old / std::max<int64_t>(1, out.more_nodes));
  }
  std::sort(out.nodes.begin(), out.nodes.end(),
            [&](Row a, Row b) { return model.host_slices.start_ns[a] < model.host_slices.start_ns[b]; });
  add_spans(model, out);
  return out;
}

}  // namespace firelane::advise
