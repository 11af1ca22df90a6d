#include "analyze/host/dispatch.h"

#include <algorithm>

namespace firelane::analyze {

namespace {

// Calls fn(index of segment, its length in the window).
template <typename Fn>
void each_segment(const HostChain& chain, const Interval& window, const Fn& fn) {
  for (size_t i = chain.segment_after(window.start_ns); i < chain.segments.size(); ++i) {
    const HostSegment& segment = chain.segments[i];
    if (segment.start_ns >= window.end_ns) break;
    fn(i, std::min(segment.end_ns, window.end_ns) - std::max(segment.start_ns, window.start_ns));
  }
}

double part(int64_t of_ns, int64_t whole_ns) {
  return whole_ns <= of_ns ? 1 : static_cast<double>(of_ns) / static_cast<double>(whole_ns);
}

}  // namespace

std::vector<CodeStretch> stretches_between_ops(const HostChain& chain, const Interval& window) {
  std::vector<CodeStretch> out;
  int64_t longest_ns = 0;
  each_segment(chain, window, [&](size_t i, int64_t length_ns) {
    const HostSegment& segment = chain.segments[i];
    if (!is_between_ops(segment.activity)) return;
    const int64_t start_ns = std::max(segment.start_ns, window.start_ns);
    if (out.empty() || out.back().end_ns != start_ns) {
      out.push_back({.start_ns = start_ns});
      longest_ns = 0;
    }
    out.back().end_ns = start_ns + length_ns;
    if (segment.activity == Activity::kPython && length_ns > longest_ns) {
      longest_ns = length_ns;
      out.back().slice = segment.slice;
    }
  });
  return out;
}

std::vector<double> dispatch_shares(const Model& model, const HostChain& chain, const Interval& window) {
  std::vector<int64_t> own_ns(model.host_slices.size(), 0);  // of operators, in the window
  each_segment(chain, window, [&](size_t i, int64_t length_ns) {
    const HostSegment& segment = chain.segments[i];
    if (segment.activity == Activity::kOp) own_ns[segment.slice] += length_ns;
  });
  const std::vector<CodeStretch> stretches = stretches_between_ops(chain, window);
  size_t at = 0;
  std::vector<double> shares(chain.segments.size(), 0);
  each_segment(chain, window, [&](size_t i, int64_t) {
    const HostSegment& segment = chain.segments[i];
    if (segment.activity == Activity::kOp) shares[i] = part(kDispatchNs, own_ns[segment.slice]);
    if (!is_between_ops(segment.activity)) return;
    while (stretches[at].end_ns <= segment.start_ns) ++at;
    shares[i] = part(kBetweenOpsNs, stretches[at].end_ns - stretches[at].start_ns);
  });
  return shares;
}

double computing_share(const HostChain& chain, const Interval& window, const std::vector<double>& dispatch) {
  double computing = 0;
  double all = 0;
  each_segment(chain, window, [&](size_t i, int64_t length_ns) {
    const Activity activity = chain.segments[i].activity;
    if (activity == Activity::kInput || activity == Activity::kCollective || activity == Activity::kNoCore) return;
    all += static_cast<double>(length_ns);
    if (activity == Activity::kOp) computing += (1 - dispatch[i]) * static_cast<double>(length_ns);
  });
  return all == 0 ? 0 : computing / all;
}

}  // namespace firelane::analyze
