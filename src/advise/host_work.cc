#include "advise/host_work.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "advise/host_evidence.h"
#include "analyze/host/dispatch.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/study.h"
#include "base/gallop.h"
#include "model/host_role.h"

namespace firelane::advise {

namespace {

// An operator that takes this long and launches nothing computes...
constexpr int64_t kComputesNs = 100'000;
// ...unless most of its time goes into stretches shorter than this between the operators inside of it: a thousand views
// (aten::unflatten_dense_tensors) take long, and compute nothing.
constexpr int64_t kViewNs = 20'000;

constexpr int64_t kTimesTheUsual = 10;
constexpr int64_t kShortestCodeNs = 100'000;

// The outermost range around a slice: a step.
Row outermost(const Model& model, Row slice) {
  while (slice != kNoRow && model.host_slices.parent[slice] != kNoRow) slice = model.host_slices.parent[slice];
  return slice;
}

bool computes(const Model& model, Row op) {
  const HostSlices& host = model.host_slices;
  if (host.duration_ns[op] < kComputesNs) return false;
  const size_t lane_end = model.lanes.host_end[static_cast<size_t>(host.lane[op])];
  std::vector<int64_t> borders = {host.start_ns[op], host.end_ns(op)};
  for (Row inner = op + 1; inner < lane_end && host.start_ns[inner] < host.end_ns(op); ++inner) {
    borders.push_back(host.start_ns[inner]);
    borders.push_back(host.end_ns(inner));
  }
  std::sort(borders.begin(), borders.end());
  int64_t in_long_stretches = 0;
  for (size_t i = 1; i < borders.size(); ++i) {
    const int64_t stretch = borders[i] - borders[i - 1];
    if (stretch >= kViewNs) in_long_stretches += stretch;
  }
  return 2 * in_long_stretches >= host.duration_ns[op];
}

// Stretches between operators without what is torch's own: optimizers, the short way into a backward pass. The end of
// a step parts them.
std::vector<analyze::CodeStretch> own_stretches(const Model& model, const analyze::HostChain& chain,
                                                const analyze::Interval& window) {
  const HostSlices& host = model.host_slices;
  const auto is_backward = [&](size_t segment) {
    if (segment >= chain.segments.size() || chain.segments[segment].activity != analyze::Activity::kOp) return false;
    const Row op = outermost_op(model, chain.segments[segment].slice);
    return host.role[op] == HostRole::kBackwardNode || model.text(host.name[op]) == "aten::ones_like";
  };
  const OptimizerCode in_optimizer(model);
  std::vector<analyze::CodeStretch> out;
  bool open = false;
  Row range = kNoRow;
  int64_t longest_ns = 0;
  for (size_t i = chain.segment_after(window.start_ns); i < chain.segments.size(); ++i) {
    const analyze::HostSegment& segment = chain.segments[i];
    if (segment.start_ns >= window.end_ns) break;
    if (!analyze::is_between_ops(segment.activity) || in_optimizer.holds(segment)) {
      const bool is_long = open && out.back().end_ns - out.back().start_ns >= analyze::kBetweenOpsNs;
      if (open && !is_long && is_backward(i)) out.pop_back();
      open = false;
      continue;
    }
    const Row around = outermost(model, segment.slice);
    if (!open || around != range) {
      out.push_back({.start_ns = segment.start_ns});
      longest_ns = 0;
    }
    open = true;
    range = around;
    out.back().end_ns = segment.end_ns;
    if (segment.activity == analyze::Activity::kPython && segment.end_ns - segment.start_ns > longest_ns) {
      longest_ns = segment.end_ns - segment.start_ns;
      out.back().slice = segment.slice;
    }
  }
  return out;
}

// Large memory goes back to the system when it is freed, which takes longer than many an operator. A free is noted
// before it happens: what follows, up to the next operator, is it.
void add_giving_back(const Model& model, const analyze::HostChain& chain, std::vector<HostWork>& all) {
  constexpr int64_t kLargeBytes = int64_t{1} << 20;
  constexpr int32_t kCpu = 0;
  const MemoryEvents& memory = model.memory_events;
  std::unordered_map<uint64_t, HostWork*> by_address;
  auto work = all.begin();
  size_t near = 0;
  for (size_t i = 0; i < memory.size() && !all.empty(); ++i) {  // in order of time
    if (memory.device_type[i] != kCpu || std::abs(memory.bytes[i]) < kLargeBytes) continue;
    while (work != all.end() && work->end_ns <= memory.time_ns[i]) ++work;
    const bool is_inside = work != all.end() && work->holds(memory.time_ns[i]);
    if (memory.kind[i] == MemoryEventKind::kAlloc) {
      by_address[memory.address[i]] = is_inside ? &*work : nullptr;
      continue;
    }
    const auto made = by_address.find(memory.address[i]);
    if (made == by_address.end() || made->second == nullptr || is_inside) continue;
    const size_t at = chain.segment_after(memory.time_ns[i], near);
    if (at >= chain.segments.size() || !analyze::is_between_ops(chain.segments[at].activity)) continue;
    made->second->giving_back.push_back({memory.time_ns[i], chain.segments[at].end_ns});
  }
}

}  // namespace

OptimizerCode::OptimizerCode(const Model& model) : model_(model), optimizers_(model) {
  const auto& roles = model.host_slices.role.view().cells();
  has_any_ = std::any_of(roles.begin(), roles.end(), is_of_optimizer);
}

bool OptimizerCode::holds(const analyze::HostSegment& segment) const {
  if (!has_any_) return false;
  for (Row row = segment.slice; row != kNoRow; row = model_.host_slices.parent[row]) {
    const HostRole role = model_.host_slices.role[row];
    if (role == HostRole::kZeroGrad) return true;
    if (role == HostRole::kOptimizerStep) return segment.start_ns >= optimizers_.update_start_ns(row);
  }
  return false;
}

std::vector<analyze::CodeStretch> code_stretches(const StudiedTrace& trace) {
  const auto& study = trace.get<analyze::study>();
  if (study.host->chains.empty()) return {};
  const analyze::HostChain& chain = study.host->chains[0];
  const analyze::Interval window = study.steps.window;
  const std::vector<analyze::CodeStretch> all = analyze::stretches_between_ops(chain, window);
  std::vector<int64_t> lengths;
  for (const analyze::CodeStretch& each : all) lengths.push_back(each.end_ns - each.start_ns);
  if (lengths.empty()) return {};
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  const int64_t least = std::clamp(kTimesTheUsual * *middle, kShortestCodeNs, analyze::kBetweenOpsNs);
  std::vector<analyze::CodeStretch> out = own_stretches(trace.model(), chain, window);
  std::erase_if(out, [&](const analyze::CodeStretch& each) { return each.end_ns - each.start_ns < least; });
  return out;
}

std::vector<HostWork> host_work(const StudiedTrace& trace) {
  std::vector<HostWork> out;
  const auto& study = trace.get<analyze::study>();
  if (!study.has_device_work || study.host->chains.empty()) return out;
  const Model& model = trace.model();
  const HostSlices& host = model.host_slices;
  const analyze::Interval window = study.steps.window;
  const analyze::HostChain& chain = study.host->chains[0];
  std::vector<int64_t> launches;  // starts of all calls, of every kind: an operator with one is not alone on the CPU
  std::vector<int64_t> copies;    // of those that copied to the device
  std::vector<int64_t> fetches;   // of those that copied from it
  const auto leads = [&](Row row) { return host.lane[row] == chain.lanes[0]; };
  const auto leading_lane = static_cast<size_t>(chain.lanes[0]);
  for (Row row = model.lanes.host_begin[leading_lane]; row < model.lanes.host_end[leading_lane]; ++row) {
    if (is_call(host.kind[row])) launches.push_back(host.start_ns[row]);
  }
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row launch = model.device_slices.launch[row];
    if (launch == kNoRow || model.device_slices.kind[row] != DeviceKind::kCopy || !leads(launch)) continue;
    const CopyDirection direction = model.copy_kinds(row).direction;
    if (direction == CopyDirection::kHtoD) copies.push_back(host.start_ns[launch]);
    if (direction == CopyDirection::kDtoH) fetches.push_back(host.start_ns[launch]);
  }
  std::sort(copies.begin(), copies.end());
  std::sort(fetches.begin(), fetches.end());
  // Some runtimes launch in a thread of their own: then only the operator of the work tells.
  for (const Row op : model.device_slices.op) {
    if (op != kNoRow && leads(op)) launches.push_back(host.start_ns[op]);
  }
  std::sort(launches.begin(), launches.end());
  // Operators are asked for in order of time: `next` is where the one before was.
  const auto any_in = [&](const std::vector<int64_t>& times, Row row, std::vector<int64_t>::const_iterator& next) {
    next = gallop(next, times.end(), [&](int64_t time_ns) { return time_ns < host.start_ns[row]; });
    return next != times.end() && *next < host.end_ns(row);
  };
  auto next_launch = launches.cbegin();
  auto next_copy = copies.cbegin();
  auto next_fetch = fetches.cbegin();
  size_t near = 0;
  const analyze::HostChain alone{.lanes = {chain.lanes[0]}, .segments = {}};
  HostWork now;
  const auto flush = [&] {
    if (now.computing_ns > 0) out.push_back(std::move(now));
    now = {};
  };
  analyze::each_outermost(
      model, alone, [&](Row row) { return host.kind[row] == HostKind::kOp; },
      [&](Row row) {
        if (host.start_ns[row] < window.start_ns || host.start_ns[row] >= window.end_ns) return;
        const size_t segment = chain.segment_after(host.start_ns[row], near);
        const bool loads =
            segment < chain.segments.size() && chain.segments[segment].activity == analyze::Activity::kInput;
        const bool copy = any_in(copies, row, next_copy);
        const std::string_view name = model.text(host.name[row]);
        const bool moves = name == "aten::to" || name == "aten::copy_" || name == "aten::_to_copy";
        if (!loads && moves && any_in(fetches, row, next_fetch)) {
          if (now.computing_ns > 0 || host.start_ns[row] - now.end_ns > kComputesNs) flush();
          if (now.fetches.empty()) now = {.start_ns = host.start_ns[row], .lane = host.lane[row]};
          now.end_ns = host.end_ns(row);
          now.fetches.push_back(row);
          return;
        }
        if (loads || (any_in(launches, row, next_launch) && !copy)) return flush();
        if (copy && now.computing_ns == 0) return flush();  // a copy of what is there
        // Between two of them, memory is given back: not longer than computing took.
        if (now.end_ns > 0 && host.start_ns[row] - now.end_ns > std::max(now.computing_ns, kComputesNs)) flush();
        if (now.end_ns == 0) {
          now.start_ns = host.start_ns[row];
          now.lane = host.lane[row];
        }
        now.end_ns = host.end_ns(row);
        if (copy) {
          now.copies.push_back(row);
        } else if (computes(model, row)) {
          now.ops.push_back(row);
          now.computing_ns += host.duration_ns[row];
          if (now.longest == kNoRow || host.duration_ns[row] > host.duration_ns[now.longest]) now.longest = row;
        }
      });
  flush();
  // What follows a copy, up to the next operator, gives the memory back.
  for (HostWork& work : out) {
    for (size_t i = chain.segment_after(work.end_ns); i < chain.segments.size(); ++i) {
      const analyze::HostSegment& segment = chain.segments[i];
      if (!analyze::is_between_ops(segment.activity)) break;
      if (segment.end_ns - work.end_ns > work.computing_ns / 4) break;
      work.end_ns = segment.end_ns;
    }
  }
  add_giving_back(model, chain, out);
  return out;
}

}  // namespace firelane::advise
