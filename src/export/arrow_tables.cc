#include "export/arrow_tables.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <utility>
#include <vector>

#include "export/arrow_builder.h"

namespace firelane {

namespace {

std::shared_ptr<const ArrowTexts> words(std::initializer_list<std::string_view> list) {
  auto texts = std::make_shared<ArrowTexts>();
  for (const std::string_view word : list) texts->add(word);
  return texts;
}

// The words of an enum that name_of() knows, in order.
template <typename Kind>
std::shared_ptr<const ArrowTexts> kind_words(Kind last) {
  auto texts = std::make_shared<ArrowTexts>();
  for (size_t i = 0; i <= static_cast<size_t>(last); ++i) texts->add(name_of(static_cast<Kind>(i)));
  return texts;
}

// One table of the model: the builder plus the pool's dictionary.
struct Maker {
  const Model& model;
  std::shared_ptr<const ArrowTexts> strings;
  ArrowTableBuilder table;

  template <typename T>
  void view(std::string_view name, const std::vector<T>& values, Absent absent = Absent::kNever) {
    table.view(name, values, absent);
  }
  void strings_of(std::string_view name, const std::vector<StringId>& values, Absent absent = Absent::kNull) {
    table.view_words(name, values, strings, absent);
  }
  // An id that is a number, or in odd traces a text: two columns, one of them null.
  void ids(const std::string& name, const std::vector<TraceId>& values) {
    std::vector<int64_t> numbers;
    std::vector<StringId> texts;
    for (const TraceId& id : values) {
      numbers.push_back(id.text == kNoString ? id.number : kNoNumber);
      texts.push_back(id.text);
    }
    table.own(name, std::move(numbers), Absent::kNull);
    table.own_words(name + "_text", std::move(texts), strings, Absent::kNull);
  }
  void occupancy_limits(const std::vector<OccupancyLimit>& values) {
    std::vector<int8_t> known;
    for (const OccupancyLimit limit : values) known.push_back(static_cast<int8_t>(static_cast<int>(limit) - 1));
    table.own_words("occupancy_limit", std::move(known),
                    words({"none", "warps", "blocks", "registers", "shared memory", "grid"}), Absent::kNull);
  }
  void ends(const std::string& name, const std::vector<SliceRef>& values) {
    std::vector<Row> rows;
    std::vector<int8_t> sides;
    for (const SliceRef& ref : values) {
      rows.push_back(ref.row);
      sides.push_back(ref.row == kNoRow ? int8_t{-1} : static_cast<int8_t>(ref.on_device));
    }
    table.own_words(name + "_table", std::move(sides), words({"host_slices", "device_slices"}), Absent::kNull);
    table.own(name + "_slice", std::move(rows), Absent::kNull);
  }
};

void fill_lanes(Maker& m, const Lanes& t) {
  m.table.view_words("kind", t.kind, kind_words(LaneKind::kOther));
  m.ids("pid", t.pid);
  m.ids("tid", t.tid);
  m.strings_of("process_name", t.process_name);
  m.strings_of("process_labels", t.process_labels);
  m.strings_of("name", t.name);
  m.view("process_sort_index", t.process_sort_index, Absent::kNull);
  m.view("sort_index", t.sort_index, Absent::kNull);
  m.view("host_begin", t.host_begin);
  m.view("host_end", t.host_end);
  m.view("device_begin", t.device_begin);
  m.view("device_end", t.device_end);
}

void fill_host_slices(Maker& m, const HostSlices& t) {
  m.view("lane", t.lane);
  m.view("start_ns", t.start_ns);
  m.view("duration_ns", t.duration_ns);
  m.strings_of("name", t.name, Absent::kNever);
  m.strings_of("category", t.category);
  m.table.view_words("kind", t.kind, kind_words(HostKind::kOther));
  m.view("parent", t.parent, Absent::kNull);
  m.view("depth", t.depth);
  m.view("detail", t.detail, Absent::kNull);
}

void fill_op_details(Maker& m, const OpDetails& t) {
  m.view("slice", t.slice);
  m.view("external_id", t.external_id, Absent::kNull);
  m.view("sequence_number", t.sequence_number, Absent::kNull);
  m.view("forward_thread", t.forward_thread, Absent::kNull);
  m.strings_of("input_dims", t.input_dims);
  m.strings_of("input_types", t.input_types);
  m.strings_of("input_strides", t.input_strides);
  m.strings_of("concrete_inputs", t.concrete_inputs);
  m.strings_of("stack", t.stack);
  m.strings_of("module_hierarchy", t.module_hierarchy);
  m.strings_of("overload", t.overload);
  m.view("flops", t.flops, Absent::kNull);
  m.view("forward", t.forward, Absent::kNull);
  m.view("comm", t.comm, Absent::kNull);
}

void fill_call_details(Maker& m, const CallDetails& t) {
  m.view("slice", t.slice);
  m.view("correlation", t.correlation, Absent::kNull);
  m.view("external_id", t.external_id, Absent::kNull);
  m.view("op", t.op, Absent::kNull);
}

void fill_device_slices(Maker& m, const DeviceSlices& t) {
  m.view("lane", t.lane);
  m.view("start_ns", t.start_ns);
  m.view("duration_ns", t.duration_ns);
  m.strings_of("name", t.name, Absent::kNever);
  m.strings_of("category", t.category);
  m.table.view_words("kind", t.kind, kind_words(DeviceKind::kOther));
  m.view("correlation", t.correlation, Absent::kNull);
  m.view("external_id", t.external_id, Absent::kNull);
  m.view("launch", t.launch, Absent::kNull);
  m.view("op", t.op, Absent::kNull);
  m.view("detail", t.detail, Absent::kNull);
  m.view("comm", t.comm, Absent::kNull);
  m.view("device", t.device, Absent::kNull);
  m.view("stream", t.stream, Absent::kNull);
  m.strings_of("window", t.window);
}

void fill_kernel_details(Maker& m, const KernelDetails& t) {
  m.view("slice", t.slice);
  m.view("grid_x", t.grid_x, Absent::kNull);
  m.view("grid_y", t.grid_y, Absent::kNull);
  m.view("grid_z", t.grid_z, Absent::kNull);
  m.view("block_x", t.block_x, Absent::kNull);
  m.view("block_y", t.block_y, Absent::kNull);
  m.view("block_z", t.block_z, Absent::kNull);
  m.view("registers", t.registers, Absent::kNull);
  m.view("shared_memory_bytes", t.shared_memory_bytes, Absent::kNull);
  m.view("blocks_per_sm", t.blocks_per_sm, Absent::kNull);
  m.view("warps_per_sm", t.warps_per_sm, Absent::kNull);
  m.view("occupancy_percent", t.occupancy_percent, Absent::kNull);
  m.occupancy_limits(t.occupancy_limit);
  m.view("context", t.context, Absent::kNull);
  m.view("graph_id", t.graph_id, Absent::kNull);
  m.view("graph_node_id", t.graph_node_id, Absent::kNull);
}

void fill_copy_details(Maker& m, const CopyDetails& t) {
  m.view("slice", t.slice);
  m.view("bytes", t.bytes, Absent::kNull);
  m.view("bandwidth_gb_s", t.bandwidth_gb_s, Absent::kNull);
}

void fill_sync_details(Maker& m, const SyncDetails& t) {
  m.view("slice", t.slice);
  m.view("wait_on_stream", t.wait_on_stream, Absent::kNull);
  m.view("wait_on_correlation", t.wait_on_correlation, Absent::kNull);
  m.view("wait_on_event", t.wait_on_event, Absent::kNull);
}

void fill_comm_details(Maker& m, const CommDetails& t) {
  m.strings_of("collective", t.collective);
  m.strings_of("dtype", t.dtype);
  m.view("in_elements", t.in_elements, Absent::kNull);
  m.view("out_elements", t.out_elements, Absent::kNull);
  m.view("group_size", t.group_size, Absent::kNull);
  m.strings_of("group_name", t.group_name);
  m.strings_of("group_description", t.group_description);
  m.strings_of("group_ranks", t.group_ranks);
  m.view("rank", t.rank, Absent::kNull);
  m.view("source_rank", t.source_rank, Absent::kNull);
  m.view("destination_rank", t.destination_rank, Absent::kNull);
  m.view("sequence", t.sequence, Absent::kNull);
}

void fill_memory_events(Maker& m, const MemoryEvents& t) {
  m.view("time_ns", t.time_ns);
  m.view("lane", t.lane);
  m.table.view_words("kind", t.kind, kind_words(MemoryKind::kOutOfMemory));
  m.view("device_type", t.device_type);
  m.view("device", t.device);  // -1 is the CPU, not an absent value
  m.view("address", t.address);
  m.view("bytes", t.bytes, Absent::kNull);
  m.view("total_allocated_bytes", t.total_allocated_bytes, Absent::kNull);
  m.view("total_reserved_bytes", t.total_reserved_bytes, Absent::kNull);
  m.view("stream", t.stream, Absent::kNull);
  m.strings_of("pool", t.pool);
}

void fill_allocator_events(Maker& m, const AllocatorEvents& t) {
  m.view("time_ns", t.time_ns);
  m.view("lane", t.lane);
  m.table.view_words("kind", t.kind, kind_words(AllocatorEventKind::kSegmentUnmap));
  m.view("device_type", t.device_type);
  m.view("device", t.device);
  m.view("address", t.address);
  m.view("bytes", t.bytes);
  m.view("stream", t.stream, Absent::kNull);
  m.strings_of("pool", t.pool);
}

void fill_allocator_segments(Maker& m, const AllocatorSegments& t) {
  m.view("time_ns", t.time_ns);
  m.view("device_type", t.device_type);
  m.view("device", t.device);
  m.view("address", t.address);
  m.view("bytes", t.bytes);
  m.view("stream", t.stream, Absent::kNull);
  m.strings_of("pool", t.pool);
  m.view("is_expandable", t.is_expandable);
}

void fill_allocator_blocks(Maker& m, const AllocatorBlocks& t) {
  m.view("time_ns", t.time_ns);
  m.view("device_type", t.device_type);
  m.view("device", t.device);
  m.view("address", t.address);
  m.view("bytes", t.bytes);
  m.table.view_words("state", t.state, kind_words(AllocatorBlockState::kAllocated));
}

void fill_instants(Maker& m, const Instants& t) {
  std::vector<int8_t> scopes;
  for (const char scope : t.scope) {
    scopes.push_back(scope == 't' ? int8_t{0} : scope == 'p' ? int8_t{1} : scope == 'g' ? int8_t{2} : int8_t{-1});
  }
  m.view("time_ns", t.time_ns);
  m.view("lane", t.lane);
  m.strings_of("name", t.name, Absent::kNever);
  m.strings_of("category", t.category);
  m.table.own_words("scope", std::move(scopes), words({"thread", "process", "global"}), Absent::kNull);
}

void fill_counter_tracks(Maker& m, const CounterTracks& t) {
  m.ids("pid", t.pid);
  m.strings_of("name", t.name, Absent::kNever);
  m.strings_of("series", t.series);
}

void fill_counter_samples(Maker& m, const CounterSamples& t) {
  m.view("time_ns", t.time_ns);
  m.view("track", t.track);
  m.view("value", t.value, Absent::kNull);
}

void fill_flows(Maker& m, const Flows& t) {
  m.strings_of("name", t.name, Absent::kNever);
  m.strings_of("category", t.category);
  m.view("flow_id", t.id, Absent::kNull);
  m.ends("from", t.from);
  m.ends("to", t.to);
}

void fill_steps(Maker& m, const Steps& t) {
  m.view("number", t.number);
  m.view("slice", t.slice, Absent::kNull);
  m.view("start_ns", t.start_ns);
  m.view("duration_ns", t.duration_ns);
}

// Only what was counted at all; the row names, meanings and remedies are those of model/stats.h.
std::shared_ptr<const ArrowTable> losses_table(const LossCounts& losses) {
  ArrowTexts names;
  ArrowTexts meanings;
  ArrowTexts remedies;
  std::vector<uint64_t> counts;
  std::vector<int8_t> severities;
  for (size_t i = 0; i < kStatCount; ++i) {
    if (losses.counts[i] == 0) continue;
    names.add(kStats[i].name);
    severities.push_back(static_cast<int8_t>(kStats[i].severity));
    counts.push_back(losses.counts[i]);
    meanings.add(kStats[i].meaning);
    remedies.add(kStats[i].remedy);
  }
  ArrowTableBuilder table("losses", counts.size());
  table.text("name", std::move(names));
  table.own_words("severity", std::move(severities),
                  words({name_of(Severity::kInfo), name_of(Severity::kWarning), name_of(Severity::kDataLoss)}));
  table.own("count", std::move(counts));
  table.text("meaning", std::move(meanings));
  table.text("remedy", std::move(remedies));
  return std::move(table).build();
}

}  // namespace

void ArrowTables::build_shared() {
  auto strings = std::make_shared<ArrowTexts>();
  for (size_t i = 0; i < model_->strings.size(); ++i) strings->add(model_->strings.view(static_cast<StringId>(i)));
  strings_ = std::move(strings);
  const Model& m = *model_;
  auto ids = std::make_shared<std::vector<Row>>(
      std::max({m.lanes.size(), m.host_slices.size(), m.op_details.size(), m.call_details.size(),
                m.device_slices.size(), m.comm_details.size(), m.memory_events.size(), m.allocator_events.size(),
                m.allocator_segments.size(), m.allocator_blocks.size(), m.instants.size(), m.counter_tracks.size(),
                m.counter_samples.size(), m.flows.size(), m.steps.size()}));
  std::iota(ids->begin(), ids->end(), Row{0});
  row_ids_ = std::move(ids);
}

std::shared_ptr<const ArrowTable> ArrowTables::table(size_t index) {
  const std::scoped_lock lock(mutex_);
  if (tables_[index]) return tables_[index];
  if (!strings_) build_shared();
  const std::string_view name = kArrowTables[index].name;
  const auto make = [&](const auto& rows, const auto& fill) {
    Maker maker{*model_, strings_, ArrowTableBuilder(std::string(name), rows.size())};
    maker.table.keep(model_);
    maker.table.keep(row_ids_);
    maker.table.view_first("id", *row_ids_);
    fill(maker, rows);
    return std::move(maker.table).build();
  };
  const Model& m = *model_;
  auto& table = tables_[index];
  if (name == "lanes") table = make(m.lanes, fill_lanes);
  if (name == "host_slices") table = make(m.host_slices, fill_host_slices);
  if (name == "op_details") table = make(m.op_details, fill_op_details);
  if (name == "call_details") table = make(m.call_details, fill_call_details);
  if (name == "device_slices") table = make(m.device_slices, fill_device_slices);
  if (name == "kernel_details") table = make(m.kernel_details, fill_kernel_details);
  if (name == "copy_details") table = make(m.copy_details, fill_copy_details);
  if (name == "sync_details") table = make(m.sync_details, fill_sync_details);
  if (name == "comm_details") table = make(m.comm_details, fill_comm_details);
  if (name == "memory_events") table = make(m.memory_events, fill_memory_events);
  if (name == "allocator_events") table = make(m.allocator_events, fill_allocator_events);
  if (name == "allocator_segments") table = make(m.allocator_segments, fill_allocator_segments);
  if (name == "allocator_blocks") table = make(m.allocator_blocks, fill_allocator_blocks);
  if (name == "instants") table = make(m.instants, fill_instants);
  if (name == "counter_tracks") table = make(m.counter_tracks, fill_counter_tracks);
  if (name == "counter_samples") table = make(m.counter_samples, fill_counter_samples);
  if (name == "flows") table = make(m.flows, fill_flows);
  if (name == "steps") table = make(m.steps, fill_steps);
  if (name == "losses") table = losses_table(m.losses);
  FL_CHECK(table, "every table of kArrowTables is built here");
  return table;
}

}  // namespace firelane
