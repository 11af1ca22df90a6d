#include "cli/rank_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "cli/open.h"
#include "cli/rank_files.h"
#include "export/chrome.h"
#include "export/gzip_sink.h"
#include "export/perfetto.h"
#include "model/collectives.h"
#include "ranks/part/map.h"
#include "ranks/seen/window.h"

namespace firelane::cli {

namespace {

constexpr size_t kUsualRanks = 8;

using Arrows = std::vector<std::vector<exporter::ArrowEnd>>;  // by chosen rank, the slice's row being that of the part

// From the last to arrive at a collective, or from a sender, to the others: they end when it arrives.
Arrows find_arrows(const ranks::StudiedJob& job, const std::vector<uint32_t>& chosen) {
  std::map<uint32_t, size_t> place;
  for (size_t i = 0; i < chosen.size(); ++i) place[chosen[i]] = i;
  Arrows out(chosen.size());
  uint64_t id = 0;
  for (const uint32_t index : job.replay.order) {
    const ranks::Instance& instance = job.matches.instances[index];
    const int64_t from_rank = ranks::collective_seen(job, index).from_rank;
    const ranks::Member* from = nullptr;
    for (uint32_t i = instance.begin; i < instance.end; ++i) {
      const ranks::Member& m = job.matches.members[i];
      if (job.intake.ranks[m.rank].part.rank == from_rank && place.contains(m.rank)) from = &m;
    }
    if (from == nullptr) continue;
    for (uint32_t i = instance.begin; i < instance.end; ++i) {
      const ranks::Member& to = job.matches.members[i];
      if (&to == from || !place.contains(to.rank)) continue;
      const ranks::CollectiveRow& row = job.intake.ranks[to.rank].rows[to.row];
      const int64_t shift = job.row_shift_ns(to.rank);
      const int64_t arrived =
          job.on_axis(from->rank, job.intake.ranks[from->rank].rows[from->row].start_ns - job.row_shift_ns(from->rank));
      out[place[from->rank]].push_back({.slice = {.row = from->row}, .id = ++id, .starts = true});
      out[place[to.rank]].push_back(
          {.slice = {.row = to.row},
           .id = id,
           .starts = false,
           .time_ns = std::clamp(job.in_trace(to.rank, arrived) + 1, row.start_ns - shift, row.end_ns - shift)});
    }
  }
  return out;
}

Result<std::vector<uint32_t>> choose(const ranks::StudiedJob& job, const std::vector<int64_t>& wanted,
                                     const std::vector<std::string>& traces) {
  std::vector<uint32_t> out;
  for (const int64_t rank : wanted) {
    const auto at = std::find_if(job.intake.ranks.begin(), job.intake.ranks.end(),
                                 [&](const ranks::RankRows& each) { return each.part.rank == rank; });
    if (at == job.intake.ranks.end()) return Error{fmt::format("no trace of rank {} is in this folder", rank)};
    out.push_back(static_cast<uint32_t>(at - job.intake.ranks.begin()));
  }
  if (wanted.empty()) out = ranks::telling_ranks(job, kUsualRanks);
  if (out.size() > static_cast<size_t>(exporter::kMostPlaces)) {
    return Error{fmt::format("{} ranks are too many for one file: name at most {} with --ranks", out.size(),
                             exporter::kMostPlaces)};
  }
  for (const uint32_t r : out) {
    if (traces[r].empty()) {
      return Error{fmt::format("{}: the trace of rank {} is not here, only its part; export where the traces are",
                               job.intake.ranks[r].part.path, job.intake.ranks[r].part.rank)};
    }
    if (!job.result.clocks.domains[job.intake.ranks[r].domain].known) {
      return Error{fmt::format(
          "rank {} shares no matched collective with the others: its clock is not known; leave it out with --ranks",
          job.intake.ranks[r].part.rank)};
    }
  }
  return out;
}

Result<void> write_ranks(const ranks::StudiedJob& job, const std::vector<uint32_t>& chosen,
                         const std::vector<std::string>& traces, const std::string& format, exporter::ByteSink& sink) {
  Arrows arrows = find_arrows(job, chosen);
  int64_t zero = INT64_MAX;
  for (const uint32_t r : chosen) zero = std::min(zero, job.on_axis(r, 0));
  const bool chrome = format == "chrome";
  if (chrome) exporter::begin_chrome(sink);
  for (size_t i = 0; i < chosen.size() && !sink.failed(); ++i) {
    const uint32_t r = chosen[i];
    FL_TRY(const auto trace, open_trace(traces[r]));
    const std::vector<SliceRef> slices = ranks::collective_slices(*trace);
    if (slices.size() != job.intake.ranks[r].rows.size()) {
      return Error{traces[r] + ": is not the trace that its part was made from; remove " + traces[r] + ".part"};
    }
    exporter::ExportPlace place{.number = static_cast<int64_t>(i),
                                .name = fmt::format("rank {}", job.intake.ranks[r].part.rank),
                                .time = [&job, r, zero](int64_t ns) { return job.on_axis(r, ns) - zero; },
                                .arrows = std::move(arrows[i])};
    for (exporter::ArrowEnd& end : place.arrows) end.slice = slices[end.slice.row];
    if (chrome) {
      FL_TRY_VOID(exporter::add_to_chrome(trace->model(), place, sink));
    } else {
      exporter::export_perfetto(trace->model(), sink, place);
    }
  }
  if (chrome) exporter::end_chrome(sink);
  return {};
}

}  // namespace

Result<std::vector<int64_t>> parse_ranks(const std::string& text) {
  std::vector<int64_t> out;
  const Error wrong{"--ranks: give numbers and ranges of them, as in 0,3,8-11"};
  constexpr int64_t kMost = 1'000'000;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = std::string_view(text).substr(at, end - at);
    const size_t dash = part.find('-');
    int64_t first = 0;
    int64_t last = 0;
    const auto read = [](std::string_view digits, int64_t& number) {
      const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
      return parsed.ec == std::errc{} && parsed.ptr == digits.data() + digits.size() && number >= 0 && number < kMost;
    };
    if (!read(part.substr(0, dash), first)) return wrong;
    last = first;
    if (dash != std::string_view::npos && !read(part.substr(dash + 1), last)) return wrong;
    if (last < first || last - first > exporter::kMostPlaces) return wrong;
    for (int64_t rank = first; rank <= last; ++rank) out.push_back(rank);
    at = end + 1;
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Result<void> export_ranks(const std::string& folder, const std::vector<int64_t>& wanted,
                          const exporter::ExportOptions& what, exporter::ByteSink& sink) {
  FL_TRY(const auto job, open_job({folder}, {.use_parts = true}));
  const std::vector<std::string> traces = traces_of_ranks(*job, {folder});
  FL_TRY(const std::vector<uint32_t> chosen, choose(*job, wanted, traces));
  if (wanted.empty() && chosen.size() < job->intake.ranks.size()) {
    std::vector<int64_t> numbers;
    for (const uint32_t r : chosen) numbers.push_back(job->intake.ranks[r].part.rank);
    fmt::print(stderr, "firelane: ranks {} of {}; --ranks chooses others\n", short_rank_list(numbers),
               job->intake.ranks.size());
  }
  if (!what.gzip) return write_ranks(*job, chosen, traces, what.format, sink);
  exporter::GzipSink gzip(sink);
  FL_TRY_VOID(write_ranks(*job, chosen, traces, what.format, gzip));
  gzip.finish();
  return {};
}

}  // namespace firelane::cli
