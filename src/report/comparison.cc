#include "report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "advise/text.h"
#include "base/visible_text.h"
#include "report/render.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

using compare::Difference;
using compare::Judgement;
using compare::Method;
using compare::Outcome;

double percent_more(double ratio) { return 100 * (ratio - 1); }

// "12.3% slower", "4.0% faster"
std::string slower_or_faster(double ratio) {
  if (std::abs(percent_more(ratio)) < 0.05) return "as fast as before";
  return fmt::format("{:.1f}% {}", std::abs(percent_more(ratio)), ratio >= 1 ? "slower" : "faster");
}

std::string range_text(const Judgement& step) {
  if (!step.has_range || std::isinf(step.range.high)) return "";
  return fmt::format(" ({:+.1f}% to {:+.1f}%)", percent_more(step.range.low), percent_more(step.range.high));
}

std::string runs_text(const Difference& d) { return fmt::format("{} + {} runs", d.runs_before, d.runs_after); }

// Whether it is more than noise.
std::string certainty(const Difference& d) {
  const Judgement& step = d.step;
  if (step.method == Method::kNone) {
    const std::string range = d.within_run_only ? "the range is that of the steps of one run; " : "";
    return fmt::format("; {}{} cannot tell that from noise between runs: record 4 or more per side", range,
                       d.runs_before + d.runs_after == 2 ? "one run per side" : runs_text(d));
  }
  const std::string how = step.method == Method::kPermutation         ? runs_text(d)
                          : std::min(d.runs_before, d.runs_after) > 1 ? "by the noise between " + runs_text(d)
                                                                      : "by the noise of earlier runs";
  if (step.outcome == Outcome::kInconclusive) {
    return fmt::format("; that may be noise (p = {:.2g}, {}): {} runs per side would show it", step.p, how,
                       step.runs_needed == 0 ? "more than 1,000" : std::to_string(step.runs_needed));
  }
  if (step.outcome == Outcome::kSame) {
    return fmt::format("; too little to matter ({}; {:.1f}% would have been detected)", how,
                       100 * step.smallest_change);
  }
  return fmt::format("; more than noise (p = {:.2g}, {})", step.p, how);
}

Table parts_table(const Difference& d) {
  Table table{.name = "parts",
              .title = "Where the difference comes from (adds up to it)",
              .columns = {{"part", "Part"},
                          {"before_ns", "Before", Kind::kDuration},
                          {"after_ns", "After", Kind::kDuration},
                          {"change_ns", "Change", Kind::kDuration},
                          {"share_percent", "Of the step", Kind::kPercent},
                          {"meaning", "Meaning"}}};
  for (const compare::PartChange& part : d.parts) {
    table.add({std::string(name_of(part.part)), part.before_ns, part.after_ns, part.change_ns(),
               percent_of(part.change_ns(), d.step_before_ns()), std::string(meaning_of(part.part))});
  }
  table.add({"all", d.step_before_ns(), d.step_after_ns(), d.step_after_ns() - d.step_before_ns(),
             percent_of(d.step_after_ns() - d.step_before_ns(), d.step_before_ns()), "the step"});
  return table;
}

int64_t whole(double value) { return std::llround(value); }

