#include "report/memory_report.h"
#include "model/how_to_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analyze/compute/copies.h"
#include "analyze/memory/memory.h"
#include "report/registry.h"

namespace firelane::report {

namespace {

Table devices_table(const analyze::MemoryReport& memory) {
  Table table{
      .name = "devices",
      .title = "Devices",
      .columns = {{"device", "Device"},
                  {"peak_bytes", "Peak", Kind::kBytes},
                  {"peak_ns", "Peak at", Kind::kDuration},
                  {"capacity_bytes", "Capacity", Kind::kBytes, Align::kByKind, 0, true},
                  {"peak_percent", "Of capacity", Kind::kPercent, Align::kByKind, 0, true,
                   "Share of the device's memory."},
                  {"peak_reserved_bytes", "Reserved", Kind::kBytes, Align::kByKind, 0, true},
                  {"cached_bytes", "Cached at peak", Kind::kBytes, Align::kByKind, 0, true,
                   "Reserved by the allocator but unused at the peak."},
                  {"start_bytes", "Start", Kind::kBytes},
                  {"end_bytes", "End", Kind::kBytes},
                  {.name = "growth_per_step_bytes",
                   .label = "Growth/step",
                   .kind = Kind::kBytes,
                   .help = "Memory left over after each step. Above 0, the program eventually runs out of memory."},
                  {"allocations", "Allocations", Kind::kNumber},
                  {"frees", "Frees", Kind::kNumber},
                  {"out_of_memory", "Out of memory", Kind::kNumber},
                  {.name = "uncertain_bytes",
                   .label = "Uncertain",
                   .kind = Kind::kBytes,
                   .help = "Part of the peak whose category is not certain."}},
      .hide_if_empty = true};
  for (const analyze::DeviceMemory& device : memory.devices) {
    const bool has_capacity = device.capacity_bytes > 0;
    const double percent = has_capacity ? 100.0 * static_cast<double>(device.peak.allocated_bytes) /
                                              static_cast<double>(device.capacity_bytes)
                                        : 0;
    table.add({device.name, device.peak.allocated_bytes, device.peak.time_ns,
               cell_unless(device.capacity_bytes, kNoNumber), has_capacity ? Cell{percent} : Cell{},
               cell_unless(device.peak_reserved_bytes, kNoNumber), cell_unless(device.cached_bytes(), kNoNumber),
               device.start_bytes, device.end_bytes, device.growth_per_step_bytes, device.allocations, device.frees,
               device.out_of_memory, device.uncertain_bytes});
  }
  return table;
}

Table categories_table(const analyze::MemoryReport& memory) {
  Table table{.name = "at_peak",
              .title = "Alive at the peak",
              .columns = {{"device", "Device"},
                          {"category", "Category"},
                          {"bytes", "Bytes", Kind::kBytes},
                          {"share_percent", "Share", Kind::kPercent}},
              .hide_if_empty = true};
  for (const analyze::DeviceMemory& device : memory.devices) {
    for (size_t i = 0; i < analyze::kMemoryCategoryCount; ++i) {
      if (device.at_peak[i] == 0) continue;
      const double share = 100.0 * static_cast<double>(device.at_peak[i]) /
                           static_cast<double>(std::max<int64_t>(device.peak.allocated_bytes, 1));
      table.add({device.name, std::string(analyze::name_of(static_cast<analyze::MemoryCategory>(i))), device.at_peak[i],
                 share});
    }
  }
  return table;
}

std::vector<Column> owner_columns(std::string bytes_label) {
  return {{"device", "Device"},
          {"op", "Op", Kind::kText, Align::kByKind, 48, true},
          {"module", "Module", Kind::kText, Align::kByKind, 32, true},
          {"place", "Where", Kind::kText, Align::kByKind, 48, true},
          {"category", "Category"},
          {"bytes", std::move(bytes_label), Kind::kBytes},
          {"allocations", "Allocations", Kind::kNumber}};
}

void add_owners(const analyze::DeviceMemory& device, const std::vector<analyze::MemoryOwner>& owners, size_t limit,
                Table& table) {
  const size_t shown = limit == 0 ? owners.size() : std::min(limit, owners.size());
  for (size_t i = 0; i < shown; ++i) {
    const analyze::MemoryOwner& owner = owners[i];
    table.add({device.name, owner.op.empty() ? Cell{} : Cell{owner.op},
               owner.module.empty() ? Cell{} : Cell{owner.module}, text_or_none(owner.place),
               std::string(analyze::name_of(owner.category)), owner.bytes, owner.allocations});
  }
}

Table steps_table(const analyze::MemoryReport& memory) {
  Table table{.name = "steps",
              .title = "Steps",
              .columns = {{"device", "Device"},
                          {"step", "Step", Kind::kNumber},
                          {"peak_bytes", "Peak", Kind::kBytes},
                          {"end_bytes", "At its end", Kind::kBytes},
                          {"reserved_bytes", "Reserved", Kind::kBytes, Align::kByKind, 0, true,
                           "Held by the caching allocator."},
                          {.name = "allocator_calls",
                           .label = "Driver calls",
                           .kind = Kind::kNumber,
                           .help = "Driver calls for memory (cudaMalloc, cudaFree): slow, and there should be none "
                                   "after the first steps."},
                          {.name = "allocator_ns",
                           .label = "In driver calls",
                           .kind = Kind::kDuration,
                           .help = "Time in these calls."}},
              .hide_if_empty = true};
  for (const analyze::DeviceMemory& device : memory.devices) {
    for (const analyze::StepMemory& step : device.steps) {
      table.add({device.name, step.step, step.peak_bytes, step.end_bytes, cell_unless(step.reserved_bytes, kNoNumber),
                 step.allocator_calls, step.allocator_ns});
    }
  }
  return table;
}

Table spikes_table(const Model& model, const analyze::MemoryReport& memory) {
  Table table{.name = "spikes",
              .title = "Spikes: ops that briefly needed more",
              .columns = {{"device", "Device"},
                          {"op", "Op", Kind::kText, Align::kByKind, 56},
                          {"time_ns", "At", Kind::kDuration},
                          {"extra_bytes", "Extra", Kind::kBytes},
                          {"times", "Times", Kind::kNumber}},
              .hide_if_empty = true};
  for (const analyze::DeviceMemory& device : memory.devices) {
    for (const analyze::MemorySpike& spike : device.spikes) {
      table.add({device.name, std::string(model.text(model.host_slices.name[spike.op])), spike.time_ns,
                 spike.extra_bytes, spike.times});
    }
  }
  return table;
}

Table copies_table(const analyze::CopyTable& copies, size_t limit) {
  Table table{.name = "copies",
              .title = "Copies that ops made",
              .columns = {{"kind", "Kind"},
                          {"from", "From"},
                          {"to", "To"},
                          {"shape", "Shape", Kind::kText, Align::kByKind, 32},
                          {"asked_by", "For", Kind::kText, Align::kByKind, 40},
                          {"calls", "Calls", Kind::kNumber},
                          {.name = "ping_pong_calls",
                           .label = "Undone casts",
                           .kind = Kind::kNumber,
                           .help = "Casts whose result is cast back."},
                          {"bytes", "Traffic", Kind::kBytes},
                          {"device_ns", "Device time", Kind::kDuration}},
              .hide_if_empty = true};
  const size_t shown = limit == 0 ? copies.rows.size() : std::min(limit, copies.rows.size());
  for (size_t i = 0; i < shown; ++i) {
    const analyze::CopyRow& row = copies.rows[i];
    table.add({std::string(analyze::name_of(row.kind)), row.from, row.to, row.shape, row.asked_by, row.calls,
               row.ping_pong_calls, cell_unless(row.bytes, int64_t{0}), row.device_ns});
  }
  return table;
}

std::string device_name(const analyze::MemoryReport& memory, const analyze::DeviceAllocator& allocator) {
  for (const analyze::DeviceMemory& device : memory.devices) {
    if (device.device_type == allocator.device_type && device.device == allocator.device) return device.name;
  }
  return "device " + std::to_string(allocator.device);
}

std::vector<Column> moment_columns(std::vector<Column> first) {
  for (Column& column : std::vector<Column>{
           {.name = "reserved_bytes",
            .label = "Reserved",
            .kind = Kind::kBytes,
            .help = "Held by the caching allocator."},
           {.name = "allocated_bytes", .label = "Allocated", .kind = Kind::kBytes, .help = "In use by tensors."},
           {.name = "waiting_bytes",
            .label = "Waiting",
            .kind = Kind::kBytes,
            .help = "Freed, but possibly still in use by another stream."},
           {.name = "free_bytes", .label = "Free", .kind = Kind::kBytes, .help = "Reserved but unused."},
           {.name = "largest_free_bytes",
            .label = "Largest free",
            .kind = Kind::kBytes,
            .help = "The largest free block. A larger allocation needs new memory from the driver."},
           {.name = "scattered_percent",
            .label = "Scattered",
            .kind = Kind::kPercent,
            .help = "Share of free memory outside the largest block. High means fragmented."},
           {.name = "segments",
            .label = "Segments",
            .kind = Kind::kNumber,
            .help = "Segments that the allocator got from the driver."}}) {
    first.push_back(std::move(column));
  }
  return first;
}

void add_moment(std::vector<Cell> cells, const analyze::AllocatorMoment& at, Table& table) {
  const double scattered =
      at.free_bytes() > 0 ? 100.0 * static_cast<double>(at.scattered_bytes()) / static_cast<double>(at.free_bytes())
                          : 0;
  for (const int64_t bytes :
       {at.reserved_bytes, at.allocated_bytes, at.waiting_bytes, at.free_bytes(), at.largest_free_bytes}) {
    cells.emplace_back(bytes);
  }
  cells.emplace_back(scattered);
  cells.emplace_back(at.segments);
  table.add(std::move(cells));
}

Table allocator_table(const analyze::MemoryReport& memory) {
  Table table{.name = "allocator",
              .title = "The allocator",
              .columns = moment_columns({{"device", "Device"},
                                         {"moment", "When"},
                                         {"time_ns", "At", Kind::kDuration},
                                         {"asked_bytes", "Asked for", Kind::kBytes, Align::kByKind, 0, true}}),
              .hide_if_empty = true};
  for (const analyze::DeviceAllocator& allocator : memory.allocators) {
    const std::string name = device_name(memory, allocator);
    const auto add = [&](std::string when, const analyze::AllocatorMoment& at, Cell asked = {}) {
      add_moment({name, std::move(when), at.time_ns, std::move(asked)}, at, table);
    };
    add("start", allocator.curve.front());
    add("most allocated", allocator.curve[allocator.most_allocated]);
    add("most reserved", allocator.curve[allocator.most_reserved]);
    add("most scattered", allocator.curve[allocator.most_scattered]);
    for (const analyze::AllocatorFailure& failure : allocator.failures)
      add("out of memory", failure.at, failure.asked_bytes);
    add("end", allocator.curve.back());
  }
  return table;
}

Table shares_table(const Model& model, const analyze::MemoryReport& memory) {
  Table table{.name = "allocator_shares",
              .title = "By stream and pool, at peak allocation",
              .columns = moment_columns({{"device", "Device"},
                                         {"pool", "Pool", Kind::kText, Align::kByKind, 0, true},
                                         {"stream", "Stream", Kind::kText, Align::kByKind, 0, true}}),
              .hide_if_empty = true};
  for (const analyze::DeviceAllocator& allocator : memory.allocators) {
    for (const analyze::AllocatorShare& share : allocator.shares) {
      const Cell pool = share.pool == kNoString ? Cell{} : Cell{std::string(model.text(share.pool))};
      const Cell stream = share.stream == kNoNumber ? Cell{}
                          : share.stream == 0       ? Cell{"default"}
                                                    : Cell{fmt::format("0x{:x}", static_cast<uint64_t>(share.stream))};
      add_moment({device_name(memory, allocator), pool, stream}, share.at, table);
    }
  }
  return table;
}

Table allocator_curve_table(const analyze::MemoryReport& memory) {
  Table table{.name = "allocator_curve",
              .title = "The allocator over time",
              .columns = moment_columns({{"device", "Device"}, {"time_ns", "Time", Kind::kDuration}}),
              .hide_if_empty = true};
  for (const analyze::DeviceAllocator& allocator : memory.allocators) {
    for (const analyze::AllocatorMoment& at : allocator.curve) {
      add_moment({device_name(memory, allocator), at.time_ns}, at, table);
    }
  }
  return table;
}

Table curve_table(const analyze::MemoryReport& memory) {
  Table table{
      .name = "curve",
      .title = "Allocated and reserved",
      .columns = {{"device", "Device"},
                  {"time_ns", "Time", Kind::kDuration},
                  {.name = "allocated_bytes", .label = "Allocated", .kind = Kind::kBytes, .help = "In use by tensors."},
                  {"reserved_bytes", "Reserved", Kind::kBytes, Align::kByKind, 0, true,
                   "Held by the caching allocator."}},
      .hide_if_empty = true};
  for (const analyze::DeviceMemory& device : memory.devices) {
    for (const analyze::MemoryPoint& point : device.curve) {
      table.add({device.name, point.time_ns, point.allocated_bytes, cell_unless(point.reserved_bytes, kNoNumber)});
    }
  }
  return table;
}

Result<Report> make_memory(const StudiedTrace& trace, const Arguments& wanted) {
  const Model& model = trace.model();
  const auto& memory = trace.get<analyze::memory_report>();
  Report report;
  Table owners{
      .name = "owners", .title = "Owners at the peak", .columns = owner_columns("Bytes"), .hide_if_empty = true};
  Table growth{.name = "growth",
               .title = "What grows with every step",
               .columns = owner_columns("Per step"),
               .hide_if_empty = true};
  for (const analyze::DeviceMemory& device : memory.devices) {
    add_owners(device, device.owners, wanted.rows(), owners);
    add_owners(device, device.growth_owners, wanted.rows(), growth);
  }
  report.tables = {devices_table(memory),
                   categories_table(memory),
                   std::move(owners),
                   steps_table(memory),
                   spikes_table(model, memory),
                   allocator_table(memory),
                   shares_table(model, memory),
                   std::move(growth),
                   copies_table(trace.get<analyze::copy_table>(), wanted.rows())};
  if (wanted.flag("curve")) {
    report.tables.push_back(curve_table(memory));
    report.tables.push_back(allocator_curve_table(memory));
  }
  if (memory.devices.empty()) {
    report.notes.push_back("no memory events in this trace: " + how_to_record(model.info, RecordOption::kMemory));
    return report;
  }
  report.notes.emplace_back(
      "categories are inferred from where memory was allocated and how long it lived; memory allocated before the "
      "recording cannot be categorized");
  const bool has_gpu = std::any_of(memory.devices.begin(), memory.devices.end(),
                                   [](const analyze::DeviceMemory& device) { return device.device_type != 0; });
  if (has_gpu && memory.allocators.empty()) {
    report.notes.emplace_back(
        "how free memory is split into blocks is not in this trace: record with firelane, or see "
        "torch.cuda.memory._dump_snapshot()");
  }
  for (const analyze::DeviceAllocator& allocator : memory.allocators) {
    if (allocator.misplaced == 0) continue;
    report.notes.push_back(fmt::format(
        "{}: {} events do not match the allocator's state: some events are missing, so free memory is an estimate",
        device_name(memory, allocator), allocator.misplaced));
  }
  return report;
}

}  // namespace

ReportSpec memory_report() {
  return {
      .name = "memory",
      .title = "Memory",
      .sentence = "Show where memory went: the peak and what is alive at it, steps, spikes, growth, copies, allocator.",
      .examples = {"firelane memory trace.json.gz", "firelane memory trace.json.gz --curve --json -o memory.json"},
      .parameters = {Parameter::flag("curve", "also every change of allocated and reserved memory"), Parameter::rows()},
      .shown_rows = 10,
      .tables = {{"devices"},
                 {"at_peak"},
                 {"owners"},
                 {"steps"},
                 {"spikes"},
                 {"allocator"},
                 {"allocator_shares"},
                 {"growth"},
                 {"copies"},
                 {"curve", "curve"},
                 {"allocator_curve", "curve"}},
      .make = make_memory,
      .needs_times = false};
}

Report alive_report(const Model& model, const analyze::DeviceMemory& device, const analyze::MemoryMoment& moment,
                    int64_t time_ns, size_t max_blocks) {
  Report report{
      .title = "Alive",
      .facts = {{"device", "Device", Kind::kText, analyze::device_label(device)},
                {"at_ns", "At", Kind::kDuration, time_ns},
                {"allocated_bytes", "Allocated", Kind::kBytes, moment.point.allocated_bytes},
                {"reserved_bytes", "Reserved", Kind::kBytes, cell_unless(moment.point.reserved_bytes, kNoNumber)},
                {"block_count", "Blocks", Kind::kNumber, static_cast<int64_t>(moment.alive.size())}}};
  Table categories{.name = "categories",
                   .title = "Categories",
                   .columns = {{"category", "Category"},
                               {"bytes", "Bytes", Kind::kBytes},
                               {"share_percent", "Share", Kind::kPercent},
                               {"allocations", "Blocks", Kind::kNumber}}};
  Table owners{.name = "owners",
               .title = "Owners",
               .columns = {{"category", "Category"},
                           {"op", "Op"},
                           {"module", "Module"},
                           {"place", "Where", Kind::kText, Align::kByKind, 0, true},
                           {"bytes", "Bytes", Kind::kBytes},
                           {"allocations", "Blocks", Kind::kNumber}}};
  const auto text = [](const std::string& name) { return name.empty() ? Cell{} : Cell{name}; };
  std::array<analyze::MemoryOwner, analyze::kMemoryCategoryCount> sums;
  for (const analyze::MemoryOwner& owner : moment.owners) {
    sums[static_cast<size_t>(owner.category)].bytes += owner.bytes;
    sums[static_cast<size_t>(owner.category)].allocations += owner.allocations;
    owners.add({std::string(analyze::name_of(owner.category)), text(owner.op), text(owner.module), text(owner.place),
                owner.bytes, owner.allocations});
  }
  sums[static_cast<size_t>(analyze::MemoryCategory::kBeforeRecording)].bytes = moment.before_recording_bytes;
  for (size_t i = 0; i < analyze::kMemoryCategoryCount; ++i) {
    if (sums[i].bytes == 0) continue;
    const double share = 100.0 * static_cast<double>(sums[i].bytes) /
                         static_cast<double>(std::max<int64_t>(1, moment.point.allocated_bytes));
    categories.add({std::string(analyze::name_of(static_cast<analyze::MemoryCategory>(i))), sums[i].bytes, share,
                    cell_unless(sums[i].allocations, int64_t{0})});
  }
  Table blocks{.name = "blocks",
               .title = "Blocks",
               .columns = {{"bytes", "Bytes", Kind::kBytes},
                           {"category", "Category"},
                           {"op", "Op"},
                           {"module", "Module"},
                           {"place", "Where", Kind::kText, Align::kByKind, 0, true},
                           {"address", "Address"},
                           {"start_ns", "Allocated at", Kind::kDuration},
                           {"duration_ns", "Lives", Kind::kDuration}},
               .row_count = moment.alive.size()};
  for (size_t i = 0; i < std::min(moment.alive.size(), max_blocks); ++i) {
    const analyze::MemoryBlock& block = *moment.alive[i];
    const bool is_freed = block.end_ns != INT64_MAX;
    const analyze::MemoryOwner owner = analyze::owner_of(model, block);
    blocks.add({block.bytes, std::string(analyze::name_of(block.category)), text(owner.op), text(owner.module),
                text(owner.place), fmt::format("0x{:x}", block.address), block.start_ns,
                is_freed ? Cell{block.end_ns - block.start_ns} : Cell{}});
  }
  report.tables = {std::move(categories), std::move(owners), std::move(blocks)};
  report.notes = {"a block without a lifetime is not freed in this trace"};
  return report;
}

}  // namespace firelane::report
