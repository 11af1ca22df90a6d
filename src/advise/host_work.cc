#include "advise/host_work.h"

#include <algorithm>
#include <utility>

#include "analyze/host/dispatch.h"
#include "analyze/verdict/study.h"

namespace firelane::advise {

namespace {

// An operator that takes this long and launches nothing computes.
constexpr int64_t kComputesNs = 100'000;

}  // namespace

std::vector<HostWork> host_work(const Context& context) {
  std::vector<HostWork> out;
  if (!context.has_device_work || context.study->host->chains.empty()) return out;
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const analyze::HostChain& chain = context.study->host->chains[0];
  std::vector<int64_t> launches;  // starts of all calls, of every kind: an operator with one is not alone on the CPU
  std::vector<int64_t> copies;    // of those that copied to the device
  const auto leads = [&](Row row) { return host.lane[row] == chain.lanes[0]; };
  for (Row row = 0; row < host.size(); ++row) {
    if (is_call(host.kind[row]) && leads(row)) launches.push_back(host.start_ns[row]);
  }
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row launch = model.device_slices.launch[row];
    if (launch == kNoRow || model.device_slices.kind[row] != DeviceKind::kCopy || !leads(launch)) continue;
    if (model.copy_kinds(row).direction == CopyDirection::kHtoD) copies.push_back(host.start_ns[launch]);
  }
  std::sort(launches.begin(), launches.end());
  std::sort(copies.begin(), copies.end());
  const auto any_in = [&](const std::vector<int64_t>& times, Row row) {
    const auto first = std::lower_bound(times.begin(), times.end(), host.start_ns[row]);
    return first != times.end() && *first < host.end_ns(row);
  };
  const analyze::HostChain alone{.lanes = {chain.lanes[0]}, .segments = {}};
  HostWork now;
  const auto flush = [&] {
    if (now.computing_ns > 0) out.push_back(std::move(now));
    now = {};
  };
  analyze::each_outermost(
      model, alone, [&](Row row) { return host.kind[row] == HostKind::kOp; },
      [&](Row row) {
        if (!context.in_window(host.start_ns[row])) return;
        const size_t segment = chain.segment_after(host.start_ns[row]);
        const bool loads =
            segment < chain.segments.size() && chain.segments[segment].activity == analyze::Activity::kInput;
        const bool copy = any_in(copies, row);
        if (loads || (any_in(launches, row) && !copy)) return flush();
        if (copy && now.computing_ns == 0) return flush();
        // Between two of them, memory is given back: not longer than computing took.
        if (now.computing_ns > 0 && host.start_ns[row] - now.end_ns > now.computing_ns) flush();
        if (now.ops.empty() && now.copies.empty()) {
          now.start_ns = host.start_ns[row];
          now.lane = host.lane[row];
        }
        now.end_ns = host.end_ns(row);
        if (copy) {
          now.copies.push_back(row);
        } else if (host.duration_ns[row] >= kComputesNs) {
          now.ops.push_back(row);
          now.computing_ns += host.duration_ns[row];
          if (now.longest == kNoRow || host.duration_ns[row] > host.duration_ns[now.longest]) now.longest = row;
        } else if (now.computing_ns == 0) {
          now = {};
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
  return out;
}

}  // namespace firelane::advise