Table work_table(const Difference& d, size_t rows) {
  Table table{.name = "work",
              .title = d.has_device_work ? "Kernels and copies that changed" : "Operators that changed",
              .columns = {{"change", "Change"},
                          {"op", "Op", Kind::kText, Align::kByKind, 40},
                          {"kernel_before", "Kernel before", Kind::kText, Align::kByKind, 36, true},
                          {"kernel_after", "Kernel after", Kind::kText, Align::kByKind, 36, true},
                          {"precision_before", "Type before", Kind::kText, Align::kByKind, 0, true},
                          {"precision_after", "after", Kind::kText, Align::kByKind, 0, true},
                          {"dims_before", "Shapes before", Kind::kText, Align::kByKind, 28, true},
                          {"dims_after", "after", Kind::kText, Align::kByKind, 28, true},
                          {"module", "Module", Kind::kText, Align::kByKind, 36, true},
                          {"line", "Line", Kind::kText, Align::kByKind, 36, true},
                          {"places", "Places", Kind::kNumber},
                          {"calls_before", "Calls before", Kind::kNumber},
                          {"calls_after", "after", Kind::kNumber},
                          {"before_ns", "Time before", Kind::kDuration},
                          {"after_ns", "after", Kind::kDuration},
                          {"by_calls_ns", "By calls", Kind::kDuration},
                          {"by_speed_ns", "By speed", Kind::kDuration},
                          {"step_change_ns", "Of the step", Kind::kDuration},
                          {"p", "p", Kind::kSmall, Align::kByKind, 0, true}},
              .hide_if_empty = true};
  const bool tested = std::any_of(d.work.begin(), d.work.end(), [](const auto& w) { return w.p < 1; });
  // What is the same, but for less than a thousandth of the step, is not listed for people.
  const double least = rows == 0 ? 0 : d.step.before / 1000;
  size_t left_out = 0;
  for (const compare::WorkChange& w : d.work) {
    const bool is_same = w.change == compare::Change::kNone && std::abs(w.change_ns()) < std::max(least, 0.5) &&
                         std::abs(w.calls_after - w.calls_before) < 0.01;
    if (is_same) continue;
    if (rows != 0 && table.rows.size() >= rows) {
      ++left_out;
      continue;
    }
    table.add({std::string(name_of(w.change)), text_or_none(w.op), text_or_none(w.kernel_before),
               text_or_none(w.kernel_after), text_or_none(w.precision_before), text_or_none(w.precision_after),
               text_or_none(w.dims_before), text_or_none(w.dims_after), text_or_none(w.module), text_or_none(w.line),
               w.places, w.calls_before, w.calls_after, whole(w.ns_before), whole(w.ns_after), whole(w.by_calls_ns),
               whole(w.by_speed_ns), whole(w.path_after - w.path_before), known_if(tested, w.p)});
  }
  if (left_out > 0) table.notes.emplace_back(std::to_string(left_out) + " more", "--rows 0 shows all");
  return table;
}

// `key`: "op" or "module".
Table sums_table(const std::vector<compare::SumChange>& sums, const std::string& key, const std::string& label) {
  Table table{.name = key + "s",
              .title = label + "s",
              .columns = {{key, label, Kind::kText, Align::kByKind, 48},
                          {"calls_before", "Calls before", Kind::kNumber},
                          {"calls_after", "after", Kind::kNumber},
                          {"before_ns", "Time before", Kind::kDuration},
                          {"after_ns", "after", Kind::kDuration},
                          {"change_ns", "Change", Kind::kDuration}},
              .hide_if_empty = true};
  for (const compare::SumChange& sum : sums) {
    table.add({text_or_none(sum.name), sum.calls_before, sum.calls_after, whole(sum.before_ns), whole(sum.after_ns),
               whole(sum.change_ns())});
  }
  return table;
}

Table places_table(const Difference& d, size_t rows) {
  Table table{.name = "places",
              .title = "Where the host's share comes from",
              .columns = {{"part", "Part"},
                          {"op", "Op", Kind::kText, Align::kByKind, 48, true},
                          {"line", "Line", Kind::kText, Align::kByKind, 48, true},
                          {"before_ns", "Before", Kind::kDuration},
                          {"after_ns", "After", Kind::kDuration},
                          {"change_ns", "Change", Kind::kDuration}},
              .hide_if_empty = true};
  const double least = rows == 0 ? 0.5 : d.step.before / 500;
  for (const compare::PlaceChange& place : d.places) {
    if (std::abs(place.after_ns - place.before_ns) < least || (rows != 0 && table.rows.size() >= rows)) continue;
    table.add({std::string(name_of(place.part)), text_or_none(place.op), text_or_none(place.line),
               whole(place.before_ns), whole(place.after_ns), whole(place.after_ns - place.before_ns)});
  }
  return table;
}

Kind kind_of(compare::Unit unit) {
  switch (unit) {
    case compare::Unit::kNs: return Kind::kDuration;
    case compare::Unit::kBytes: return Kind::kBytes;
    case compare::Unit::kPercent: return Kind::kPercent;
    case compare::Unit::kCount:
    case compare::Unit::kPerSecond: return Kind::kNumber;
    case compare::Unit::kJoules: return Kind::kSmall;
  }
  return Kind::kNumber;
}

