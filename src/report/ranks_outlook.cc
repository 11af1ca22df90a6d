#include "report/ranks_outlook.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "advise/text.h"
#include "base/visible_text.h"
#include "model/collectives.h"
#include "report/quantity.h"

namespace firelane::report {

using ranks::Reduction;

std::string path_line(const Reduction& job) {
  if (job.path_ns <= 0 || job.ranks < 2) return "";
  std::map<int64_t, int64_t> by_rank;
  for (const ranks::PathShare& share : job.path) by_rank[share.rank] += share.time_ns;
  const auto most = std::max_element(by_rank.begin(), by_rank.end(), [](const auto& a, const auto& b) {
    return (a.first < 0 ? -1 : a.second) < (b.first < 0 ? -1 : b.second);
  });
  constexpr int64_t kLeastShare = 10;  // a tenth: a path that is spread over many ranks names none
  if (most == by_rank.end() || most->first < 0 || most->second * kLeastShare < job.path_ns) return "";
  const auto share_of = [&](int64_t ns) {
    return advise::short_percent(static_cast<double>(ns) / static_cast<double>(job.path_ns));
  };
  std::string out =
      fmt::format("The critical path runs through rank {} for {} of the time", most->first, share_of(most->second));
  for (const ranks::PathShare& share : job.path) {
    if (share.rank != most->first) continue;
    out += fmt::format("; most of it {}", share.what);
    if (!share.name.empty()) out += fmt::format(" in {}", visible_text(share.name.substr(0, 60)));
    std::string place;
    for (const std::string* each : {&share.op, &share.module, &share.line}) {
      if (!each->empty()) place += (place.empty() ? "" : ", ") + visible_text(*each);
    }
    if (!place.empty()) out += " (" + place + ")";
    break;
  }
  return out + ".";
}

std::string pipeline_line(const Reduction& job) {
  const ranks::Pipeline& p = job.pipeline;
  if (p.stages.empty()) return "";
  std::string out = fmt::format("Pipeline of {} stages", p.stages.size());
  if (!p.schedule.empty()) out += ", " + p.schedule;
  if (p.micro_batches > 0) out += " with " + advise::counted(p.micro_batches, "micro-batch", "micro-batches");
  out += fmt::format(": stages wait for each other during {} of a step", advise::short_percent(p.bubble_percent / 100));
  if (p.least_percent >= 0) {
    out += fmt::format(" (an even pipeline with this schedule: {})", advise::short_percent(p.least_percent / 100));
  }
  if (p.last_stage_share >= 0.005) {
    out += fmt::format("; the last stage explains {} of what uneven work costs",
                       advise::short_percent(p.last_stage_share));
  }
  return out + ".";
}

Table what_ifs_of(const Reduction& job) {
  Table table{.name = "what_ifs",
              .title = "What if",
              .columns = {{"id", "Change"},
                          {"what", "With", Kind::kText, Align::kByKind, 70},
                          {"gain_ns", "Would save per step", Kind::kDuration},
                          {"gain_percent", "Of the job", Kind::kPercent}},
              .hide_if_empty = true};
  for (const ranks::WhatIf& each : job.what_ifs) table.add({each.id, each.what, each.gain_ns, each.gain_percent});
  return table;
}

Table types_of(const Reduction& job) {
  Table table{.name = "types",
              .title = "What is uneven (S_t: only this type as recorded / everything even)",
              .columns = {{"type", "Type"}, {"slowdown", "S_t", Kind::kNumber}},
              .hide_if_empty = true};
  for (const ranks::TypeSlowdown& each : job.types) table.add({each.type, each.slowdown});
  return table;
}

Table path_of(const Reduction& job) {
  Table table{.name = "critical_path",
              .title = "Critical path across ranks",
              .columns = {{"rank", "Rank", Kind::kNumber},
                          {"what", "What"},
                          {"name", "Kernel or collective", Kind::kText, Align::kByKind, 48, true},
                          {"op", "Operator", Kind::kText, Align::kByKind, 32, true},
                          {"module", "Module", Kind::kText, Align::kByKind, 32, true},
                          {"line", "Line", Kind::kText, Align::kByKind, 40, true},
                          {"time_ns", "Time", Kind::kDuration},
                          {"share_percent", "Of the path", Kind::kPercent},
                          {"pieces", "Pieces", Kind::kNumber}},
              .hide_if_empty = true};
  for (const ranks::PathShare& share : job.path) {
    table.add({cell_unless(share.rank, int64_t{-1}), share.what, text_or_none(share.name), text_or_none(share.op),
               text_or_none(share.module), text_or_none(share.line), share.time_ns,
               100.0 * static_cast<double>(share.time_ns) / static_cast<double>(job.path_ns), share.pieces});
  }
  return table;
}

Table stages_of(const Reduction& job) {
  Table table{.name = "pipeline_stages",
              .title = "Pipeline stages (average step of a rank)",
              .columns = {{"stage", "Stage", Kind::kNumber},
                          {"ranks", "Ranks", Kind::kText, Align::kByKind, 28},
                          {"work_ns", "Work", Kind::kDuration},
                          {"bubble_ns", "Waiting for a stage", Kind::kDuration}},
              .hide_if_empty = true};
  int64_t number = 0;
  for (const ranks::PipelineStage& stage : job.pipeline.stages) {
    table.add({number++, short_rank_list(stage.ranks), stage.work_ns, stage.bubble_ns});
  }
  return table;
}

Table by_step_of(const Reduction& job, size_t rows) {
  Table table{.name = "steps",
              .title = "Steps",
              .columns = {{"step", "Step", Kind::kNumber},
                          {"step_ns", "Time", Kind::kDuration},
                          {"wait_ns", "Waiting for others", Kind::kDuration},
                          {"latest_rank", "Latest rank", Kind::kNumber, Align::kByKind, 0, true},
                          {"late_ns", "Late by its own work", Kind::kDuration}},
              .hide_if_empty = true};
  std::vector<const ranks::StepResult*> order;
  for (const ranks::StepResult& each : job.by_step) order.push_back(&each);
  if (rows != 0 && order.size() > rows) {
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->wait_ns > b->wait_ns; });
    table.title = "Steps in which ranks waited the most";
  }
  for (const ranks::StepResult* each : order) {
    table.add({each->number, each->step_ns, each->wait_ns, cell_unless(each->latest_rank, int64_t{-1}), each->late_ns});
  }
  return table;
}

}  // namespace firelane::report
