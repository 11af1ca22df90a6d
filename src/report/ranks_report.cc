#include "report/ranks_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "advise/text.h"
#include "base/visible_text.h"
#include "model/collectives.h"
#include "ranks/reduce/findings.h"
#include "report/hangs_report.h"
#include "report/paint.h"
#include "report/quantity.h"
#include "report/ranks_outlook.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

using ranks::Reduction;

std::string ranks_words(const Reduction& job) {
  std::string out = job.ranks < job.world_size ? fmt::format("{} of {} ranks", job.ranks, job.world_size)
                                               : advise::counted(job.ranks, "rank", "ranks");
  if (job.hosts > 0) out += " on " + advise::counted(job.hosts, "host", "hosts");
  return out;
}

std::string scaling_line(const Reduction& job) {
  const ranks::RankTime& t = job.time;
  if (t.step_ns <= 0) {
    return fmt::format("{}: no steps found, {} collectives matched of {}.", ranks_words(job), job.matched_rows,
                       job.rows);
  }
  const auto share = [&](int64_t ns) {
    return advise::short_percent(static_cast<double>(ns) / static_cast<double>(t.step_ns));
  };
  std::string out =
      fmt::format("{}, {} of {}: {} computing", ranks_words(job), advise::counted(job.steps, "step", "steps"),
                  advise::short_time(t.step_ns), share(t.compute_ns));
  if (job.ranks > 1) {
    out += fmt::format(", {} waiting for late ranks, {} transferring data without overlap", share(t.wait_ns),
                       share(t.transfer_ns));
  }
  if (t.unmatched_ns * 200 > t.step_ns) {
    out += fmt::format(", {} in collectives whose waiting and transfer cannot be separated", share(t.unmatched_ns));
  }
  const int64_t rest = t.copy_ns + t.input_ns + t.host_ns;
  return out +
         fmt::format(", {} {}.", share(rest), job.has_device_work ? "with an idle device" : "outside of operators");
}

std::string straggler_line(const ranks::Straggler& s) {
  std::string where = s.host;
  if (s.stage >= 0) where += fmt::format("{}pipeline stage {}", where.empty() ? "" : ", ", s.stage);
  const std::string who = s.whole_host ? fmt::format("The ranks of {}", s.host)
                                       : fmt::format("Rank {}{}", s.rank, where.empty() ? "" : " (" + where + ")");
  std::string out = fmt::format("{} held up all others: {} late in a step by {} own work", visible_text(who),
                                advise::short_time(s.late_ns), s.whole_host ? "their" : "its");
  if (s.steps > 0)
    out += fmt::format(", the latest in {} of {}", s.steps_late, advise::counted(s.steps, "step", "steps"));
  if (!s.few_steps.empty()) {
    constexpr size_t kMostNamed = 5;
    out +=
        fmt::format("; most of it in {}", advise::counted(static_cast<int64_t>(s.few_steps.size()), "step", "steps"));
    for (size_t i = 0; i < s.few_steps.size() && i < kMostNamed; ++i) {
      out += fmt::format("{} {}", i == 0 ? ":" : ",", s.few_steps[i]);
    }
    if (s.few_steps.size() > kMostNamed) out += " …";
  }
  out +=
      fmt::format("; as fast as the others it would save {} of the job.", advise::short_percent(s.gain_percent / 100));
  if (!s.why.empty()) out += " Why: " + s.why + ".";
  return out;
}

std::string cost_line(const Reduction& job, const RanksOptions& options) {
  const ranks::Scaling& s = job.scaling;
  if (s.lost_share < 0.002) return fmt::format("Even work would not make the job faster (S = {:.3f}).", s.slowdown);
  const char* const unit = job.has_device_work ? "GPU" : "rank";
  const double hours = s.lost_share * static_cast<double>(job.world_size) * 24;
  std::string out = fmt::format(
      "With even work the job would take {} less (S = {:.3f}); the recording lost {:.3g} {}-seconds to uneven ranks, "
      "that is {:.3g} {}-hours a day",
      advise::short_percent(s.lost_share), s.slowdown, s.lost_gpu_seconds, unit, hours, unit);
  if (options.price_per_hour >= 0) out += fmt::format(" ({:.4g} a day)", hours * options.price_per_hour);
  return out + ".";
}

