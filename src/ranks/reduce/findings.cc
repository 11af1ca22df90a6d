#include "ranks/reduce/findings.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/shell_quoted.h"

namespace firelane::ranks {

namespace {

constexpr std::array kTexts = {
    FindingText{
        "straggler",
        "A rank arrives at collectives later than the others, by its own work, and all of them wait for it.\n\n"
        "Lateness is charged to a rank only as far as its own work since the collective before took longer than that "
        "of\n"
        "the other ranks; what it inherited is charged to whoever made it late. The gain is a replay of all ranks "
        "with\n"
        "this rank's work as long as the median of the others. Lateness that chance spreads over equal ranks is not "
        "named.\n\n"
        "Slower kernels: look at clocks, power and temperature of that GPU, at other programs on it, then swap the "
        "machine.\n"
        "More work: balance the batches (sequence lengths, images of different sizes, experts).\n"
        "Input, host, garbage collection, allocation: firelane diagnose on the trace of that rank says what to do."},
    FindingText{
        "hang",
        "Ranks wait in a collective that others have not called: the job hangs.\n\n"
        "Detected from the NCCL flight recorder dumps next to the traces. The named rank holds up others and waits\n"
        "for no one itself: look at its call stack (py-spy dump --pid), its log and its GPU (Xid errors). If ranks\n"
        "wait for each other in a circle, they call collectives of several groups in different orders. firelane\n"
        "hangs DUMPS shows who waits for whom."},
    FindingText{
        "exposed-communication",
        "Collectives transfer data while nothing computes.\n\n"
        "Waiting for late ranks is not counted here. Overlap collectives with compute (DDP's buckets, FSDP's\n"
        "prefetch, async tensor parallelism), send less (lower precision, gradient accumulation), or use the links\n"
        "better: the table of collectives shows the achieved bus bandwidth for each size, and small ones never reach\n"
        "that of large ones."},
    FindingText{
        "uneven-ranks",
        "Ranks take turns at being late: each piece of work varies, and every collective waits for the slowest.\n\n"
        "No single rank explains it. Uneven batches (sequence lengths), the garbage collector running at different "
        "times\n"
        "and noisy machines do this. Sort or pack samples by length, call gc.disable() and gc.collect() at the same "
        "step\n"
        "on all ranks, and use fewer, larger collectives."},
    FindingText{
        "uneven-stages",
        "Pipeline stages have different amounts of work, and all of them wait for the one with the most.\n\n"
        "The first stage often has the embedding, the last one the output layer and the loss. Give the heaviest stage\n"
        "fewer layers, or split it; the table of stages has the work of each. The gain is a replay of all ranks in "
        "which\n"
        "every stage has the same work."},
    FindingText{
        "mismatched-collectives",
        "Ranks call different collectives under the same sequence number of a group.\n\n"
        "This hangs or computes wrong results. The usual cause is a branch that depends on data or on the rank."},
    FindingText{"memory-imbalance",
                "One rank needs much more memory than the others and decides how large the batch can be.\n\n"
                "Move layers from that pipeline stage, shard embeddings and the loss, or balance experts."},
    FindingText{
        "expert-imbalance",
        "The ranks of an expert parallel group receive very different numbers of tokens.\n\n"
        "The one with the most decides how long the layer takes. A load balancing loss, a capacity limit, or another\n"
        "placement of experts evens it out."},
};

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, share < 0.0995 ? "%.1f%%" : "%.0f%%", 100 * share);
  return text;
}

std::string milliseconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, ns < 10'000'000 ? "%.2f ms" : "%.1f ms", static_cast<double>(ns) / 1e6);
  return text;
}

std::string remedy_for(Cause cause, int64_t rank, const std::string& path) {
  const std::string look = path.empty() ? "" : "; firelane diagnose " + shell_quoted(path) + " has the rank itself";
  switch (cause) {
    case Cause::kMoreWork: return "balance the work of the ranks: sequence lengths, batch and expert placement";
    case Cause::kSlowerKernels:
      return "check clocks, power and temperature of the GPU of rank " + std::to_string(rank) +
             " (nvidia-smi -q -d CLOCK,PERFORMANCE), and what else runs there";
    case Cause::kInput: return "more DataLoader workers or prefetching on that rank; is its storage slower?" + look;
    case Cause::kGc: return "gc.disable(), and gc.collect() at the same step on all ranks" + look;
    case Cause::kAllocation:
      return "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or less memory on that rank" + look;
    case Cause::kCheckpoint:
      return "write checkpoints in the background (torch.distributed.checkpoint.async_save), or let all ranks write "
             "their own part" +
             look;
    default: return "find out what the host of rank " + std::to_string(rank) + " does then" + look;
  }
}

}  // namespace

std::span<const FindingText> rank_finding_texts() { return kTexts; }

