// The passes of assemble() (model/raw.h), in the order in which they run. Private to model.
#pragma once

#include "model/model.h"
#include "model/raw.h"

namespace firelane {

// What a column of durations or sizes adds up to at most, so that a few such sums still fit int64.
inline constexpr double kMaxColumnSum = 0x1p61;

// merge.cc: one string pool and one lane table for all parts. Afterwards every id inside
// the parts speaks of the model, and details are numbered through all parts.
void merge_pools(RawTrace& raw, Model& model, unsigned threads);

// edges.cc: pairs B with E on a lane and b with e by id; the slices go into one more part.
void pair_edges(RawTrace& raw, Model& model);

// merge.cc: subtracts the start of the trace from every time; sets info.start_ns.
void rebase_times(RawTrace& raw, Model& model, unsigned threads);

// lanes.cc: drops lanes on which nothing lies, puts the rest into a fixed order, names
// them. Returns the new id of each old one.
std::vector<LaneId> order_lanes(RawTrace& raw, Model& model);

// bound.cc: no size that sums of its column would not fit int64 with.
void bound_sizes(RawTrace& raw, Model& model, unsigned threads);

// build_tables.cc: rows -> columns, sorted.
void build_host_slices(RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map, unsigned threads);
void build_device_slices(RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map, unsigned threads);
void build_other_tables(RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map, unsigned threads);

// host_role.cc: what host slices are there for, by their names.
void mark_roles(Model& model);

// window.cc: marks device work that reaches beyond the time in which devices were recorded.
void mark_window(Model& model);

// nest.cc: parents and depths; steps. link.cc: launches and ops. flows.cc: forward ops, other arrows.
void nest_slices(Model& model);
// collectives.cc: which library carries out a collective; ranges of CPU backends become rows of comm_details.
void type_collectives(Model& model);
void link_slices(Model& model);
// The producers of data_dependencies.
void link_data(Model& model);
void link_flows(const RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map);
void collect_marked_steps(Model& model);

}  // namespace firelane