// "2.0 ms to 4.0 ms per step", "up to 4.0 ms per step"; "" where nothing is saved.
std::string saved_text(const ranks::RankFinding& f) {
  if (f.gain_high_ns <= 0) return "";
  const std::string least = f.gain_low_ns > 0 ? advise::short_time(f.gain_low_ns) + " to " : "up to ";
  return least + advise::short_time(f.gain_high_ns) + " per step";
}

Table findings_of(const Reduction& job) {
  Table table = empty_findings({{"try", "Try"}, {"see", "See"}, {"confidence", "Confidence"}, {"saves", "Saves"}});
  for (const ranks::RankFinding& f : ranks::rank_findings(job)) {
    table.add({f.id, f.title, 100 * f.share_of_step, f.gain_low_ns, f.gain_high_ns, f.try_text, f.see, f.confidence,
               text_or_none(saved_text(f))});
  }
  return table;
}

// Only the first rows, and how many more there are.
void shorten(Table& table, size_t rows) {
  if (rows == 0 || table.rows.size() <= rows) return;
  table.notes.emplace_back(std::to_string(table.rows.size() - rows) + " more", "--rows 0 shows all");
  table.row_count = table.rows.size();
  table.rows.resize(rows);
}

Table stragglers_of(const Reduction& job) {
  Table table{.name = "stragglers",
              .title = "Stragglers",
              .columns = {{"rank", "Rank", Kind::kNumber},
                          {"host", "Host", Kind::kText, Align::kByKind, 24, true},
                          {"whole_host", "Whole host", Kind::kTruth},
                          {"stage", "Stage", Kind::kNumber, Align::kByKind, 0, true},
                          {"late_ns", "Late in a step", Kind::kDuration},
                          {"steps_late", "Latest in steps", Kind::kNumber},
                          {"steps", "of", Kind::kNumber},
                          {"gain_ns", "Would save", Kind::kDuration},
                          {"gain_percent", "Of the job", Kind::kPercent},
                          {"cause", "Cause"},
                          {"why", "Why", Kind::kText, Align::kByKind, 80},
                          {"kernel", "Kernel", Kind::kText, Align::kByKind, 40, true},
                          {"latest_at_ns", "See at", Kind::kDuration},
                          {"chance", "Chance", Kind::kSmall}},
              .hide_if_empty = true};
  for (const ranks::Straggler& s : job.stragglers) {
    table.add({s.rank, text_or_none(s.host), int64_t{s.whole_host}, cell_unless(s.stage, int64_t{-1}), s.late_ns,
               s.steps_late, s.steps, s.gain_ns, s.gain_percent, std::string(ranks::name_of(s.cause)), s.why,
               text_or_none(s.kernel), s.first_late_ns, s.probability});
  }
  return table;
}

