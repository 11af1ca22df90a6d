#include "report/hangs_report.h"

#include <fmt/format.h>

namespace firelane::report {

namespace {

std::string collective_text(const flight::CollectiveId& in) {
  const std::string& group = in.description.empty() ? in.group : in.description;
  std::string out = in.collective;
  if (in.sequence != kNoNumber) out += fmt::format(" #{}", in.sequence);
  return group.empty() ? out : out + " of " + group;
}

std::string counted_ranks(size_t count) { return count == 1 ? "1 other rank" : fmt::format("{} other ranks", count); }

std::string at_place(const std::string& place) { return place.empty() ? "" : ", called at " + place; }

Table culprits_table(const flight::HangReport& found) {
  Table table{.name = "culprits",
              .title = "Ranks that hold up others and wait for no one",
              .columns = {{"rank", "Rank", Kind::kNumber},
                          {"blocked_count", "Holds up", Kind::kNumber},
                          {"blocked_ranks", "Ranks", Kind::kText, Align::kByKind, 32},
                          {"missing", "Has not called"},
                          {"place", "Called by the others at", Kind::kText, Align::kByKind, 48, true},
                          {"last", "Called last", Kind::kText, Align::kByKind, 64, true},
                          {"has_dump", "Dump", Kind::kTruth}},
              .hide_if_empty = true};
  for (const flight::Culprit& each : found.culprits) {
    table.add({each.rank, static_cast<int64_t>(each.blocked.size()), rank_ranges(each.blocked),
               collective_text(each.missing), text_or_none(each.place), text_or_none(each.last),
               int64_t{each.has_dump}});
  }
  return table;
}

Table circles_table(const flight::HangReport& found) {
  Table table{.name = "circles",
              .title = "Ranks that wait for each other: they call collectives of several groups in different orders",
              .columns = {{"ranks", "Ranks"}},
              .hide_if_empty = true};
  for (const std::vector<int64_t>& circle : found.circles) table.add({rank_ranges(circle)});
  return table;
}

Table waits_table(const flight::HangReport& found) {
  Table table{.name = "waits",
              .title = "Collectives that some ranks wait in and others have not called",
              .columns = {{"collective", "Collective"},
                          {"waiting_ranks", "Waiting", Kind::kText, Align::kByKind, 32},
                          {"missing_ranks", "Not called by", Kind::kText, Align::kByKind, 32, true},
                          {"unknown_ranks", "No dump of", Kind::kText, Align::kByKind, 32, true},
                          {"waiting_ns", "For", Kind::kDuration},
                          {"place", "Called at", Kind::kText, Align::kByKind, 48, true}},
              .hide_if_empty = true};
  for (const flight::Wait& wait : found.waits) {
    table.add({collective_text(wait.in), rank_ranges(wait.waiting), text_or_none(rank_ranges(wait.missing)),
               text_or_none(rank_ranges(wait.unknown)), wait.waiting_ns, text_or_none(wait.place)});
  }
  return table;
}

Table stuck_table(const flight::HangReport& found) {
  Table table{.name = "stuck",
              .title = "Collectives that all ranks have called but that have not ended",
              .columns = {{"collective", "Collective"},
                          {"open_ranks", "Not ended on", Kind::kText, Align::kByKind, 32},
                          {"completed_ranks", "Ended on", Kind::kText, Align::kByKind, 32, true},
                          {"waiting_ns", "For", Kind::kDuration},
                          {"place", "Called at", Kind::kText, Align::kByKind, 48, true}},
              .hide_if_empty = true};
  for (const flight::Stuck& stuck : found.stuck) {
    table.add({collective_text(stuck.in), rank_ranges(stuck.open), text_or_none(rank_ranges(stuck.completed)),
               stuck.waiting_ns, text_or_none(stuck.place)});
  }
  return table;
}

Table mismatches_table(const flight::HangReport& found) {
  Table table{.name = "mismatches",
              .title = "Collectives that ranks call in different ways",
              .columns = {{"collective", "Collective"},
                          {"differs", "Differs in"},
                          {"ranks", "Ranks", Kind::kText, Align::kByKind, 32},
                          {"value", "Have", Kind::kText, Align::kByKind, 64}},
              .hide_if_empty = true};
  for (const flight::Mismatch& each : found.mismatches) {
    for (const flight::Mismatch::Variant& variant : each.variants) {
      table.add({collective_text(each.in), std::string(flight::name_of(each.kind)), rank_ranges(variant.ranks),
                 variant.text});
    }
  }
  return table;
}

}  // namespace

std::string rank_ranges(const std::vector<int64_t>& ranks) {
  std::string out;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (!out.empty()) out += ", ";
    out += std::to_string(ranks[i]);
    if (end - i > 1) out += (end - i == 2 ? ", " : "-") + std::to_string(ranks[end - 1]);
    i = end;
  }
  return out;
}

std::string hangs_headline(const flight::HangReport& found) {
  const bool has_operations = !found.mismatches.empty() && found.mismatches[0].kind == flight::MismatchKind::kOperation;
  if (!found.culprits.empty() && found.culprits[0].has_dump) {
    const flight::Culprit& first = found.culprits[0];
    return fmt::format("rank {} holds up {}: it has not called {}{}", first.rank, counted_ranks(first.blocked.size()),
                       collective_text(first.missing), at_place(first.place));
  }
  if (!found.circles.empty())
    return fmt::format("ranks {} wait for each other: they call collectives of several groups in different orders",
                       rank_ranges(found.circles[0]));
  if (has_operations)
    return fmt::format("ranks call different operations as {}", collective_text(found.mismatches[0].in));
  if (!found.culprits.empty())
    return fmt::format("ranks wait in {} for {}, of which there is no dump", collective_text(found.culprits[0].missing),
                       rank_ranges(found.waits[0].unknown));
  if (!found.stuck.empty())
    return fmt::format("all ranks have called {}, but it has not ended on {}", collective_text(found.stuck[0].in),
                       rank_ranges(found.stuck[0].open));
  if (!found.mismatches.empty())
    return fmt::format("no rank waits, but ranks call {} with different {}", collective_text(found.mismatches[0].in),
                       flight::name_of(found.mismatches[0].kind));
  return "no rank waits: all collectives in the dumps have ended";
}

Report hangs_report(const flight::HangReport& found) {
  Report report{.title = "Hangs",
                .facts = {{"answer", "Answer", Kind::kText, hangs_headline(found)},
                          {"hangs", "", Kind::kTruth, int64_t{found.hangs()}},
                          {"dump_count", "Dumps", Kind::kNumber, found.dumps},
                          {"world_size", "World size", Kind::kNumber, cell_unless(found.world_size, kNoNumber)},
                          {"absent_ranks", "No dump of", Kind::kText, text_or_none(rank_ranges(found.absent_ranks))},
                          {"group_count", "Process groups", Kind::kNumber, found.groups},
                          {"entry_count", "Entries", Kind::kNumber, found.entries},
                          {"matched_count", "Collectives on several ranks", Kind::kNumber, found.matched}}};
  report.tables = {culprits_table(found), circles_table(found), waits_table(found), stuck_table(found),
                   mismatches_table(found)};
  if (!found.absent_ranks.empty())
    report.notes.emplace_back("nothing is known about ranks without a dump: what they wait for, or whether they run");
  return report;
}

}  // namespace firelane::report
