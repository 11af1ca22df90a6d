#include "report/gate_report.h"

#include <fmt/format.h>

#include <cmath>

#include "report/comparison.h"

namespace firelane::report {

namespace {

using compare::GateResult;
using compare::GateRow;
using compare::GateStatus;
using compare::Method;

std::string value_text(double value, compare::Unit unit) {
  switch (unit) {
    case compare::Unit::kNs: return cell_text(int64_t{std::llround(value)}, Kind::kDuration);
    case compare::Unit::kBytes: return cell_text(int64_t{std::llround(value)}, Kind::kBytes);
    case compare::Unit::kPercent: return cell_text(value, Kind::kPercent);
    case compare::Unit::kCount:
    case compare::Unit::kPerSecond: return cell_text(value, Kind::kNumber);
    case compare::Unit::kJoules: return cell_text(value, Kind::kSmall);
  }
  return "";
}

// What a row says beyond its numbers: the smallest change that could have been found, and what finds a smaller one.
std::string power_text(const GateRow& row) {
  if (row.status == GateStatus::kNotKnown) return row.detail;
  const compare::Judgement& j = row.judged;
  std::string text = row.detail;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (j.method == Method::kNone) {
    if (row.status == GateStatus::kInconclusive) add("too few runs to tell: needs 4 per side, or a baseline of 4");
    return text;
  }
  if (!std::isinf(j.smallest_change)) add(fmt::format("finds {:.1f}% or more", 100 * j.smallest_change));
  if (row.status == GateStatus::kInconclusive && j.runs_needed > 0) {
    add(fmt::format("{} runs per side would show it", j.runs_needed));
  } else if (j.runs_for_half > 0 && j.noise > 0) {
    add(fmt::format("{:.2g}% takes {} per side", 50 * j.smallest_change, j.runs_for_half));
  }
  return text;
}

Table rows_table(const GateResult& result) {
  Table table{.name = "limits",
              .title = "Limits",
              .columns = {{"figure", "Figure"},
                          {"status", "Status"},
                          {"limit", "Limit"},
                          {"before_text", "Baseline", Kind::kText, Align::kRight},
                          {"after_text", "New", Kind::kText, Align::kRight},
                          {"change_percent", "Change", Kind::kPercent},
                          {"p", "p", Kind::kSmall, Align::kByKind, 0, true},
                          {"remark", "Remark", Kind::kText, Align::kByKind, 90, true}}};
  for (const GateRow& row : result.rows) {
    const bool known = row.status != GateStatus::kNotKnown;
    const compare::Judgement& j = row.judged;
    table.add({row.figure, std::string(name_of(row.status)), row.limit,
               known ? Cell{value_text(j.before, row.unit)} : Cell{},
               known ? Cell{value_text(j.after, row.unit)} : Cell{},
               known && !std::isinf(j.ratio) ? Cell{100 * (j.ratio - 1)} : Cell{},
               j.method == Method::kNone ? Cell{} : Cell{j.p}, text_or_none(power_text(row))});
  }
  return table;
}

Report gate_report(const GateResult& result) {
  Report report{.facts = {{"status", "", Kind::kText, std::string(name_of(result.status))},
                          {"exit_code", "", Kind::kNumber, int64_t{result.exit_code()}},
                          {"headline", "", Kind::kText, gate_headline(result)},
                          {"baseline_runs", "", Kind::kNumber, static_cast<int64_t>(result.baseline_runs)},
                          {"baseline_used", "", Kind::kNumber, static_cast<int64_t>(result.baseline_used)},
                          {"new_runs", "", Kind::kNumber, result.difference.runs_after}}};
  report.tables.push_back(rows_table(result));
  Table changes{.name = "changes",
                .title = "Changes in the baseline's history",
                .columns = {{"run", "Run", Kind::kNumber},
                            {"before_ns", "Step before", Kind::kDuration},
                            {"after_ns", "after", Kind::kDuration},
                            {"p", "p", Kind::kSmall}},
                .hide_if_empty = true};
  for (const compare::ChangePoint& change : result.changes) {
    changes.add({static_cast<int64_t>(change.index + 1), int64_t{std::llround(change.before)},
                 int64_t{std::llround(change.after)}, change.p});
  }
  report.tables.push_back(std::move(changes));
  if (result.baseline_used < result.baseline_runs) {
    report.notes.emplace_back(fmt::format("the baseline changed: its last {} of {} runs are compared",
                                          result.baseline_used, result.baseline_runs));
  }
  return report;
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string say_row(const GateRow& row) {
  if (row.status == GateStatus::kNotKnown) return row.label + " is not known: " + row.detail;
  const std::string change =
      std::isinf(row.judged.ratio) ? std::string("new") : fmt::format("{:+.1f}%", 100 * (row.judged.ratio - 1));
  std::string text =
      fmt::format("{} {} ({}), limit {}", row.label, value_text(row.judged.after, row.unit), change, row.limit);
  if (!row.detail.empty()) text += ": " + row.detail;
  return text;
}

}  // namespace

std::string gate_headline(const GateResult& result) {
  std::string text(name_of(result.status));
  std::string why;
  for (const GateRow& row : result.rows) {
    const bool counts = row.status == result.status ||
                        (result.status == GateStatus::kInconclusive && row.status == GateStatus::kNotKnown);
    if (result.status != GateStatus::kHolds && counts) why += (why.empty() ? ": " : "; ") + say_row(row);
  }
  return text + why;
}

std::string gate_text(const GateResult& result, Form form, const TextStyle& style) {
  Report report = gate_report(result);
  const bool for_people = form == Form::kText || form == Form::kMarkdown;
  if (!for_people) {
    for (const Table& table : comparison_report(result.difference, 50).tables) report.tables.push_back(table);
    return render(report, form, style);
  }
  std::string out = form == Form::kMarkdown ? "**" + gate_headline(result) + "**\n\n" : gate_headline(result) + "\n\n";
  out += render(report, form, style);
  if (result.status != GateStatus::kHolds) {
    constexpr size_t kShown = 10;
    out += (form == Form::kMarkdown ? "\n## Why\n\n" : "\nWhy\n") +
           comparison_text(result.difference, kShown, form, style);
  }
  return out;
}

std::string gate_junit(const GateResult& result) {
  size_t failures = 0;
  size_t skipped = 0;
  std::string cases;
  for (const GateRow& row : result.rows) {
    cases += fmt::format("  <testcase classname=\"firelane.gate\" name=\"{}\">", xml_escaped(row.figure));
    if (row.status == GateStatus::kBroken) {
      ++failures;
      cases += fmt::format("<failure message=\"{}\"/>", xml_escaped(say_row(row)));
    } else if (row.status != GateStatus::kHolds) {
      ++skipped;
      cases += fmt::format("<skipped message=\"{}: {}\"/>", name_of(row.status), xml_escaped(say_row(row)));
    }
    cases += "</testcase>\n";
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"firelane gate\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n{}</testsuite>\n",
      result.rows.size(), failures, skipped, cases);
}

}  // namespace firelane::report