Table ranks_of(const Reduction& job, size_t rows) {
  Table table{.name = "ranks",
              .title = "Ranks (average step)",
              .columns = {{"rank", "Rank", Kind::kNumber},
                          {"host", "Host", Kind::kText, Align::kByKind, 24, true},
                          {"steps", "Steps", Kind::kNumber},
                          {"step_ns", "Step", Kind::kDuration},
                          {"compute_ns", "Computing", Kind::kDuration},
                          {"wait_ns", "Waiting", Kind::kDuration},
                          {"transfer_ns", "Transfer", Kind::kDuration},
                          {"unmatched_ns", "Waiting or transfer", Kind::kDuration},
                          {"copy_ns", "Copies", Kind::kDuration},
                          {"input_ns", "Input", Kind::kDuration},
                          {"host_ns", "Idle (host)", Kind::kDuration},
                          {"overlap_percent", "Overlapped", Kind::kPercent, Align::kByKind, 0, true},
                          {"late_ns", "Made others wait", Kind::kDuration},
                          {"passed_on_ns", "Passed on", Kind::kDuration},
                          {"last_count", "Last", Kind::kNumber},
                          {"slowdown", "S_w", Kind::kNumber, Align::kByKind, 0, true},
                          {"waited_ns", "Waited in total", Kind::kDuration},
                          {"collectives", "Collectives", Kind::kNumber},
                          {"matched", "Matched", Kind::kNumber},
                          {"peak_bytes", "Peak memory", Kind::kBytes, Align::kByKind, 0, true},
                          {"device", "", Kind::kText, Align::kByKind, 24, true},
                          {"path", "", Kind::kText, Align::kByKind, 40, true}}};
  std::vector<const ranks::RankResult*> order;
  for (const ranks::RankResult& each : job.by_rank) order.push_back(&each);
  if (rows != 0 && order.size() > rows) {  // those that matter
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->late_ns > b->late_ns; });
    table.title = "Ranks that made others wait the most (average step)";
  }
  for (const ranks::RankResult* r : order) {
    const ranks::RankTime& t = r->time;
    table.add({r->rank,
               text_or_none(r->host),
               r->steps,
               t.step_ns,
               t.compute_ns,
               t.wait_ns,
               t.transfer_ns,
               t.unmatched_ns,
               t.copy_ns,
               t.input_ns,
               t.host_ns,
               cell_unless(r->overlap_percent, -1.0),
               r->late_ns,
               r->passed_on_ns,
               r->last_count,
               cell_unless(r->slowdown, -1.0),
               r->waited_ns,
               r->collectives,
               r->matched,
               cell_unless(r->peak_bytes, int64_t{-1}),
               text_or_none(r->device),
               text_or_none(r->path)});
  }
  shorten(table, rows);
  return table;
}

Table groups_of(const Reduction& job, size_t rows) {
  Table table{.name = "groups",
              .title = "Groups, and how their collectives were matched",
              .columns = {{"kind", "Kind"},
                          {"description", "Description", Kind::kText, Align::kByKind, 24, true},
                          {"ranks", "Ranks", Kind::kText, Align::kByKind, 28},
                          {"size", "Size", Kind::kNumber},
                          {"present", "Here", Kind::kNumber},
                          {"matched_by", "Matched by"},
                          {"rows", "Collectives", Kind::kNumber},
                          {"matched_rows", "Matched", Kind::kNumber},
                          {"refused", "Refused", Kind::kText, Align::kByKind, 40, true},
                          {"wait_ns", "Waiting", Kind::kDuration},
                          {"transfer_ns", "Transfer", Kind::kDuration},
                          {"exposed_ns", "Exposed, a step", Kind::kDuration}},
              .hide_if_empty = true};
  for (const ranks::GroupResult& g : job.groups) {
    std::string refused;
    for (size_t i = 0; i < ranks::kRefusalCount; ++i) {
      if (g.match.refused[i] == 0) continue;
      refused += fmt::format("{}{} {}", refused.empty() ? "" : ", ", g.match.refused[i],
                             ranks::name_of(static_cast<ranks::Refusal>(i)));
    }
    table.add({std::string(ranks::name_of(g.kind)), text_or_none(g.description), text_or_none(short_rank_list(g.ranks)),
               cell_unless(g.size, int64_t{0}), g.present, std::string(ranks::name_of(g.match.by)), g.match.rows,
               g.match.matched_rows, text_or_none(refused), g.wait_ns, g.transfer_ns, g.exposed_ns});
  }
  shorten(table, rows);
  return table;
}

