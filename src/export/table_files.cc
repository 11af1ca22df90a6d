#include "export/table_files.h"

#include <cmath>
#include <string>

#include "base/utf8.h"
#include "export/json_pairs.h"

namespace firelane::exporter {

namespace {

void flush_when_full(std::string& out, ByteSink& sink) {
  if (out.size() < kFlushBytes) return;
  sink.write(out);
  out.clear();
}

void append_csv_text(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return append_valid_utf8(out, text);
  std::string quoted;
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  out += '"';
  append_valid_utf8(out, quoted);
  out += '"';
}

void append_csv_cell(std::string& out, const Cell& cell) {
  switch (cell.kind) {
    case Cell::Kind::kNull: return;
    case Cell::Kind::kInteger: return append_number(out, cell.integer);
    case Cell::Kind::kReal:
      if (std::isfinite(cell.real)) append_number(out, cell.real);
      return;
    case Cell::Kind::kText: return append_csv_text(out, cell.text);
  }
}

// `"name": value`, after a comma where needed; nothing for absent values.
void append_json_cell(std::string& out, std::string_view name, const Cell& cell) {
  if (cell.kind == Cell::Kind::kNull || (cell.kind == Cell::Kind::kReal && !std::isfinite(cell.real))) return;
  if (out.back() != '{') out += ", ";
  append_json_text(out, name);
  out += ": ";
  switch (cell.kind) {
    case Cell::Kind::kInteger: return append_number(out, cell.integer);
    case Cell::Kind::kReal: return append_number(out, cell.real);
    default: return append_json_text(out, cell.text);
  }
}

void append_trace_facts(std::string& out, const TraceInfo& info) {
  out += "{\n\"trace\": {";
  JsonPairs facts(out);
  facts.text("path", info.path);
  facts.text("format", info.format);
  facts.number("start_ns", info.start_ns);
  facts.number("base_time_ns", info.base_time_ns);
  facts.number("duration_ns", info.duration_ns);
  if (info.distributed.present) {
    facts.text("backend", info.distributed.backend);
    facts.number("rank", info.distributed.rank);
    facts.number("world_size", info.distributed.world_size);
  }
  out += '}';
}

}  // namespace

void export_csv(const Model& model, const CatalogTable& table, ByteSink& sink) {
  std::string out;
  const char* separator = "";
  for (const CatalogColumn& column : table.columns) {
    out += separator;
    out += column.name;
    separator = ",";
  }
  out += '\n';
  const auto size = static_cast<Row>(table.size(model));
  for (Row row = 0; row < size && !sink.failed(); ++row) {
    separator = "";
    for (const CatalogColumn& column : table.columns) {
      out += separator;
      append_csv_cell(out, column.cell(model, row));
      separator = ",";
    }
    out += '\n';
    flush_when_full(out, sink);
  }
  sink.write(out);
}

void export_json(const Model& model, ByteSink& sink) {
  std::string out;
  append_trace_facts(out, model.info);
  for (const CatalogTable& table : catalog()) {
    out += ",\n\"" + std::string(table.name) + "\": [";
    const auto size = static_cast<Row>(table.size(model));
    for (Row row = 0; row < size && !sink.failed(); ++row) {
      out += row == 0 ? "\n{" : ",\n{";
      for (const CatalogColumn& column : table.columns) append_json_cell(out, column.name, column.cell(model, row));
      out += '}';
      flush_when_full(out, sink);
    }
    out += ']';
  }
  out += "\n}\n";
  sink.write(out);
}

}  // namespace firelane::exporter
