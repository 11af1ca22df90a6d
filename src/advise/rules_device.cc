// How the device is used: many small collectives, kernels that leave most of it idle, pinned memory that is allocated
// in the loop.
#include <algorithm>
#include <string>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/common/median.h"
#include "analyze/device/device_class.h"

namespace firelane::advise {

namespace {

// What a collective costs however little it sends: its launch, and the ranks' agreement.
constexpr int64_t kCollectiveNs = 20'000;
constexpr int64_t kManyCollectives = 16;  // a step
constexpr int64_t kSmallNs = 100'000;

std::vector<Finding> find_small_collectives(const Context& context) {
  if (!context.has_device_work || context.study == nullptr) return {};
  const analyze::Study& study = *context.study;
  std::vector<Row> rows;
  std::vector<int64_t> lengths;
  for (const analyze::GraphNode& node : study.graph.nodes) {
    if (!node.is_device() || node.device_class != analyze::DeviceClass::kCommunication) continue;
    if (!context.holds(node.row)) continue;
    rows.push_back(node.row);
    lengths.push_back(context.model.device_slices.duration_ns[node.row]);
  }
  const int64_t calls = study.per_step(static_cast<int64_t>(rows.size()));
  if (calls < kManyCollectives || analyze::median(lengths) > kSmallNs) return {};
  const int64_t exposed = study.per_step(study.breakdown.total.communication_ns);
  Finding finding{.id = "small-collectives", .cost_ns = exposed, .share_of_step = context.share_of_step(exposed)};
  finding.gain = {.low_ns = 0, .high_ns = std::min(exposed, (calls - 1) * kCollectiveNs)};
  finding.events = static_cast<int64_t>(rows.size());
  finding.title = std::to_string(calls) + " collectives in each step take " +
                  short_time(analyze::median(std::move(lengths))) +
                  " each (median): each sends too little to justify a call";
  for (size_t i = 0; i < std::min(rows.size(), kEvidenceSlices); ++i) finding.slices.push_back({rows[i], true});
  finding.try_text = "send more at once: larger buckets, or one tensor for all";
  finding.try_code = "DistributedDataParallel(model, bucket_cap_mb=100)  # or dist.all_reduce(torch.cat(parts))";
  finding.confidence = Confidence::kMedium;
  finding.confirm_by = "record all ranks: waiting for a slow rank looks the same in one trace";
  return {finding};
}

// Shorter kernels do not fill a device whatever their grid; launch overhead speaks of them.
constexpr int64_t kLongKernelNs = 20'000;

std::vector<Finding> find_underfilled(const Context& context) {
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  if (!context.has_device_work || context.study == nullptr || model.info.devices.empty()) return {};
  const int64_t multiprocessors = model.info.devices[0].multiprocessors;
  if (multiprocessors <= 1) return {};
  std::vector<Row> rows;
  std::vector<analyze::Interval> spans;
  analyze::DeviceClasses classes(model);
  for (Row row = 0; row < device.size(); ++row) {
    const Row detail = device.detail[row];
    if (device.kind[row] != DeviceKind::kKernel || detail == kNoRow || device.duration_ns[row] < kLongKernelNs)
      continue;
    const KernelDetails& kernels = model.kernel_details;
    if (kernels.grid_x[detail] <= 0 || !context.holds(row)) continue;
    const int64_t blocks = static_cast<int64_t>(kernels.grid_x[detail]) * std::max<int64_t>(1, kernels.grid_y[detail]) *
                           std::max<int64_t>(1, kernels.grid_z[detail]);
    if (2 * blocks > multiprocessors || classes.of(row) != analyze::DeviceClass::kCompute) continue;
    rows.push_back(row);
    spans.push_back({device.start_ns[row], device.end_ns(row)});
  }
  if (rows.empty()) return {};
  Finding finding{.id = "device-underfilled", .events = static_cast<int64_t>(rows.size())};
  finding.cost_ns = context.study->per_step(analyze::IntervalSet(spans).total_ns());
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  std::sort(rows.begin(), rows.end(), [&](Row a, Row b) { return device.duration_ns[a] > device.duration_ns[b]; });
  for (size_t i = 0; i < std::min(rows.size(), kEvidenceSlices); ++i) finding.slices.push_back({rows[i], true});
  finding.title = "kernels with too few blocks for half of the device's " + std::to_string(multiprocessors) +
                  " multiprocessors take " + short_percent(finding.share_of_step) + " of a step";
  finding.try_text =
      "give them more to do at once: a larger batch, several of them in one call, or on parallel streams";
  finding.try_code = "y = torch.bmm(x, w)  # or torch.stack(...) before the operator, instead of one call each";
  finding.confidence = Confidence::kMedium;
  finding.confirm_by = "run one of them alone with twice the input: it takes as long";
  finding.precedence = Precedence::kNamed;
  return {finding};
}

bool pins_memory(std::string_view call) {
  return call.starts_with("cudaHostAlloc") || call.starts_with("cudaMallocHost") ||
         call.starts_with("cudaHostRegister") || call.starts_with("cuMemHostAlloc");
}

std::vector<Finding> find_pinning(const Context& context) {
  const HostSlices& host = context.model.host_slices;
  Evidence evidence(context);
  for (Row row = 0; row < host.size(); ++row) {
    if (is_call(host.kind[row]) && pins_memory(context.model.text(host.name[row]))) evidence.add_call(row, 0.2, 0);
  }
  // A few at first are kept and used again.
  if (evidence.empty() || evidence.count() * 2 < context.step_count) return {};
  Finding finding{.id = "pinned-allocation",
                  .try_text = "allocate pinned buffers once, before the loop, and copy into them",
                  .try_code = "buffer = torch.empty_like(x, pin_memory=True)  # once; then buffer.copy_(x)",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "record more steps: calls that end after some steps are warm-up"};
  evidence.fill(finding);
  finding.title =
      "pinned memory is allocated by the driver in the loop: " + counted(evidence.count(), "call", "calls") + " in " +
      counted(context.step_count, "step", "steps") + ", " + short_time(finding.cost_ns) + " of each (" +
      short_percent(finding.share_of_step) + ")";
  finding.part_of = "overhead";
  return {finding};
}

}  // namespace

std::vector<Rule> device_rules() {
  return {
      {"small-collectives", "training", 0.03, true,
       "Each collective costs tens of microseconds before it sends a byte: its launch, and the handshake of all\n"
       "ranks. Many small ones pay that again and again, where one large one would use the links fully.\n\n"
       "What to do: DDP's bucket_cap_mb, FSDP units that hold several layers, one all_reduce of concatenated "
       "metrics.\n\n"
       "When not: they overlap with compute and cost nothing.\n\n"
       "This finding covers 16 collectives per step or more with a median of at most 0.1 ms; the gain is 20 us for\n"
       "each but one, as far as "
       "they are exposed.",
       find_small_collectives},
      {"device-underfilled", "kernels", 0.25, false,
       "Long kernels with so few thread blocks that more than half of the device's multiprocessors get none. They\n"
       "would take about as long if they did twice as much.\n\n"
       "What to do: a larger batch, batched operators, independent work on other streams.\n\n"
       "When not: the work cannot be split further; small models on large devices.\n\n"
       "It counts kernels of 20 us and more whose grid has at most half as many blocks as there are\n"
       "multiprocessors.",
       find_underfilled},
      {"pinned-allocation", "memory", 0.01, true,
       "cudaHostAlloc and similar calls request pages from the operating system and lock them, which takes up to\n"
       "milliseconds per call. torch caches pinned blocks, but only for requests of the same size, and only once\n"
       "the copies from them are done.\n\n"
       "What to do: buffers of a fixed size, created once; pin_memory=True in the DataLoader, which pins in its own\n"
       "thread.\n\n"
       "When not: it is normal in the first steps.",
       find_pinning},
  };
}

}  // namespace firelane::advise