Table collectives_of(const Reduction& job, size_t rows, double between_hosts_gb_s) {
  Table table{.name = "collectives",
              .title = "Collectives: waiting and data transfer",
              .columns = {{"op", "Collective"},
                          {"kind", "Group"},
                          {"ranks", "Ranks", Kind::kNumber},
                          {"dtype", "Type", Kind::kText, Align::kByKind, 0, true},
                          {"bytes", "Size", Kind::kBytes},
                          {"count", "Count", Kind::kNumber},
                          {"wait_ns", "Wait (median)", Kind::kDuration},
                          {"transfer_ns", "Transfer (median)", Kind::kDuration},
                          {"algorithm_gb_s", "Algorithm", Kind::kBandwidth},
                          {"bus_gb_s", "Bus", Kind::kBandwidth},
                          {"link", "Link", Kind::kText, Align::kByKind, 0, true},
                          {"link_peak_gb_s", "Link's peak", Kind::kBandwidth, Align::kByKind, 0, true},
                          {"link_peak_percent", "Of peak", Kind::kPercent, Align::kByKind, 0, true},
                          {"imbalance", "Most / average", Kind::kNumber, Align::kByKind, 0, true}},
              .hide_if_empty = true};
  for (const ranks::CollectiveResult& c : job.collectives) {
    const double given = c.link == ranks::Link::kBetweenHosts ? std::max(0.0, between_hosts_gb_s) : 0.0;
    const double peak = given > 0 ? given : c.link_gb_s;
    table.add({std::string(ranks::name_of(c.op)), std::string(ranks::name_of(c.kind)), c.ranks, text_or_none(c.dtype),
               cell_unless(c.bytes, int64_t{0}), c.count, c.wait_ns, c.transfer_ns, cell_unless(c.algorithm_gb_s, 0.0),
               cell_unless(c.bus_gb_s, 0.0),
               c.link == ranks::Link::kUnknown ? Cell{} : Cell{std::string(ranks::name_of(c.link))},
               cell_unless(peak, 0.0), peak > 0 && c.bus_gb_s > 0 ? Cell{100 * c.bus_gb_s / peak} : Cell{},
               cell_unless(c.imbalance, 0.0)});
  }
  shorten(table, rows);
  return table;
}

Table clocks_of(const Reduction& job, size_t rows) {
  Table table{.name = "clocks",
              .title = "Clocks",
              .columns = {{"clock", "Clock of", Kind::kText, Align::kByKind, 32},
                          {"offset_ns", "Ahead by", Kind::kDuration},
                          {"drift_ppm", "Drift (ppm)", Kind::kNumber},
                          {"error_bound_ns", "Error at most", Kind::kDuration},
                          {"spread_ns", "Spread of ends", Kind::kDuration},
                          {"collectives", "Collectives", Kind::kNumber},
                          {"consistent", "Consistent", Kind::kTruth},
                          {"reference", "Reference", Kind::kTruth}},
              .hide_if_empty = true};
  for (size_t d = 0; d < job.clocks.domains.size(); ++d) {
    const ranks::DomainClock& c = job.clocks.domains[d];
    if (!c.known) continue;
    const bool reference = d == job.clocks.reference;
    table.add({job.clock_names[d], static_cast<int64_t>(std::llround(c.offset_ns)), c.drift * 1e6,
               static_cast<int64_t>(std::llround(std::ceil(c.bound_ns))),
               static_cast<int64_t>(std::llround(c.spread_ns)), c.collectives, int64_t{c.consistent},
               int64_t{reference}});
  }
  if (table.rows.size() < 2) table.rows.clear();
  shorten(table, rows);
  return table;
}

Table refusals_of(const Reduction& job) {
  Table table{
      .name = "refused",
      .title = "Collectives that were not matched",
      .columns = {{"reason", "Reason"}, {"count", "Count", Kind::kNumber}, {"meaning", "Meaning, and what to do"}},
      .hide_if_empty = true};
  for (size_t i = 0; i < ranks::kRefusalCount; ++i) {
    if (job.refused[i] == 0) continue;
    const auto refusal = static_cast<ranks::Refusal>(i);
    table.add({std::string(ranks::name_of(refusal)), job.refused[i], std::string(ranks::meaning_of(refusal))});
  }
  return table;
}

std::string findings_text(const Reduction& job, bool markdown, const TextStyle& style) {
  std::string out;
  size_t number = 0;
  for (const ranks::RankFinding& f : ranks::rank_findings(job)) {
    const std::string title = visible_text(f.title);
    out += fmt::format("{}. {}\n", ++number, markdown ? "**" + title + "**" : painted(title, kBold, style));
    if (const std::string saved = saved_text(f); !saved.empty()) out += "   saves " + saved + "\n";
    out += "   try: " + visible_text(f.try_text) + "\n";
    if (!f.see.empty()) out += "   see: " + f.see + "\n";
    out += "   confidence: " + f.confidence + "\n   more: firelane explain " + f.id + "\n";
  }
  if (number == 0 && job.ranks > 1 && job.matched_rows > 0) out += "Nothing worth fixing between the ranks.\n";
  return out;
}