std::vector<RankFinding> rank_findings(const Reduction& job) {
  std::vector<RankFinding> out;
  const auto step = static_cast<double>(std::max<int64_t>(1, job.time.step_ns));
  const auto path_of = [&](int64_t rank) {
    for (const RankResult& each : job.by_rank) {
      if (each.rank == rank) return each.path;
    }
    return std::string();
  };
  if (const flight::HangReport& hangs = job.flight.hangs; hangs.hangs()) {
    std::string title = "the job hangs";
    std::string look = "py-spy dump on the ranks that have not called it";
    if (!hangs.culprits.empty()) {
      const flight::Culprit& first = hangs.culprits[0];
      title += ": rank " + std::to_string(first.rank) + " holds up " + std::to_string(first.blocked.size()) +
               (first.blocked.size() == 1 ? " other rank" : " other ranks") + ", it has not called " +
               first.missing.collective;
      look = "py-spy dump of rank " + std::to_string(first.rank) + ", its log, and the Xid errors of its GPU";
      if (!job.flight.history.empty()) title += "; " + job.flight.history[0];
    }
    out.push_back({.id = "hang",
                   .title = title,
                   .try_text = look,
                   .see = hangs.culprits.empty() ? "" : hangs.culprits[0].place,
                   .confidence = hangs.absent_ranks.empty() ? "high" : "medium"});
  }
  if (!job.first_mismatch.empty()) {
    out.push_back({.id = "mismatched-collectives",
                   .title = "ranks call different collectives: " + job.first_mismatch,
                   .try_text = "look for a branch that depends on data or on the rank",
                   .confidence = "high"});
  }
  double named = 0;
  for (const Straggler& s : job.stragglers) {
    const std::string who =
        s.whole_host ? "the ranks of " + s.host + " hold"
                     : "rank " + std::to_string(s.rank) + (s.host.empty() ? "" : " (" + s.host + ")") + " holds";
    named = std::max(named, s.gain_percent / 100);
    out.push_back({.id = "straggler",
                   .title = who + " everybody up: " + percent(s.gain_percent / 100) + " of the job" +
                            (s.why.empty() ? "" : "; " + s.why),
                   .share_of_step = s.gain_percent / 100,
                   .gain_low_ns = s.gain_ns / 2,
                   .gain_high_ns = s.gain_ns,
                   .try_text = remedy_for(s.cause, s.rank, path_of(s.rank)),
                   .see = "rank " + std::to_string(s.rank) + " at " + milliseconds(s.first_late_ns),
                   .confidence = job.ranks < job.world_size ? "medium" : "high"});
  }
  const double uneven = job.scaling.lost_share;
  if (uneven - named > 0.03 && job.ranks > 1) {
    out.push_back({.id = "uneven-ranks",
                   .title = "ranks take turns at being late: with even work the job would take " +
                            percent(job.scaling.lost_share) + " less",
                   .share_of_step = job.scaling.lost_share,
                   .gain_low_ns = 0,
                   .gain_high_ns = static_cast<int64_t>(job.scaling.lost_share * step),
                   .try_text = "even out the batches of the ranks; run the garbage collector at the same step on all",
                   .confidence = "medium"});
  }
  const auto even = std::ranges::find(job.what_ifs, "even-stages", &WhatIf::id);
  if (even != job.what_ifs.end() && even->gain_percent >= 3) {
    const std::vector<PipelineStage>& stages = job.pipeline.stages;
    const auto heaviest = std::ranges::max_element(stages, {}, &PipelineStage::work_ns);
    int64_t others = 0;
    for (const PipelineStage& each : stages) others += &each == &*heaviest ? 0 : each.work_ns;
    out.push_back({.id = "uneven-stages",
                   .title = "pipeline stage " + std::to_string(heaviest - stages.begin()) + " has " +
                            milliseconds(heaviest->work_ns) + " of work in a step, the others " +
                            milliseconds(others / static_cast<int64_t>(stages.size() - 1)) + " on average",
                   .share_of_step = even->gain_percent / 100,
                   .gain_low_ns = 0,
                   .gain_high_ns = even->gain_ns,
                   .try_text = "move layers from that stage to others, or split it",
                   .confidence = job.ranks < job.world_size ? "medium" : "high"});
  }
  const double moving = static_cast<double>(job.time.transfer_ns) / step;
  if (moving > 0.05) {
    const CollectiveResult* most = job.collectives.empty() ? nullptr : &job.collectives[0];
    std::string title = percent(moving) + " of a step transfers data while nothing computes";
    if (most != nullptr && most->bus_gb_s > 0) {
      char text[96];
      std::snprintf(text, sizeof text, "; most in %s of %.1f MB at %.1f GB/s bus bandwidth",
                    std::string(name_of(most->op)).c_str(), static_cast<double>(most->bytes) / 1e6, most->bus_gb_s);
      title += text;
    }
    out.push_back(
        {.id = "exposed-communication",
         .title = title,
         .share_of_step = moving,
         .gain_low_ns = 0,
         .gain_high_ns = job.time.transfer_ns,
         .try_text =
             "overlap collectives with compute, or send less: larger buckets, lower precision, gradient accumulation",
         .confidence = "medium"});
  }
  if (job.expert_imbalance > 1.5) {
    char text[96];
    std::snprintf(text, sizeof text, "the rank with the most tokens gets %.1f times the average in all_to_all",
                  job.expert_imbalance);
    out.push_back({.id = "expert-imbalance",
                   .title = text,
                   .try_text = "a load balancing loss or a capacity limit",
                   .confidence = "high"});
  }
  if (job.memory_imbalance > 1.25) {
    char text[96];
    std::snprintf(text, sizeof text, "rank %lld needs %.2f times the average peak memory",
                  static_cast<long long>(job.memory_peak_rank), job.memory_imbalance);
    out.push_back({.id = "memory-imbalance",
                   .title = text,
                   .try_text = "move layers or shards away from that rank",
                   .confidence = "high"});
  }
  return out;
}

}  // namespace firelane::ranks