// Figures have different units: people see them as text, programs as numbers.
Table figures_table(const Difference& d) {
  Table table{.name = "figures",
              .title = "Per step",
              .columns = {{"figure", "Figure"},
                          {"before_text", "Before", Kind::kText, Align::kRight},
                          {"after_text", "After", Kind::kText, Align::kRight},
                          {"change_percent", "Change", Kind::kPercent},
                          {"outcome", "More than noise"},
                          {"p", "p", Kind::kSmall, Align::kByKind, 0, true},
                          {"before", "", Kind::kSmall, Align::kByKind, 0, true},
                          {"after", "", Kind::kSmall, Align::kByKind, 0, true}}};
  for (const compare::FigureChange& figure : d.figures) {
    const Judgement& j = figure.judged;
    if (j.before == 0 && j.after == 0) continue;
    const auto text = [&](double value) {
      const bool is_whole = figure.unit == compare::Unit::kNs || figure.unit == compare::Unit::kBytes;
      return cell_text(is_whole ? Cell{whole(value)} : Cell{value}, kind_of(figure.unit));
    };
    table.add(
        {figure.name, text(j.before), text(j.after), std::isinf(j.ratio) ? Cell{} : Cell{percent_more(j.ratio)},
         j.method == Method::kNone && !std::isinf(j.ratio) ? std::string("not known") : std::string(name_of(j.outcome)),
         j.method == Method::kNone ? Cell{} : Cell{j.p}, j.before, j.after});
  }
  return table;
}

Table memory_table(const Difference& d) {
  Table table{.name = "memory",
              .title = "Memory at the peak",
              .columns = {{"category", "What for"},
                          {"before_bytes", "Before", Kind::kBytes},
                          {"after_bytes", "After", Kind::kBytes},
                          {"change_bytes", "Change", Kind::kBytes}},
              .hide_if_empty = true};
  for (const compare::MemoryChange& m : d.memory) {
    table.add(
        {std::string(analyze::name_of(m.category)), m.before_bytes, m.after_bytes, m.after_bytes - m.before_bytes});
  }
  return table;
}

Table syncs_table(const Difference& d) {
  Table table{.name = "syncs",
              .title = "Synchronizing calls that changed",
              .columns = {{"reason", "Reason"},
                          {"op", "Op", Kind::kText, Align::kByKind, 40, true},
                          {"line", "Line", Kind::kText, Align::kByKind, 48, true},
                          {"calls_before", "Calls before", Kind::kNumber},
                          {"calls_after", "after", Kind::kNumber},
                          {"before_ns", "Time before", Kind::kDuration},
                          {"after_ns", "after", Kind::kDuration}},
              .hide_if_empty = true};
  for (const compare::SyncChange& s : d.syncs) {
    if (std::abs(s.calls_after - s.calls_before) < 0.01) continue;
    table.add({s.reason, text_or_none(s.op), text_or_none(s.line), s.calls_before, s.calls_after, whole(s.ns_before),
               whole(s.ns_after)});
  }
  return table;
}

Table findings_table(const Difference& d) {
  Table table{.name = "findings",
              .title = "Findings",
              .columns = {{"what", "What"}, {"id", "Id"}, {"title", "Title", Kind::kText, Align::kByKind, 100}},
              .hide_if_empty = true};
  for (const compare::FindingChange& f : d.findings) {
    table.add({f.appeared ? std::string("appeared") : std::string("disappeared"), f.id, f.title});
  }
  return table;
}

Table environment_table(const Difference& d) {
  Table table{.name = "environment",
              .title = "Environment that changed",
              .columns = {{"name", "Name"},
                          {"before", "Before", Kind::kText, Align::kByKind, 60},
                          {"after", "After", Kind::kText, Align::kByKind, 60}},
              .hide_if_empty = true};
  for (const compare::SettingChange& s : d.environment) {
    table.add({s.name, text_or_none(s.before), text_or_none(s.after)});
  }
  return table;
}

Table reasons_table(const Difference& d) {
  Table table{.name = "reasons",
              .title = "Why",
              .columns = {{"reason", "Reason"}, {"change_ns", "Change", Kind::kDuration}},
              .hide_if_empty = true};
  for (const compare::Reason& reason : d.reasons) table.add({reason.text, reason.change_ns});
  return table;
}

}  // namespace