// The tables of `firelane hangs`, and where collectives are called.
void add_flight(const Reduction& job, Report& report) {
  if (job.flight.hangs.dumps == 0) return;
  for (Table& table : hangs_report(job.flight.hangs).tables) report.tables.push_back(std::move(table));
  Table places{.name = "call_places",
               .title = "Where collectives are called (flight recorders)",
               .columns = {{"collective", "Collective"},
                           {"group", "Group"},
                           {"place", "Called at", Kind::kText, Align::kByKind, 60},
                           {"calls", "Calls", Kind::kNumber}},
               .hide_if_empty = true};
  for (const ranks::CallPlace& each : job.flight.places) {
    places.add({each.collective, each.group, each.place, each.calls});
  }
  report.tables.push_back(std::move(places));
  report.facts.push_back({"flight_dumps", "Flight recorder dumps", Kind::kNumber, job.flight.hangs.dumps});
  report.facts.push_back({"hangs", "", Kind::kTruth, int64_t{job.flight.hangs.hangs()}});
  report.facts.push_back({"in_trace_and_dump", "", Kind::kNumber, job.flight.in_both});
}

}  // namespace

std::vector<std::string> ranks_headlines(const Reduction& job, const RanksOptions& options) {
  std::vector<std::string> out = {scaling_line(job)};
  if (job.flight.hangs.dumps > 0) {
    out.push_back(fmt::format("Flight recorders of {}: {}.", advise::counted(job.flight.hangs.dumps, "rank", "ranks"),
                              visible_text(hangs_headline(job.flight.hangs))));
    for (const std::string& line : job.flight.history) out.push_back("From the traces: " + visible_text(line) + ".");
  }
  if (job.ranks < 2) return out;
  for (const ranks::Straggler& s : job.stragglers) {
    out.push_back(straggler_line(s));
    if (out.size() == 4) break;
  }
  if (job.stragglers.empty()) {
    out.emplace_back(job.matched_rows == 0
                         ? "It is unknown who was late: no collective could be matched between the ranks (see below)."
                         : "Nobody stands out: no rank is late more often than chance explains.");
  }
  if (job.matched_rows > 0) out.push_back(cost_line(job, options));
  for (std::string& line : std::vector<std::string>{path_line(job), pipeline_line(job)}) {
    if (!line.empty()) out.push_back(std::move(line));
  }
  return out;
}

