// Streams that could run in parallel, but wait for each other instead.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/common/intervals.h"
#include "analyze/device/device_class.h"

namespace firelane::advise {

namespace {

constexpr double kBusyDevice = 0.6;   // of a step: below, the host is late, and streams do not overlap for that
constexpr double kLeastStream = 0.1;  // of all kernels' time, for a stream to count
constexpr double kMostOverlap = 0.1;  // of the shortest stream's time

struct StreamWork {
  std::vector<analyze::Interval> spans;
  int64_t busy_ns = 0;
  double filled_ns = 0;  // busy time, weighted with the part of the device that a kernel's blocks reach
  Row longest = kNoRow;
};

bool waits_for_stream(std::string_view call) {
  return call.starts_with("cudaStreamWaitEvent") || call.starts_with("hipStreamWaitEvent") ||
         call.starts_with("cuStreamWaitEvent");
}

int64_t waits_in_window(const Context& context) {
  const HostSlices& host = context.model.host_slices;
  int64_t waits = 0;
  for (Row row = 0; row < host.size(); ++row) {
    if (!is_call(host.kind[row]) || !context.in_window(host.start_ns[row])) continue;
    waits += waits_for_stream(context.model.text(host.name[row])) ? 1 : 0;
  }
  return waits;
}

std::vector<StreamWork> streams_of(const Context& context, int64_t multiprocessors) {
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  std::map<LaneId, StreamWork> by_lane;
  analyze::DeviceClasses classes(model);
  for (Row row = 0; row < device.size(); ++row) {
    const Row detail = device.detail[row];
    if (device.kind[row] != DeviceKind::kKernel || detail == kNoRow || !context.holds(row)) continue;
    if (classes.of(row) != analyze::DeviceClass::kCompute) continue;
    const KernelDetails& kernels = model.kernel_details;
    if (kernels.grid_x[detail] <= 0) return {};
    const double blocks = static_cast<double>(kernels.grid_x[detail]) *
                          std::max(1.0, static_cast<double>(kernels.grid_y[detail])) *
                          std::max(1.0, static_cast<double>(kernels.grid_z[detail]));
    StreamWork& stream = by_lane[device.lane[row]];
    stream.spans.push_back({device.start_ns[row], device.end_ns(row)});
    stream.busy_ns += device.duration_ns[row];
    stream.filled_ns +=
        static_cast<double>(device.duration_ns[row]) * std::min(1.0, blocks / static_cast<double>(multiprocessors));
    if (stream.longest == kNoRow || device.duration_ns[row] > device.duration_ns[stream.longest]) stream.longest = row;
  }
  int64_t all_ns = 0;
  for (const auto& [lane, stream] : by_lane) all_ns += stream.busy_ns;
  std::vector<StreamWork> out;
  for (auto& [lane, stream] : by_lane) {
    if (static_cast<double>(stream.busy_ns) >= kLeastStream * static_cast<double>(all_ns)) {
      out.push_back(std::move(stream));
    }
  }
  return out;
}

std::vector<Finding> find_stream_waits(const Context& context) {
  const Model& model = context.model;
  if (!context.has_device_work || context.study == nullptr || model.info.devices.size() != 1) return {};
  const int64_t multiprocessors = model.info.devices[0].multiprocessors;
  if (multiprocessors <= 1) return {};
  const int64_t waits = waits_in_window(context);
  if (waits < 2 * context.step_count) return {};
  const std::vector<StreamWork> streams = streams_of(context, multiprocessors);
  if (streams.size() < 2) return {};
  std::vector<analyze::Interval> spans;
  int64_t sum_ns = 0;
  int64_t longest_ns = 0;
  int64_t shortest_ns = INT64_MAX;
  double filled_ns = 0;
  for (const StreamWork& stream : streams) {
    spans.insert(spans.end(), stream.spans.begin(), stream.spans.end());
    sum_ns += stream.busy_ns;
    longest_ns = std::max(longest_ns, stream.busy_ns);
    shortest_ns = std::min(shortest_ns, stream.busy_ns);
    filled_ns += stream.filled_ns;
  }
  const int64_t busy_ns = analyze::IntervalSet(spans).total_ns();
  const auto overlap_ns = static_cast<double>(sum_ns - busy_ns);
  if (overlap_ns > kMostOverlap * static_cast<double>(shortest_ns)) return {};
  if (context.share_of_step(context.study->per_step(busy_ns)) < kBusyDevice) return {};
  // Side by side they take as long as the longest stream, or as all blocks need of the device.
  const auto together_ns = std::max(longest_ns, static_cast<int64_t>(filled_ns));
  Finding finding{.id = "stream-waits", .events = waits};
  finding.cost_ns = context.study->per_step(busy_ns - together_ns);
  if (finding.cost_ns <= 0) return {};
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.gain = {.low_ns = finding.cost_ns * 4 / 5, .high_ns = finding.cost_ns};
  for (const StreamWork& stream : streams) finding.slices.push_back({stream.longest, true});
  finding.title = std::to_string(streams.size()) +
                  " streams take turns: " + counted(context.study->per_step(waits), "wait", "waits") +
                  " of one for another in each step, and their kernels, which leave much of the device free, hardly "
                  "ever run in parallel";
  finding.try_text = "let a stream wait only for the data it reads: once where the work forks and once where it joins";
  finding.try_code = "side.wait_stream(torch.cuda.current_stream())  # once before, instead of after every piece";
  finding.confidence = Confidence::kMedium;
  finding.confirm_by = "check which of the waits protect a result that the other stream reads";
  return {finding};
}

}  // namespace

std::vector<Rule> streams_rules() {
  return {
      {"stream-waits", "kernels", 0.05, true,
       "Work was put on several streams to run in parallel, but wait_stream (or an event) makes each wait for the\n"
       "other, so they take turns. That costs nothing where kernels fill the device; where they do not, most of it\n"
       "stays idle.\n\n"
       "Detected: two or more streams with a tenth of the kernels' time each, almost no overlap, two waits per step\n"
       "or more, and a busy device (otherwise the host is late). In the replay they take as long as the longest\n"
       "stream, or the time all blocks need on the available multiprocessors, whichever is longer.\n\n"
       "What to do: wait only where data goes from one stream to the other.\n\n"
       "When not: each piece reads what the other stream has just written; then one stream is just as fast.",
       find_stream_waits},
  };
}

}  // namespace firelane::advise
