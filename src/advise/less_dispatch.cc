#include "advise/less_dispatch.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "advise/host_evidence.h"
#include "advise/host_work.h"
#include "analyze/host/cpu_ops.h"
#include "analyze/host/dispatch.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/study.h"

namespace firelane::advise {

namespace {

constexpr std::initializer_list<analyze::Activity> kDispatch = {analyze::Activity::kOp, analyze::Activity::kLaunch,
                                                                analyze::Activity::kCall, analyze::Activity::kPython,
                                                                analyze::Activity::kUnrecorded};

}  // namespace

analyze::WhatIf less_dispatch(const Context& context, double keep) {
  if (context.has_device_work) {
    analyze::WhatIf less;
    // The program's own code has findings of its own, and stays as long as it is.
    const auto& others = context.trace.get<code_stretches>();
    auto other = others.begin();
    for (analyze::HostCut cut : cuts_of(context, kDispatch, keep)) {
      while (other != others.end() && other->end_ns <= cut.start_ns) ++other;
      for (; other != others.end() && other->start_ns < cut.end_ns; ++other) {
        if (cut.start_ns < other->start_ns) less.host.push_back({cut.lane, cut.start_ns, other->start_ns, keep});
        cut.start_ns = std::min(cut.end_ns, other->end_ns);
        if (other->end_ns > cut.end_ns) break;  // reaches into the next cut
      }
      if (cut.start_ns < cut.end_ns) less.host.push_back(cut);
    }
    return less;
  }
  analyze::WhatIf change;
  const analyze::HostChain& chain = context.study->host->chains[0];
  const std::vector<double>& dispatch = context.study->dispatch;
  const auto& others = context.trace.get<code_stretches>();
  auto other = others.begin();
  for (size_t i = 0; i < dispatch.size(); ++i) {
    if (dispatch[i] == 0) continue;
    const analyze::HostSegment& segment = chain.segments[i];
    while (other != others.end() && other->end_ns <= segment.start_ns) ++other;
    if (other != others.end() && other->start_ns <= segment.start_ns) continue;
    const double kept = 1 - (1 - keep) * dispatch[i];
    change.host.push_back({chain.lanes[0], std::max(segment.start_ns, context.window.start_ns),
                           std::min(segment.end_ns, context.window.end_ns), kept});
  }
  return change;
}

namespace {

bool stays_a_call(std::string_view name) {
  switch (analyze::op_class(name)) {
    case analyze::KernelClass::kMatmul:
    case analyze::KernelClass::kConvolution:
    case analyze::KernelClass::kAttention:
    case analyze::KernelClass::kForeach:
    case analyze::KernelClass::kIndexing:
    case analyze::KernelClass::kRandom: return true;
    default: return name.find("AccumulateGrad") != std::string_view::npos;
  }
}

class Compiled {
 public:
  explicit Compiled(const Context& context)
      : context_(context),
        host_(context.model.host_slices),
        chain_(context.study->host->chains[0]),
        has_backward_(context.trace.get<analyze::find_phases>().has_backward),
        is_called_(context.model.strings.size(), -1) {
    if (has_backward_) find_nodes();
  }

  bool has_backward() const { return has_backward_; }

  analyze::WhatIf change(double keep) {
    constexpr double kWayLeft = 0.7;  // of the way to an operator that stays: no module, but code of its own
    analyze::WhatIf out;
    size_t near = 0;
    for (analyze::HostCut cut : less_dispatch(context_, keep).host) {
      const size_t at = chain_.segment_after(cut.start_ns, near);
      const Row op = op_from(at);
      if (op == kNoRow || !is_of_model(op)) continue;
      if (at < chain_.segments.size() && chain_.segments[at].activity == analyze::Activity::kOp) {
        if (is_in_a_call(chain_.segments[at].slice)) continue;
      } else if (is_called(op)) {
        cut.keep = 1 - (1 - cut.keep) * (1 - kWayLeft);
      }
      out.host.push_back(cut);
    }
    return out;
  }

 private:
  bool is_called(Row op) {
    int8_t& known = is_called_[static_cast<uint32_t>(host_.name[op])];
    if (known < 0) known = stays_a_call(context_.model.text(host_.name[op])) ? 1 : 0;
    return known == 1;
  }
  bool is_in_a_call(Row slice) {
    for (Row row = slice; row != kNoRow && host_.kind[row] == HostKind::kOp; row = host_.parent[row]) {
      if (is_called(row)) return true;
    }
    return false;
  }

  // The outermost op of the segment, or of the next one that has an op.
  Row op_from(size_t at) const {
    constexpr size_t kNear = 4;
    for (size_t i = at; i < std::min(chain_.segments.size(), at + kNear); ++i) {
      if (chain_.segments[i].activity == analyze::Activity::kOp)
        return outermost_op(context_.model, chain_.segments[i].slice);
    }
    return kNoRow;
  }

  // Where there is a backward pass, what is compiled is what it goes back through, and the pass itself.
  bool is_of_model(Row op) const {
    if (!has_backward_ || nodes_.empty()) return true;
    return nodes_[op] || host_.role[op] == HostRole::kBackwardNode;
  }

  // Ops that made a node of the graph: the next one has a higher sequence number.
  void find_nodes() {
    bool any = false;
    nodes_.assign(host_.size(), false);
    for (const LaneId lane : chain_.lanes) {
      const auto l = static_cast<size_t>(lane);
      Row before = kNoRow;
      int64_t number_before = 0;
      for (Row row = context_.model.lanes.host_begin[l]; row < context_.model.lanes.host_end[l]; ++row) {
        if (!is_outermost_op(host_, row)) continue;
        const Row detail = context_.model.op_detail(row);
        const int64_t number = detail == kNoRow ? kNoNumber : context_.model.op_details.sequence_number[detail];
        if (number == kNoNumber || number < 0) continue;
        if (before != kNoRow && number > number_before) any = nodes_[before] = true;
        before = row;
        number_before = number;
      }
    }
    if (!any) nodes_.clear();  // a trace that does not say
  }

  const Context& context_;
  const HostSlices& host_;
  const analyze::HostChain& chain_;
  bool has_backward_;
  std::vector<bool> nodes_;        // by row of host_slices
  std::vector<int8_t> is_called_;  // by name; -1: not asked yet
};

}  // namespace

CompiledChange compiled_on_cpu(const Context& context, double keep) {
  Compiled compiled(context);
  return {.change = compiled.change(keep), .own_ns = kCompiledCallNs * (compiled.has_backward() ? 2 : 1)};
}

}  // namespace firelane::advise
