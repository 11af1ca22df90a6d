#include "export/lane_tables.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/check.h"
#include "format/table_chunk.h"
#include "model/tables.h"

namespace firelane::exporter {

namespace {

constexpr size_t kRowsAtOnce = size_t{1} << 16;
constexpr size_t kMostBytes = size_t{16} << 20;  // half of what a chunk may have, at most

// Texts of a chunk, each once.
class Texts {
 public:
  explicit Texts(format::TableColumn& column) : column_(column) {}
  void add(std::string_view text) {
    const auto [found, is_new] = places_.try_emplace(std::string(text), column_.texts.size());
    if (is_new) column_.texts.push_back(found->first);
    column_.numbers.push_back(static_cast<int64_t>(found->second));
  }

 private:
  format::TableColumn& column_;
  std::unordered_map<std::string, size_t> places_;
};

// "n42 sSteps": process and thread, each a number or a text.
std::string lane_text(const Model& model, LaneId lane) {
  const auto id = [&](const TraceId& of) {
    return of.number != kNoNumber ? "n" + std::to_string(of.number) : "s" + std::string(model.text(of.text));
  };
  const auto l = static_cast<size_t>(lane);
  return id(model.lanes.pid[l]) + '\x1f' + id(model.lanes.tid[l]);
}

format::TableColumn column_of(const Model& model, const TableInfo& table, const ColumnInfo& column, size_t begin,
                              size_t end) {
  format::TableColumn out{.name = std::string(column.name), .numbers = {}, .texts = {}};
  Texts texts(out);
  const bool is_time = firelane::is_time(column.use);
  visit_column(column, table.of(model), [&](const auto& values) {
    for (size_t row = begin; row < end; ++row) {
      const auto value = values[row];
      using T = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<T, KindWord>) {
        texts.add(value.word);
      } else if constexpr (std::is_same_v<T, StringId>) {
        texts.add(model.text(value));
      } else if constexpr (std::is_same_v<T, LaneId>) {
        texts.add(lane_text(model, value));
      } else if constexpr (std::is_integral_v<T>) {
        // As the events of the file have it: not since the trace's start.
        const auto number = static_cast<uint64_t>(value) + (is_time ? static_cast<uint64_t>(model.info.start_ns) : 0);
        out.numbers.push_back(static_cast<int64_t>(number));
      }
    }
  });
  return out;
}

// Stacks are long: a chunk that would be too large is two.
std::string write_rows(const Model& model, const TableInfo& table, size_t begin, size_t end,
                       format::ChunkWriter& writer) {
  format::TableChunk chunk{.table = std::string(table.name), .rows = end - begin, .columns = {}};
  for (const ColumnInfo& column : table.columns) {
    if (!is_shown(column.use) || column.use == Use::kId) continue;
    chunk.columns.push_back(column_of(model, table, column, begin, end));
  }
  const std::string bytes = encode_table(chunk);
  if (bytes.size() <= kMostBytes || end - begin == 1) return writer.write_chunk(format::ChunkKind::kTable, bytes);
  const size_t middle = begin + (end - begin) / 2;
  std::string error = write_rows(model, table, begin, middle, writer);
  return error.empty() ? write_rows(model, table, middle, end, writer) : error;
}

std::string write_table(const Model& model, const TableInfo& table, format::ChunkWriter& writer) {
  const size_t rows = table.size(model);
  for (size_t begin = 0; begin < rows; begin += kRowsAtOnce) {
    std::string error = write_rows(model, table, begin, std::min(rows, begin + kRowsAtOnce), writer);
    if (!error.empty()) return error;
  }
  return "";
}

}  // namespace

bool memory_is_a_table(const Model& model) { return model.args == nullptr; }

std::string write_lane_tables(const Model& model, format::ChunkWriter& writer) {
  for (const std::string_view name : {"memory_events", "allocator_events", "allocator_segments", "allocator_blocks"}) {
    if (name == "memory_events" && !memory_is_a_table(model)) continue;
    const auto tables = model_tables();
    const auto table =
        std::find_if(tables.begin(), tables.end(), [&](const TableInfo& each) { return each.name == name; });
    FL_CHECK(table != tables.end(), "lane_tables: a table of the model");
    if (std::string error = write_table(model, *table, writer); !error.empty()) return error;
  }
  return "";
}

}  // namespace firelane::exporter
