#include "bind/trace/ranks.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/trace/trace.h"
#include "import/load.h"
#include "ranks/part/map.h"
#include "ranks/part/part_file.h"
#include "ranks/reduce/gather.h"
#include "ranks/reduce/reduce.h"
#include "ranks/reduce/replay.h"
#include "report/ranks_report.h"

namespace nb = nanobind;

namespace firelane::bind_trace {

namespace {

using Paths = std::vector<std::string>;
using Answer = std::pair<std::string, std::string>;  // JSON and text of what the command prints

Answer answer_of(const Result<ranks::Reduction>& reduced, double price_per_hour, double link_gb_s) {
  const ranks::Reduction job = value_or_raise(reduced);
  const report::RanksOptions options{.price_per_hour = price_per_hour, .link_gb_s = link_gb_s};
  return {report::ranks_text(job, options, report::Form::kJson, {}),
          report::ranks_text(job, options, report::Form::kText, {})};
}

Answer ranks_of_files(const Paths& paths, bool keep_parts, double price_per_hour, double link_gb_s,
                      int64_t ranks_per_host) {
  const nb::gil_scoped_release release_gil;
  ranks::Intake intake;
  intake.ranks_per_host = ranks_per_host;
  const ranks::GatherOptions options{
      .load = [](const std::string& path,
                 unsigned threads) { return importer::load_trace(path, {.threads = threads}); },
      .keep_parts = keep_parts};
  const Result<void> gathered = ranks::gather(value_or_raise(ranks::find_rank_files(paths)), options, intake);
  if (!gathered.ok()) throw TraceError(gathered.error().message.c_str());
  return answer_of(ranks::reduce(intake), price_per_hour, link_gb_s);
}

// `name`: what the part calls its trace, where that is not the path.
nb::bytes part_of_file(const std::string& path, const std::string& name) {
  std::string bytes;
  {
    const nb::gil_scoped_release release_gil;
    const StudiedTrace trace(value_or_raise(importer::load_trace(path, {})));
    ranks::Part part = ranks::map_trace(trace);
    if (!name.empty()) part.path = name;
    bytes = ranks::encode_part(part);
  }
  return nb::bytes(bytes.data(), bytes.size());
}

Answer ranks_of_parts(const std::vector<nb::bytes>& parts, double price_per_hour, double link_gb_s,
                      int64_t ranks_per_host) {
  ranks::Intake intake;
  intake.ranks_per_host = ranks_per_host;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string_view bytes(parts[i].c_str(), parts[i].size());
    intake.add(value_or_raise(ranks::decode_part(bytes, "part " + std::to_string(i))));
  }
  return answer_of(ranks::reduce(intake), price_per_hour, link_gb_s);
}

// Operations as columns; `sync` below 0 is none. Returns when each ends, its ideal duration, and when it ends with
// those.
std::tuple<std::vector<double>, std::vector<double>, std::vector<double>> replay(
    const std::vector<uint32_t>& kind, const std::vector<int64_t>& sync, const std::vector<bool>& communicates,
    const std::vector<std::vector<uint32_t>>& after, const std::vector<double>& durations) {
  const nb::gil_scoped_release release_gil;
  std::vector<ranks::ReplayOp> ops(kind.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    ops[i] = {kind[i], sync[i] < 0 ? ranks::kNoSync : static_cast<uint32_t>(sync[i]), communicates[i], after[i]};
  }
  const std::vector<double> ideal = ranks::ideal_durations(ops, durations);
  return {ranks::replay_graph(ops, durations), ideal, ranks::replay_graph(ops, ideal)};
}

}  // namespace

void bind_ranks(nb::module_& module) {
  module.def("_ranks", &ranks_of_files, nb::arg("paths"), nb::arg("keep_parts"), nb::arg("price_per_hour"),
             nb::arg("link_gb_s"), nb::arg("ranks_per_host"));
  module.def("_rank_part", &part_of_file, nb::arg("path"), nb::arg("name") = "");
  module.def("_ranks_of_parts", &ranks_of_parts, nb::arg("parts"), nb::arg("price_per_hour"), nb::arg("link_gb_s"),
             nb::arg("ranks_per_host"));
  module.def("_replay", &replay, nb::arg("kind"), nb::arg("sync"), nb::arg("communicates"), nb::arg("after"),
             nb::arg("durations"));
}

}  // namespace firelane::bind_trace