std::string comparison_headline(const Difference& d) {
  std::string steps = fmt::format("{} a step instead of {}", advise::short_time(d.step_after_ns()),
                                  advise::short_time(d.step_before_ns()));
  if (d.batch_ratio != 1 && d.samples_before > 0) {
    steps += fmt::format(" for {:.0f} samples (batch {:.0f} and {:.0f})", d.samples_before, d.samples_before,
                         d.samples_after);
  } else if (d.batch_ratio != 1) {
    steps += fmt::format(" for as many samples (the batch is {:.3g} times as large)", d.batch_ratio);
  }
  return slower_or_faster(d.step.ratio) + range_text(d.step) + ": " + steps + certainty(d);
}

std::string comparison_title(const std::string& before, const std::string& after) {
  const auto name = [](const std::string& path) {
    return markdown_escaped(visible_text(std::filesystem::path(path).filename().string()));
  };
  return "# Comparison of " + name(before) + " with " + name(after) + "\n\n";
}

Report comparison_report(const Difference& d, size_t rows) {
  const Judgement& step = d.step;
  Report report{
      .facts = {
          {"headline", "", Kind::kText, comparison_headline(d)},
          {"outcome", "", Kind::kText, std::string(name_of(step.outcome))},
          {"method", "", Kind::kText, std::string(name_of(step.method))},
          {"runs_before", "", Kind::kNumber, d.runs_before},
          {"runs_after", "", Kind::kNumber, d.runs_after},
          {"step_before_ns", "", Kind::kDuration, d.step_before_ns()},
          {"step_after_ns", "", Kind::kDuration, d.step_after_ns()},
          {"ratio", "", Kind::kSmall, step.ratio},
          {"ratio_low", "", Kind::kSmall, known_if(step.has_range && !std::isinf(step.range.high), step.range.low)},
          {"ratio_high", "", Kind::kSmall, known_if(step.has_range && !std::isinf(step.range.high), step.range.high)},
          {"range_within_one_run", "", Kind::kTruth, int64_t{d.within_run_only}},
          {"p", "", Kind::kSmall, known_if(step.method != Method::kNone, step.p)},
          {"noise_percent", "", Kind::kPercent, known_if(step.noise >= 0, 100 * step.noise)},
          {"smallest_change_percent", "", Kind::kPercent,
           known_if(!std::isinf(step.smallest_change), 100 * step.smallest_change)},
          {"runs_needed", "", Kind::kNumber, known_if(step.runs_needed > 0, step.runs_needed)},
          {"batch_ratio", "", Kind::kSmall, d.batch_ratio},
          {"verdict_before", "Limit before", Kind::kText, text_or_none(d.verdict_before)},
          {"verdict_after", "Limit after", Kind::kText, text_or_none(d.verdict_after)}}};
  report.tables = {reasons_table(d),
                   parts_table(d),
                   figures_table(d),
                   work_table(d, rows),
                   sums_table(d.ops, "op", "Operator"),
                   sums_table(d.modules, "module", "Module"),
                   places_table(d, rows),
                   memory_table(d),
                   syncs_table(d),
                   findings_table(d),
                   environment_table(d)};
  for (const std::string& note : d.notes) report.notes.emplace_back(note);
  return report;
}

std::string comparison_text(const Difference& d, size_t rows, Form form, const TextStyle& style) {
  Report report = comparison_report(d, rows);
  if (form == Form::kJson || form == Form::kCsv) return render(report, form, style);
  for (Table& table : report.tables) {
    if (table.name != "figures") continue;
    table.columns.resize(6);
    for (auto& row : table.rows) row.resize(6);
  }
  // Reasons stand above the tables; sums by operator and module repeat in other words what `work` says.
  std::erase_if(report.tables, [](const Table& table) {
    return table.name == "reasons" || table.name == "ops" || table.name == "modules";
  });
  const bool markdown = form == Form::kMarkdown;
  std::string out = markdown ? "**" + comparison_headline(d) + "**\n" : comparison_headline(d) + "\n";
  if (!d.reasons.empty()) {
    out += "\n";
    size_t rank = 0;
    for (const compare::Reason& reason : d.reasons) {
      const std::string text = visible_text(reason.text);  // it has names of the trace
      out += fmt::format("{}. {}\n", ++rank, markdown ? markdown_escaped(text) : text);
    }
  }
  return out + "\n" + render(report, form, style);
}

}  // namespace firelane::report
