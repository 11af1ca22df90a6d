// The views: queries that save a join. docs/sql.md describes them.
#include <array>
#include <string>

#include "sql/database.h"

namespace firelane::sql {

namespace {

constexpr std::array kViews = {
    ModelView{"ops", "ops with their details",
              "SELECT s.id, s.lane, s.start_ns, s.duration_ns, s.end_ns, s.name, s.parent, s.depth, d.external_id, "
              "d.sequence_number, d.input_dims, d.input_types, d.input_strides, d.concrete_inputs, d.stack, "
              "d.module_hierarchy, d.overload, d.flops, d.forward, d.comm "
              "FROM host_slices s JOIN op_details d ON d.id = s.detail WHERE s.kind = 'op'"},
    ModelView{"kernels", "kernels with their details, the op they belong to, and launch_delay_ns from call to start",
              "SELECT s.id, s.lane, s.device, s.stream, s.start_ns, s.duration_ns, s.end_ns, s.name, s.correlation, "
              "s.launch, s.start_ns - l.start_ns AS launch_delay_ns, s.op, o.name AS op_name, k.grid_x, k.grid_y, "
              "k.grid_z, k.block_x, k.block_y, k.block_z, k.registers, k.shared_memory_bytes, k.blocks_per_sm, "
              "k.warps_per_sm, k.occupancy_percent, k.occupancy_limit, k.graph_id, k.graph_node_id, s.comm "
              "FROM device_slices s LEFT JOIN kernel_details k ON k.id = s.detail "
              "LEFT JOIN host_slices l ON l.id = s.launch LEFT JOIN host_slices o ON o.id = s.op "
              "WHERE s.kind = 'kernel'"},
    ModelView{"launches", "runtime and driver calls with the device work they queued, one row for each piece of work",
              "SELECT l.id, l.lane, l.start_ns, l.duration_ns, l.name, s.correlation, s.op, o.name AS op_name, "
              "s.id AS device_slice, s.kind AS device_kind, s.name AS device_name, "
              "s.start_ns - l.start_ns AS launch_delay_ns "
              "FROM device_slices s JOIN host_slices l ON l.id = s.launch LEFT JOIN host_slices o ON o.id = s.op"},
    ModelView{"counters", "samples of counters with their names",
              "SELECT c.id, c.time_ns, t.pid, t.name, t.series, c.value "
              "FROM counter_samples c JOIN counter_tracks t ON t.id = c.track"},
};

std::string_view type_name(Cell::Kind kind) {
  return kind == Cell::Kind::kInteger ? "integer" : kind == Cell::Kind::kReal ? "real" : "text";
}

void append_padded(std::string& out, std::string_view text, size_t width) {
  out += text;
  out.append(text.size() < width ? width - text.size() : 1, ' ');
}

}  // namespace

std::span<const ModelView> model_views() { return kViews; }

std::string describe_table(std::string_view name) {
  std::string out;
  if (const CatalogTable* table = find_catalog_table(name)) {
    out = std::string(table->name) + ": " + std::string(table->meaning) + "\n";
    for (const CatalogColumn& column : table->columns) {
      out += "  ";
      append_padded(out, column.name, 40);
      append_padded(out, type_name(column.kind), 9);
      out += std::string(column.meaning) + "\n";
    }
  }
  for (const ModelView& view : kViews) {
    if (view.name != name) continue;
    out = std::string(view.name) + " (view): " + std::string(view.meaning) + "\n  " + std::string(view.query) + "\n";
  }
  return out;
}

}  // namespace firelane::sql
