#include <algorithm>

#include "analyze/device/device_class.h"
#include "analyze/device/device_work.h"
#include "analyze/ops/op_inputs.h"
#include "model/collectives.h"
#include "ranks/part/map_pieces.h"

namespace firelane::ranks {

namespace {

// c10d's own range around the call ("nccl:all_reduce", "gloo:all_reduce") on the way from `row` outwards.
Row c10d_range(const Model& model, Row row) {
  for (int depth = 0; row != kNoRow && depth < 8; row = model.host_slices.parent[row], ++depth) {
    const std::string_view name = model.text(model.host_slices.name[row]);
    if (firelane::collective_named(name).backend != CommBackend::kUnknown || name.starts_with("c10d::")) return row;
  }
  return kNoRow;
}

// torch calls the all_to_all kernel SendRecv: what c10d says comes before what the kernel is called.
Collective kind_by_names(const Model& model, std::string_view kernel, Row range) {
  if (range != kNoRow) {
    const Collective named = collective_named(model.text(model.host_slices.name[range]));
    if (named != Collective::kUnknown) return named;
  }
  return collective_named(kernel);
}

// Elements of the first input of an op: what older traces say of a collective's size.
int64_t first_elements(const Model& model, Row op, std::string& dtype) {
  if (op == kNoRow) return -1;
  const HostKind kind = model.host_slices.kind[op];
  if (kind != HostKind::kOp && kind != HostKind::kAnnotation) return -1;
  const Row detail = model.op_detail(op);
  if (detail == kNoRow || model.op_details.input_dims[detail] == kNoString) return -1;
  const auto dims = analyze::parse_input_dims(model.text(model.op_details.input_dims[detail]));
  if (dims.empty() || dims[0].empty()) return -1;
  int64_t elements = 1;
  for (const int64_t size : dims[0]) {
    if (size <= 0 || elements > (int64_t{1} << 40) / size) return -1;
    elements *= size;
  }
  const auto types = analyze::parse_input_strings(model.text(model.op_details.input_types[detail]));
  if (!types.empty()) dtype = types[0];
  return elements;
}

std::vector<FoundCollective> on_devices(const Model& model) {
  std::vector<FoundCollective> out;
  const DeviceSlices& slices = model.device_slices;
  analyze::DeviceClasses classes(model);
  for (Row row = 0; row < slices.size(); ++row) {
    if (!is_device_work(slices.kind[row]) || classes.of(row) != analyze::DeviceClass::kCommunication) continue;
    if (!analyze::is_counted(model, row)) continue;
    FoundCollective found{.start_ns = slices.start_ns[row],
                          .end_ns = slices.end_ns(row),
                          .stream = slices.stream[row] == kNoNumber ? 0 : slices.stream[row],
                          .row = row,
                          .comm = slices.comm[row],
                          .op = slices.op[row]};
    const Row launch = slices.launch[row];
    const Row range = c10d_range(model, found.op != kNoRow ? found.op : launch);
    if (found.comm != kNoRow) {
      found.kind = collective_named(model.text(model.comm_details.collective[found.comm]));
      found.source = Source::kKernel;
    }
    if (found.kind == Collective::kUnknown) found.kind = kind_by_names(model, model.text(slices.name[row]), range);
    if (found.op == kNoRow) found.op = range != kNoRow ? range : launch;
    if (range != kNoRow && found.comm == kNoRow) found.op = range;
    out.push_back(found);
  }
  return out;
}

// For a gloo range, the trace only has the name.
bool has_details(const Model& model, Row comm) {
  if (comm == kNoRow) return false;
  const CommDetails& comms = model.comm_details;
  return comms.group_name[comm] != kNoString || comms.dtype[comm] != kNoString || comms.in_elements[comm] != kNoNumber;
}

// A CPU backend works in threads of its own, in ranges that c10d names; one that ends in another thread than it began
// in has no end, and is cut where the next one on its lane begins.
std::vector<FoundCollective> on_host(const Model& model) {
  std::vector<FoundCollective> out;
  const HostSlices& slices = model.host_slices;
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    for (Row row = model.lanes.host_begin[lane]; row < model.lanes.host_end[lane]; ++row) {
      if (!model.is_host_collective(row)) continue;
      FoundCollective found{.start_ns = slices.start_ns[row],
                            .end_ns = slices.end_ns(row),
                            .stream = static_cast<int64_t>(lane),
                            .row = row,
                            .op = row,
                            .kind = collective_named(model.text(slices.name[row]))};
      for (Row around = row; around != kNoRow && found.comm == kNoRow; around = slices.parent[around]) {
        const HostKind kind = slices.kind[around];
        if (kind != HostKind::kOp && kind != HostKind::kAnnotation) continue;
        const Row detail = model.op_detail(around);
        if (detail != kNoRow && has_details(model, model.op_details.comm[detail]))
          found.comm = model.op_details.comm[detail];
      }
      if (found.comm != kNoRow) found.source = Source::kOp;
      out.push_back(found);
    }
  }
  return out;
}

int64_t index_of(std::vector<std::string>& names, const std::string& name) {
  if (name.empty()) return -1;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return found - names.begin();
  names.push_back(name);
  return static_cast<int64_t>(names.size()) - 1;
}

int64_t or_none(int64_t number) { return number == kNoNumber ? -1 : number; }

// For a send or receive, `Rank` is the index of the other side in the group.
int64_t peer_of(const Model& model, const GroupTable& groups, int64_t group, Collective kind, Row comm, int64_t own) {
  const CommDetails& comms = model.comm_details;
  const int64_t named = kind == Collective::kSend   ? comms.destination_rank[comm]
                        : kind == Collective::kRecv ? comms.source_rank[comm]
                                                    : kNoNumber;
  if (named != kNoNumber && named >= 0 && named != own) return named;
  if (kind != Collective::kSend && kind != Collective::kRecv) return -1;
  if (comms.rank[comm] == kNoNumber) return -1;
  const int64_t peer = groups.global_rank(group, comms.rank[comm]);
  return peer == own ? -1 : peer;
}

}  // namespace

