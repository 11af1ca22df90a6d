// Gives collectives their backend, and those of CPU backends (gloo, MPI, UCC) their row of comm_details.
//
// NCCL's process group tells torch what a collective is asked to do (record_param_comms), and opens a range of its own
// ("nccl:all_reduce") inside of that op. Gloo's opens only the range, in the thread that does the work: the name is all
// that a trace has. From here on a collective is a row of comm_details, and no analysis looks at names.
#include "model/collectives.h"

#include <iterator>
#include <string>
#include <vector>

#include "model/assemble.h"

namespace firelane {

namespace {

struct Known {
  CommBackend backend = CommBackend::kUnknown;
  StringId collective = kNoString;
};

// By StringId; empty when no name is that of a collective's range.
std::vector<Known> known_names(Model& model) {
  std::vector<Known> known;
  const auto count = static_cast<uint32_t>(model.strings.size());
  for (uint32_t id = 0; id < count; ++id) {
    const CollectiveName name = collective_named(model.text(static_cast<StringId>(id)));
    if (name.backend == CommBackend::kUnknown) continue;
    known.resize(count);
    // A copy: interning may move what the view points to.
    known[id] = {name.backend, model.strings.intern(std::string(name.collective))};
  }
  return known;
}

// The row of the op around the range that torch gave details of.
Row details_around(const Model& model, Row slice) {
  for (Row row = slice; row != kNoRow; row = model.host_slices.parent[row]) {
    const HostKind kind = model.host_slices.kind[row];
    if (kind != HostKind::kOp && kind != HostKind::kAnnotation) continue;
    const Row detail = model.op_detail(row);
    if (detail != kNoRow && model.op_details.comm[detail] != kNoRow) return model.op_details.comm[detail];
    if (kind == HostKind::kOp) break;
  }
  return kNoRow;
}

}  // namespace

CollectiveName collective_named(std::string_view range_name) {
  const size_t colon = range_name.find(':');
  if (colon == std::string_view::npos || colon < 3 || colon > 4 || colon + 1 == range_name.size()) return {};
  if (range_name[colon + 1] == ':') return {};  // ucc::...: a C++ name
  const std::string_view backend = range_name.substr(0, colon);
  for (size_t i = 1; i < std::size(kCommBackendWords); ++i) {
    if (backend == kCommBackendWords[i]) return {static_cast<CommBackend>(i), range_name.substr(colon + 1)};
  }
  return {};
}

bool Model::is_host_collective(Row host_row) const {
  const HostKind kind = host_slices.kind[host_row];
  if (kind != HostKind::kOp && kind != HostKind::kAnnotation) return false;
  const Row detail = op_detail(host_row);
  if (detail == kNoRow || op_details.comm[detail] == kNoRow) return false;
  return runs_on_host(comm_details.backend[op_details.comm[detail]]);
}

void type_collectives(Model& model) {
  const std::vector<Known> known = known_names(model);
  if (known.empty()) return;
  const HostSlices& host = model.host_slices;
  CommDetails& comms = model.comm_details;
  for (Row row = 0; row < host.size(); ++row) {
    const auto name = static_cast<uint32_t>(host.name[row]);
    if (name >= known.size() || known[name].backend == CommBackend::kUnknown) continue;
    if (host.kind[row] != HostKind::kOp && host.kind[row] != HostKind::kAnnotation) continue;
    const Row detail = model.op_detail(row);
    if (detail == kNoRow) continue;
    const CommBackend backend = known[name].backend;
    if (const Row details = details_around(model, row); details != kNoRow) {
      comms.backend[details] = backend;
      continue;
    }
    if (!runs_on_host(backend)) continue;
    const auto added = static_cast<Row>(comms.size());
    comms.resize(added + 1);
    comms.collective[added] = known[name].collective;
    comms.backend[added] = backend;
    model.op_details.comm[detail] = added;
  }
}

CommState comm_state_named(std::string_view state) {
  for (size_t i = 1; i < std::size(kCommStateWords); ++i) {
    if (state == kCommStateWords[i]) return static_cast<CommState>(i);
  }
  return CommState::kUnknown;
}

std::string short_rank_list(const std::vector<int64_t>& ranks) {
  std::string out;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    out += (out.empty() ? "" : ",") + std::to_string(ranks[i]);
    if (last > i) out += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return out;
}

}  // namespace firelane
