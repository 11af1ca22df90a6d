// Memory: near the limit, spikes, growth, fragmentation, calls into the driver, room for a larger batch.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "advise/evidence.h"
#include "advise/kept_graph.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/memory/memory.h"

namespace firelane::advise {

namespace {

constexpr double kNearLimit = 0.90;            // of the device's memory
constexpr double kSpikeShare = 0.25;           // of the peak
constexpr int64_t kSpikeBytes = 32 << 20;      // less is no trouble anywhere,
constexpr double kSpikeOfDevice = 0.005;       // nor on a device with room for 200 of them
constexpr double kCachedShare = 0.30;          // of what is reserved
constexpr double kMuchReserved = 0.50;         // of the device's memory: below that, waste does not matter
constexpr double kRoomShare = 0.50;            // of the device's memory in use at most
constexpr double kIdleShare = 0.30;            // of a step
constexpr int64_t kLeakBytes = 1 << 20;        // per step
constexpr int64_t kSmallLeakBytes = 64 << 10;  // of a small program, which it is a part of the peak of
constexpr double kSmallLeakShare = 0.05;
constexpr int64_t kSoonSteps = 10'000;  // a run is longer than this, or than an hour: then a leak comes first
constexpr int64_t kSoonNs = 3'600'000'000'000;

double share(int64_t part, int64_t whole) {
  return whole <= 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// The devices; without any, the CPU.
template <typename Look>
std::vector<Finding> for_devices(const Context& context, const Look& look) {
  std::vector<Finding> findings;
  if (context.model.memory_events.size() == 0) return findings;
  for (const analyze::DeviceMemory& device : context.trace.get<analyze::memory_report>().devices) {
    if (device.device_type != 0 || !context.has_device_work) look(device, findings);
  }
  return findings;
}

template <typename Look>
std::vector<Finding> for_gpus(const Context& context, const Look& look) {
  return for_devices(context, [&](const analyze::DeviceMemory& device, std::vector<Finding>& findings) {
    if (device.device_type != 0) look(device, findings);
  });
}

std::vector<Finding> find_near_limit(const Context& context) {
  return for_gpus(context, [](const analyze::DeviceMemory& device, std::vector<Finding>& findings) {
    const int64_t used = std::max(device.peak.allocated_bytes, device.peak_reserved_bytes);
    if (share(used, device.capacity_bytes) < kNearLimit && device.out_of_memory == 0) return;
    const int64_t at_ns = device.out_of_memory > 0 ? device.first_out_of_memory_ns : device.peak.time_ns;
    findings.push_back(
        {.id = "memory-near-limit",
         .title = device.out_of_memory > 0
                      ? "an allocation failed " + counted(device.out_of_memory, "time", "times") + " on " + device.name
                      : short_percent(share(used, device.capacity_bytes)) + " of the memory of " + device.name +
                            " is in use: a longer input would run out of memory",
         .ranges = {{at_ns, at_ns + 1}},
         .events = 1,
         .try_text = "use activation checkpointing, or a smaller batch",
         .try_code = "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
         .confidence = Confidence::kHigh});
  });
}

std::vector<Finding> find_spike(const Context& context) {
  return for_devices(context, [&](const analyze::DeviceMemory& device, std::vector<Finding>& findings) {
    if (device.spikes.empty()) return;
    const analyze::MemorySpike& spike = device.spikes.front();
    if (share(spike.extra_bytes, device.capacity_bytes) < kSpikeOfDevice && device.capacity_bytes > 0) return;
    if (spike.extra_bytes < kSpikeBytes || share(spike.extra_bytes, device.peak.allocated_bytes) < kSpikeShare) return;
    const std::string op(context.model.text(context.model.host_slices.name[spike.op]));
    findings.push_back({.id = "memory-spike",
                        .title = op + " needs " + short_bytes(spike.extra_bytes) + " for a moment: " +
                                 short_percent(share(spike.extra_bytes, device.peak.allocated_bytes)) + " of the peak",
                        .slices = {{spike.op, false}},
                        .ranges = {{spike.time_ns, spike.time_ns + 1}},
                        .events = static_cast<int64_t>(device.spikes.size()),
                        .try_text = "compute it in chunks, in place, or with a fused op",
                        .try_code = "torch.cat([op(part) for part in x.chunk(4)])",
                        .confidence = Confidence::kHigh});
  });
}

// What each step adds more than the one before it, where that rises steadily: the growth is quadratic. Else 0.
int64_t rise_per_step(const analyze::DeviceMemory& device) {
  constexpr size_t kLeastSteps = 5;
  constexpr int64_t kLeastRise = 4;  // a quarter of what the first step adds, in all
  std::vector<int64_t> added;
  for (size_t i = 2; i < device.steps.size(); ++i) {
    added.push_back(device.steps[i].end_bytes - device.steps[i - 1].end_bytes);
  }
  if (device.steps.size() < kLeastSteps) return 0;
  const bool rises = std::adjacent_find(added.begin(), added.end(), std::greater_equal<>()) == added.end();
  if (!rises || (added.back() - added.front()) * kLeastRise < added.front()) return 0;
  return (added.back() - added.front()) / static_cast<int64_t>(added.size() - 1);
}

// When a device that fills with every step is full.
struct Full {
  int64_t steps = kNoNumber;  // from here; kNoNumber: what it holds is not known
  int64_t ns = 0;
  bool soon() const { return steps != kNoNumber && (steps <= kSoonSteps || ns <= kSoonNs); }
};

Full when_full(const Context& context, const analyze::DeviceMemory& device) {
  if (device.capacity_bytes == kNoNumber || device.capacity_bytes <= device.end_bytes) return {};
  const int64_t room = device.capacity_bytes - device.end_bytes;
  int64_t steps = room / device.growth_per_step_bytes;
  if (const auto rise = static_cast<double>(rise_per_step(device)); rise > 0) {
    // The n-th step from here adds last + n * rise.
    const auto last = static_cast<double>(device.end_bytes - device.steps[device.steps.size() - 2].end_bytes);
    const double half = last + rise / 2;
    steps = static_cast<int64_t>((std::sqrt(half * half + 2 * rise * static_cast<double>(room)) - half) / rise);
  }
  const double ns = static_cast<double>(steps) * static_cast<double>(std::max<int64_t>(0, context.step_ns));
  return {.steps = steps, .ns = ns < 9e18 ? static_cast<int64_t>(ns) : INT64_MAX};
}

std::string long_time(int64_t ns) {
  const int64_t seconds = ns / 1'000'000'000;
  if (seconds < 120) return short_time(ns);
  return seconds < 7200 ? counted(seconds / 60, "minute", "minutes") : counted(seconds / 3600, "hour", "hours");
}

std::vector<Finding> find_leak(const Context& context) {
  const bool keeps_graph = context.study != nullptr && !context.trace.get<kept_graph>().empty();
  return for_devices(context, [&](const analyze::DeviceMemory& device, std::vector<Finding>& findings) {
    const double of_peak = share(device.growth_per_step_bytes, device.peak.allocated_bytes);
    const bool is_small = device.growth_per_step_bytes < kSmallLeakBytes || of_peak < kSmallLeakShare;
    if (device.growth_per_step_bytes < kLeakBytes && is_small) return;
    std::string who;
    if (!device.growth_owners.empty()) {
      const analyze::MemoryOwner& owner = device.growth_owners.front();
      who = "; most by " + (owner.op.empty() ? "code outside ops" : owner.op) +
            (owner.module.empty() ? "" : " in " + owner.module);
    }
    const Full full = when_full(context, device);
    const std::string until = full.steps == kNoNumber
                                  ? ""
                                  : "; " + device.name + " is full after " + counted(full.steps, "step", "steps") +
                                        " (" + long_time(full.ns) + ")";
    const int64_t rise = rise_per_step(device);
    const std::string how = rise == 0
                                ? "memory grows by " + short_bytes(device.growth_per_step_bytes) + " with every step"
                                : "memory grows faster and faster (quadratically): each step keeps " +
                                      short_bytes(rise) + " more than the one before";
    findings.push_back({.id = "memory-leak",
                        .title = how + until + who,
                        .ranges = {{device.curve.front().time_ns, device.curve.back().time_ns}},
                        .events = static_cast<int64_t>(device.steps.size()),
                        .try_text = "do not keep tensors that hold an autograd graph: store numbers",
                        .try_code = "losses.append(loss.item())  # or loss.detach()",
                        .confidence = device.steps.size() >= 5 ? Confidence::kHigh : Confidence::kMedium,
                        .confirm_by = device.steps.size() >= 5 ? "" : "record ten steps or more",
                        .cause = keeps_graph ? "kept-graph" : "",
                        .precedence = full.soon() ? Precedence::kFails : Precedence::kByGain});
  });
}

std::vector<Finding> find_fragmentation(const Context& context) {
  return for_gpus(context, [](const analyze::DeviceMemory& device, std::vector<Finding>& findings) {
    const int64_t cached = device.cached_bytes();
    if (cached == kNoNumber || device.capacity_bytes == kNoNumber) return;
    const bool matters = share(device.peak_reserved_bytes, device.capacity_bytes) >= kMuchReserved;
    if (!matters || share(cached, device.peak.reserved_bytes) < kCachedShare) return;
    findings.push_back({.id = "memory-fragmentation",
                        .title = short_bytes(cached) + " of the reserved memory hold no tensor even at the peak (" +
                                 short_percent(share(cached, device.peak.reserved_bytes)) + ")",
                        .ranges = {{device.peak.time_ns, device.peak.time_ns + 1}},
                        .events = 1,
                        .try_text = "use expandable segments, and keep sizes the same from step to step",
                        .try_code = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                        .confidence = Confidence::kLow,
                        .confirm_by = "torch.cuda.memory._dump_snapshot(): a trace does not show the blocks"});
  });
}

std::vector<Finding> find_thrash(const Context& context) {
  const HostSlices& host = context.model.host_slices;
  Evidence evidence(context);
  for (Row row = 0; row < host.size(); ++row) {
    if (!is_call(host.kind[row])) continue;
    if (!analyze::is_allocator_call(context.model.text(host.name[row]))) continue;
    evidence.add_call(row, 0.2, 0);
    evidence.add_wait(row);  // cudaFree waits for the device
  }
  if (evidence.empty()) return {};
  Finding finding{
      .id = "allocator-thrash",
      .try_text = "keep shapes the same from step to step, remove empty_cache(), and leave some memory free",
      .try_code = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
      .confidence = Confidence::kMedium,
      .confirm_by = "record more steps: calls that end after some steps are warm-up"};
  evidence.fill(finding);
  finding.title = "the allocator asks the driver for memory in the middle of training: " +
                  counted(evidence.count(), "call", "calls") + " in " + counted(context.step_count, "step", "steps");
  return {finding};
}

std::vector<Finding> find_room(const Context& context) {
  if (!context.has_device_work || context.step_ns <= 0) return {};
  const int64_t idle_ns = context.step_ns - context.device_busy_ns;
  if (share(idle_ns, context.step_ns) < kIdleShare) return {};
  return for_gpus(context, [&](const analyze::DeviceMemory& device, std::vector<Finding>& findings) {
    const int64_t used = std::max(device.peak.allocated_bytes, device.peak_reserved_bytes);
    if (device.capacity_bytes <= 0 || share(used, device.capacity_bytes) > kRoomShare) return;
    Finding finding{
        .id = "small-batch",
        .title = short_percent(1 - share(used, device.capacity_bytes)) + " of the memory of " + device.name +
                 " is free while it waits: a larger batch gives each launch more to do",
        .cost_ns = idle_ns,
        .gain = {0, idle_ns / 2},
        .events = context.step_count,
        .try_text = "double the batch size (and adapt the learning rate) as long as the time per sample falls",
        .try_code = "DataLoader(dataset, batch_size=2 * batch_size)",
        .confidence = Confidence::kLow,
        .confirm_by = "time one step with twice the batch: the gain is per sample, not per step",
        .cause = "overhead"};
    finding.share_of_step = context.share_of_step(idle_ns);
    findings.push_back(std::move(finding));
  });
}

}  // namespace

std::vector<Rule> memory_rules() {
  return {
      {"memory-near-limit", "memory", 0, false,
       "More than 90% of the device's memory is reserved, or an allocation failed. The next longer sequence or larger "
       "batch\n"
       "fails.\n"
       "\n"
       "What to do: activation checkpointing (about a third more compute), bf16 (half the activations), or a smaller "
       "batch with\n"
       "gradient accumulation, which keeps the effective batch.\n"
       "\n"
       "When not: sizes never change, and the program has passed its largest step.",
       find_near_limit},
      {"memory-spike", "memory", 0, false,
       "One op briefly needs much more memory than is used before and after it. It determines the peak, and so the\n"
       "largest batch size, of the whole program. Typical: a loss over a large vocabulary, a mask of sequence x\n"
       "sequence, a cast of everything.\n"
       "\n"
       "What to do: compute it in pieces, or with a fused operator that does not write the large intermediate.\n"
       "\n"
       "When not: the peak is far from the device's memory.",
       find_spike},
      {"memory-leak", "memory", 0, false,
       "Every step after the first ends with more memory than the one before. Usually a list of losses that still\n"
       "hold their graph, or a cache without a limit. It ends in an out-of-memory error sooner or later. It is\n"
       "listed first if the device is full within an hour or 10,000 steps at this pace.\n\n"
       "What to do: keep numbers, not tensors with an autograd history (loss.detach(), or loss.item() once in a\n"
       "while); bound "
       "caches.\n"
       "\n"
       "When not: something is meant to grow, such as a decoder's cache while it generates.",
       find_leak},
      {"memory-fragmentation", "memory", 0, false,
       "The allocator has reserved much more than tensors use, even at the peak. Blocks of different sizes that are\n"
       "allocated and freed leave holes that later requests do not fit into. Sizes that change from step to step\n"
       "are the usual cause.\n"
       "\n"
       "What to do: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; pad inputs to a few sizes.\n"
       "\n"
       "When not: there is memory to spare: cached blocks cost nothing by themselves.",
       find_fragmentation},
      {"allocator-thrash", "memory", 0.01, true,
       "cudaMalloc and cudaFree inside steps: torch's cache did not have a fitting block, or was told to release\n"
       "memory. "
       "Each call costs up to a millisecond, and cudaFree waits for the device.\n"
       "\n"
       "What to do: take torch.cuda.empty_cache() out of the loop; expandable segments; fewer different sizes.\n"
       "\n"
       "When not: it is normal in the first steps.",
       find_thrash},
      {"small-batch", "memory", 0.05, true,
       "The device waits for the host while most of its memory is free. More samples per step cost the host almost\n"
       "nothing. "
       "The gain is per sample; a step itself gets longer.\n"
       "\n"
       "What to do: a larger batch, with the learning rate to go with it.\n"
       "\n"
       "When not: the batch size is part of the method, or latency matters more than throughput.",
       find_room},
  };
}

}  // namespace firelane::advise