std::vector<FoundCollective> find_collectives(const Model& model, bool on_device) {
  std::vector<FoundCollective> out = on_device ? on_devices(model) : on_host(model);
  std::stable_sort(out.begin(), out.end(), [](const FoundCollective& a, const FoundCollective& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns < b.end_ns;
  });
  return out;
}

void map_collectives(const Model& model, const std::vector<FoundCollective>& found, Part& part) {
  GroupTable groups(model, part);
  const CommDetails& comms = model.comm_details;
  PartCollectives& out = part.collectives;
  for (const FoundCollective& each : found) {
    const Row comm = each.comm;
    const int64_t group = comm == kNoRow ? -1 : groups.group_of(comm);
    std::string dtype(comm == kNoRow ? "" : model.text(comms.dtype[comm]));
    int64_t in_elements = comm == kNoRow ? -1 : or_none(comms.in_elements[comm]);
    int64_t out_elements = comm == kNoRow ? -1 : or_none(comms.out_elements[comm]);
    if (comm == kNoRow) in_elements = out_elements = first_elements(model, each.op, dtype);
    out.group.push_back(group);
    out.op.push_back(static_cast<int64_t>(each.kind));
    out.dtype.push_back(index_of(part.dtypes, dtype));
    out.sequence.push_back(comm == kNoRow ? -1 : std::max<int64_t>(-1, or_none(comms.sequence[comm])));
    out.in_elements.push_back(in_elements);
    out.out_elements.push_back(out_elements);
    out.peer.push_back(comm == kNoRow ? -1 : peer_of(model, groups, group, each.kind, comm, part.rank));
    out.stream.push_back(each.stream);
    out.source.push_back(static_cast<int64_t>(each.source));
    out.asked_ns.push_back(each.op == kNoRow ? -1 : model.host_slices.start_ns[each.op]);
    out.start_ns.push_back(each.start_ns);
    out.end_ns.push_back(each.end_ns);
  }
}

}  // namespace firelane::ranks
