#include "serve/job.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "ranks/seen/heat.h"
#include "ranks/seen/window.h"
#include "report/described.h"
#include "report/ranks_report.h"
#include "serve/handlers.h"

namespace firelane::serve {

namespace {

using ranks::StudiedJob;

constexpr int64_t kMostRanksShown = 64;
constexpr size_t kMostLanePieces = 6000;  // of all lanes of an answer
constexpr size_t kMostPathPieces = 4000;
constexpr size_t kMostSteps = 4000;
constexpr size_t kMostGroupMembers = 200'000;
constexpr int64_t kMostCells = 512;  // of a side of the heat map
constexpr size_t kFirstRanks = 8;

ranks::AxisWindow wanted_axis(Parameters& wanted, const StudiedJob& job) {
  constexpr int64_t kFar = int64_t{1} << 60;  // sums with it still fit
  const ranks::AxisWindow whole = ranks::whole_axis(job);
  ranks::AxisWindow out{.from_ns = wanted.integer("from_ns", whole.from_ns, -kFar, kFar),
                        .to_ns = wanted.integer("to_ns", whole.to_ns, -kFar, kFar)};
  out.to_ns = std::max(out.to_ns, out.from_ns + 1);
  return out;
}

Answer job_report(const ServedJob& served, const Request& request) {
  Parameters wanted(request);
  const size_t rows = wanted_rows(wanted);
  if (!wanted.ok()) return bad_request(wanted);
  const report::RanksOptions options{.rows = 0, .price_per_hour = served.price_per_hour};
  report::Report made = report::ranks_report(served.job->result, options);
  made.title = "Ranks";
  return {.body = report::described(made, rows)};
}

void write_steps(JsonWriter& json, const StudiedJob& job) {
  json.key("steps").begin_array();
  for (uint32_t r = 0; r < job.intake.ranks.size(); ++r) {
    const ranks::PartSteps& steps = job.intake.ranks[r].part.steps;
    if (!job.result.clocks.domains[job.intake.ranks[r].domain].known || steps.size() == 0) continue;
    for (size_t s = 0; s < std::min(steps.size(), kMostSteps); ++s) {
      json.begin_array().value(steps.number[s]).value(job.on_axis(r, steps.start_ns[s]));
      json.value(job.on_axis(r, steps.end_ns[s])).end_array();
    }
    break;
  }
  json.end_array();
}

void write_groups(JsonWriter& json, const StudiedJob& job) {
  json.key("groups").begin_array();
  size_t members = 0;
  for (size_t g = 0; g < job.intake.groups.size(); ++g) {
    const ranks::JobGroup& group = job.intake.groups[g];
    if (job.matches.groups[g].rows == 0) continue;
    std::vector<int64_t> list = group.ranks;
    if (list.empty()) {
      for (const uint32_t r : group.members) list.push_back(job.intake.ranks[r].part.rank);
    }
    members += list.size();
    if (members > kMostGroupMembers) break;
    json.begin_object().field("id", g).field("kind", ranks::name_of(job.kinds[g]));
    json.field("description", group.description).field("pair", group.point_to_point);
    json.field("wait_ns", job.waits.group_wait_ns[g]).field("transfer_ns", job.waits.group_transfer_ns[g]);
    json.key("ranks").begin_array();
    for (const int64_t rank : list) json.value(rank);
    json.end_array().end_object();
  }
  json.end_array();
}

Answer layout(const ServedJob& served, const Request&) {
  const StudiedJob& job = *served.job;
  const ranks::AxisWindow whole = ranks::whole_axis(job);
  std::map<std::string, size_t> hosts;
  for (const ranks::RankRows& rank : job.intake.ranks) hosts.try_emplace(rank.part.host, hosts.size());
  std::vector<std::string> names(hosts.size());
  for (const auto& [name, index] : hosts) names[index] = name;
  JsonWriter json;
  json.begin_object().field("from_ns", whole.from_ns).field("to_ns", whole.to_ns);
  json.key("hosts").begin_array();
  for (const std::string& name : names) json.value(name);
  json.end_array().key("ranks").begin_array();
  for (size_t r = 0; r < job.intake.ranks.size(); ++r) {
    const ranks::Part& part = job.intake.ranks[r].part;
    json.begin_array().value(part.rank).value(hosts[part.host]);
    json.value(r < served.trace_of_rank.size() ? served.trace_of_rank[r] : -1).end_array();
  }
  json.end_array().key("first_ranks").begin_array();
  for (const uint32_t r : ranks::telling_ranks(job, kFirstRanks)) json.value(job.intake.ranks[r].part.rank);
  json.end_array().key("heat_values").begin_array();
  bool has_memory = false;
  for (const ranks::RankRows& rank : job.intake.ranks) {
    const std::vector<int64_t>& peaks = rank.part.steps.peak_bytes;
    has_memory = has_memory || std::any_of(peaks.begin(), peaks.end(), [](int64_t bytes) { return bytes >= 0; });
  }
  for (size_t v = 0; v < ranks::kHeatValueCount; ++v) {
    const auto value = static_cast<ranks::HeatValue>(v);
    if (value != ranks::HeatValue::kMemory || has_memory) json.value(ranks::name_of(value));
  }
  json.end_array();
  write_steps(json, job);
  write_groups(json, job);
  json.end_object();
  return json_answer(std::move(json));
}

Answer heat(const ServedJob& served, const Request& request) {
  Parameters wanted(request);
  std::vector<std::string_view> names;
  for (size_t v = 0; v < ranks::kHeatValueCount; ++v) names.push_back(ranks::name_of(static_cast<ranks::HeatValue>(v)));
  const auto value = static_cast<ranks::HeatValue>(wanted.choice("value", names));
  constexpr auto kMost = int64_t{std::numeric_limits<int32_t>::max()};
  const ranks::HeatWindow window{.first_rank = static_cast<size_t>(wanted.integer("first", 0, 0, kMost)),
                                 .end_rank = static_cast<size_t>(wanted.integer("end", kMost, 0, kMost)),
                                 .rows = static_cast<size_t>(wanted.integer("rows", 256, 1, kMostCells)),
                                 .columns = static_cast<size_t>(wanted.integer("columns", 256, 1, kMostCells))};
  if (!wanted.ok()) return bad_request(wanted);
  const ranks::Heat map = ranks::heat_map(*served.job, value, window);
  JsonWriter json;
  json.begin_object().field("value", ranks::name_of(value)).field("rank_count", map.rank_count);
  json.field("step_count", map.step_count).field("ranks_a_row", map.ranks_a_row);
  json.field("steps_a_column", map.steps_a_column);
  const std::pair<std::string_view, const std::vector<int64_t>*> lists[] = {
      {"ranks", &map.ranks}, {"steps", &map.steps}, {"cells", &map.cells}};
  for (const auto& [name, list] : lists) {
    json.key(name).begin_array();
    for (const int64_t each : *list) json.value(each);
    json.end_array();
  }
  json.end_object();
  return json_answer(std::move(json));
}

void write_collective(JsonWriter& json, const StudiedJob& job, const ranks::CollectiveSeen& seen) {
  const ranks::Instance& instance = job.matches.instances[seen.instance];
  json.field("id", int64_t{seen.instance});
  json.field("op", ranks::name_of(job.intake.signatures[instance.signature].op));
  json.field("group", int64_t{instance.group}).field("kind", ranks::name_of(job.kinds[instance.group]));
  json.field("ranks", int64_t{instance.end} - instance.begin);
  json.field("bytes", job.waits.meetings[seen.instance].most_bytes);
  json.field("start_ns", seen.start_ns).field("last_arrival_ns", seen.last_arrival_ns).field("end_ns", seen.end_ns);
  json.field("wait_ns", seen.wait_ns).field("from_rank", seen.from_rank);
}

Answer collectives(const ServedJob& served, const Request& request) {
  const StudiedJob& job = *served.job;
  Parameters wanted(request);
  const ranks::AxisWindow window = wanted_axis(wanted, job);
  const int64_t group = wanted.integer("group", -1, -1, static_cast<int64_t>(job.intake.groups.size()) - 1);
  const auto order = static_cast<ranks::CollectiveOrder>(wanted.choice("order", {"wait", "time"}));
  const auto rows = static_cast<size_t>(wanted.integer("rows", 200, 1, 5000));
  if (!wanted.ok()) return bad_request(wanted);
  const ranks::CollectiveList found = ranks::collectives_in(job, window, group, order, rows);
  JsonWriter json;
  json.begin_object().field("total", found.total).key("collectives").begin_array();
  for (const ranks::CollectiveSeen& seen : found.shown) {
    json.begin_object();
    write_collective(json, job, seen);
    json.end_object();
  }
  json.end_array().end_object();
  return json_answer(std::move(json));
}

Answer arrivals(const ServedJob& served, const Request& request) {
  const StudiedJob& job = *served.job;
  Parameters wanted(request);
  const int64_t id = wanted.integer("id", -1, -1, static_cast<int64_t>(job.matches.instances.size()) - 1);
  if (!wanted.ok()) return bad_request(wanted);
  if (id < 0 || job.replay.transfer_ns[static_cast<size_t>(id)] < 0) {
    return refusal(404, "no such collective; /api/ranks/collectives lists them");
  }
  const auto index = static_cast<uint32_t>(id);
  const ranks::Instance& instance = job.matches.instances[index];
  JsonWriter json;
  json.begin_object();
  write_collective(json, job, ranks::collective_seen(job, index));
  json.key("arrivals").begin_array();
  for (uint32_t i = instance.begin; i < instance.end; ++i) {
    const ranks::Member& m = job.matches.members[i];
    const ranks::CollectiveRow& row = job.intake.ranks[m.rank].rows[m.row];
    json.begin_array().value(job.intake.ranks[m.rank].part.rank).value(job.aligned(m.rank, row.start_ns));
    json.value(job.aligned(m.rank, row.end_ns)).value(row.start_ns - job.row_shift_ns(m.rank)).end_array();
  }
  json.end_array().end_object();
  return json_answer(std::move(json));
}

void write_lane(JsonWriter& json, const StudiedJob& job, const ranks::RankLane& lane, const ranks::AxisWindow& window) {
  const ranks::RankRows& rank = job.intake.ranks[lane.rank];
  json.begin_object().field("rank", rank.part.rank);
  json.field("trace_from_ns", job.in_trace(lane.rank, window.from_ns));
  json.field("trace_to_ns", job.in_trace(lane.rank, window.to_ns)).key("pieces").begin_array();
  for (const ranks::LanePiece& piece : lane.pieces) {
    const ranks::CollectiveRow& row = rank.rows[piece.row];
    json.begin_array().value(piece.start_ns).value(piece.moves_ns).value(piece.end_ns);
    json.value(piece.instance == ranks::kNoInstance ? int64_t{-1} : int64_t{piece.instance});
    json.value(static_cast<int64_t>(job.intake.signatures[row.signature].op));
    const bool known = row.group != UINT32_MAX;
    json.value(known ? int64_t{row.group} : int64_t{-1});
    const bool sends =
        known && job.intake.groups[row.group].point_to_point && job.intake.groups[row.group].sender == rank.part.rank;
    json.value(int64_t{sends}).end_array();
  }
  json.end_array().key("bins").begin_array();
  for (const ranks::LaneBin& bin : lane.bins) {
    json.begin_array().value(bin.wait_ns).value(bin.move_ns).end_array();
  }
  json.end_array().end_object();
}

Answer timeline(const ServedJob& served, const Request& request) {
  const StudiedJob& job = *served.job;
  Parameters wanted(request);
  const ranks::AxisWindow window = wanted_axis(wanted, job);
  const auto bins = static_cast<size_t>(wanted.integer("bins", 800, 1, 4096));
  const auto chosen = wanted.list("ranks", kMostRanksShown, std::numeric_limits<int32_t>::max());
  if (!wanted.ok()) return bad_request(wanted);
  std::vector<uint32_t> shown;
  for (uint32_t r = 0; chosen && r < job.intake.ranks.size(); ++r) {
    if (std::find(chosen->begin(), chosen->end(), job.intake.ranks[r].part.rank) != chosen->end()) shown.push_back(r);
  }
  if (!chosen) shown = ranks::telling_ranks(job, kFirstRanks);
  JsonWriter json;
  json.begin_object().field("from_ns", window.from_ns).field("to_ns", window.to_ns).key("ops").begin_array();
  for (size_t op = 0; op < ranks::kCollectiveCount; ++op)
    json.value(ranks::name_of(static_cast<ranks::Collective>(op)));
  json.end_array().key("lanes").begin_array();
  const ranks::LaneOptions options{.most_pieces = kMostLanePieces / std::max<size_t>(1, shown.size()), .bins = bins};
  for (const uint32_t r : shown) write_lane(json, job, ranks::rank_lane(job, r, window, options), window);
  json.end_array().key("path").begin_array();
  const int64_t pixel_ns = (window.to_ns - window.from_ns) / static_cast<int64_t>(bins);
  const std::vector<ranks::PathPiece> path = ranks::path_in(job, window, pixel_ns);
  for (size_t i = 0; i < std::min(path.size(), kMostPathPieces); ++i) {
    json.begin_array().value(job.intake.ranks[path[i].rank].part.rank).value(path[i].start_ns).value(path[i].end_ns);
    json.value(static_cast<int64_t>(path[i].kind)).end_array();
  }
  json.end_array().end_object();
  return json_answer(std::move(json));
}

struct JobRoute {
  std::string_view name;
  Answer (*handle)(const ServedJob& served, const Request& request);
};

constexpr std::array kJobRoutes = {
    JobRoute{"report", job_report}, JobRoute{"layout", layout},     JobRoute{"heat", heat},
    JobRoute{"timeline", timeline}, JobRoute{"arrivals", arrivals}, JobRoute{"collectives", collectives},
};

}  // namespace

Answer about_job(const ServedJob& served, const Request& request) {
  for (const JobRoute& route : kJobRoutes) {
    if (route.name == request.path[2]) return route.handle(served, request);
  }
  return refusal(404, "no such request; docs/viewer-protocol.md lists them");
}

}  // namespace firelane::serve