Report ranks_report(const Reduction& job, const RanksOptions& options) {
  const ranks::Scaling& s = job.scaling;
  const std::vector<std::string> headlines = ranks_headlines(job, options);
  std::string joined;
  for (const std::string& line : headlines) joined += (joined.empty() ? "" : " ") + line;
  Report report{
      .facts = {
          {"headline", "", Kind::kText, joined},
          {"rank_count", "", Kind::kNumber, job.ranks},
          {"world_size", "", Kind::kNumber, job.world_size},
          {"host_count", "", Kind::kNumber, known_if(job.hosts_known, job.hosts)},
          {"device", "Device", Kind::kText, text_or_none(job.device)},
          {"common_steps", "", Kind::kNumber, job.steps},
          {"step_ns", "", Kind::kDuration, job.time.step_ns},
          {"compute_ns", "", Kind::kDuration, job.time.compute_ns},
          {"wait_ns", "", Kind::kDuration, job.time.wait_ns},
          {"transfer_ns", "", Kind::kDuration, job.time.transfer_ns},
          {"unmatched_ns", "", Kind::kDuration, job.time.unmatched_ns},
          {"copy_ns", "", Kind::kDuration, job.time.copy_ns},
          {"input_ns", "", Kind::kDuration, job.time.input_ns},
          {"host_ns", "", Kind::kDuration, job.time.host_ns},
          {"collective_rows", "", Kind::kNumber, job.rows},
          {"matched_rows", "", Kind::kNumber, job.matched_rows},
          {"matched_collectives", "", Kind::kNumber, job.instances},
          {"matched_percent", "Collectives matched", Kind::kPercent,
           known_if(job.ranks > 1 && job.rows > 0, 100 * job.matched_share())},
          {"slowdown", "S, recorded / even work", Kind::kNumber, known_if(s.ideal_ns > 0, s.slowdown)},
          {"worst_ranks_share_percent", "of it the worst 3% of ranks (M_W)", Kind::kPercent,
           known_if(s.ideal_ns > 0 && s.slowdown > 1.001, 100 * s.worst_share)},
          {"last_stage_share_percent", "of it the last pipeline stage (M_S)", Kind::kPercent,
           known_if(job.pipeline.last_stage_share >= 0, 100 * job.pipeline.last_stage_share)},
          {"pipeline_schedule", "", Kind::kText, text_or_none(job.pipeline.schedule)},
          {"pipeline_micro_batches", "", Kind::kNumber, cell_unless(job.pipeline.micro_batches, int64_t{0})},
          {"pipeline_bubble_percent", "", Kind::kPercent,
           known_if(!job.pipeline.stages.empty(), job.pipeline.bubble_percent)},
          {"critical_path_ns", "", Kind::kDuration, job.path_ns},
          {"recorded_ns", "", Kind::kDuration, static_cast<int64_t>(s.recorded_ns)},
          {"replayed_ns", "", Kind::kDuration, static_cast<int64_t>(s.replayed_ns)},
          {"ideal_ns", "", Kind::kDuration, static_cast<int64_t>(s.ideal_ns)},
          {"lost_gpu_seconds", "", Kind::kSmall, s.lost_gpu_seconds},
          {"lost_gpu_hours_per_day", "", Kind::kSmall, s.lost_share * static_cast<double>(job.world_size) * 24},
          {"memory_imbalance", "Peak memory, most / average", Kind::kNumber, cell_unless(job.memory_imbalance, 0.0)},
          {"expert_imbalance", "all_to_all, most / average", Kind::kNumber, cell_unless(job.expert_imbalance, 0.0)}}};
  report.tables = {findings_of(job),
                   stragglers_of(job),
                   what_ifs_of(job),
                   ranks_of(job, options.rows),
                   by_step_of(job, options.rows),
                   collectives_of(job, options.rows, options.link_gb_s),
                   groups_of(job, options.rows),
                   path_of(job),
                   stages_of(job),
                   types_of(job),
                   clocks_of(job, options.rows),
                   refusals_of(job)};
  for (Table& table : report.tables) {
    if (table.name == "critical_path" || table.name == "steps") shorten(table, options.rows);
  }
  add_flight(job, report);
  for (const std::string& note : job.notes) report.notes.emplace_back(note);
  return report;
}

std::string ranks_text(const Reduction& job, const RanksOptions& options, Form form, const TextStyle& style) {
  if (form == Form::kJson || form == Form::kCsv) {
    RanksOptions all = options;
    all.rows = 0;
    return render(ranks_report(job, all), form, style);
  }
  const bool markdown = form == Form::kMarkdown;
  std::string out;
  bool first = true;
  for (const std::string& line : ranks_headlines(job, options)) {
    if (markdown) {
      out += (first ? "**" + line + "**" : line) + "\n\n";
    } else {
      out += (first ? painted(line, kBold, style) : line) + "\n";
    }
    first = false;
  }
  if (!markdown) out += "\n";
  out += findings_text(job, markdown, style);
  Report report = ranks_report(job, options);
  std::erase_if(report.tables, [&](const Table& table) {
    return table.name == "findings" || table.name == "stragglers" || options.findings_only;
  });
  for (Table& table : report.tables) {
    if (table.name != "ranks") continue;
    constexpr size_t kForPrograms = 2;  // device and path
    table.columns.resize(table.columns.size() - kForPrograms);
    for (auto& row : table.rows) row.resize(table.columns.size());
  }
  if (options.findings_only) report.facts.clear();
  return out + "\n" + render(report, form, style);
}

}  // namespace firelane::report
