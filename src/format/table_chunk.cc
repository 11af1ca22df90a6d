#include "format/table_chunk.h"

#include "base/varint.h"

namespace firelane::format {

std::string encode_table(const TableChunk& chunk) {
  std::string out;
  append_text(out, chunk.table);
  append_varint(out, chunk.rows);
  append_varint(out, chunk.columns.size());
  std::string body;
  for (const TableColumn& column : chunk.columns) {
    body.clear();
    append_varint(body, column.texts.size());
    for (const std::string& text : column.texts) append_text(body, text);
    uint64_t before = 0;  // differences may wrap
    for (const int64_t number : column.numbers) {
      append_zigzag(body, static_cast<int64_t>(static_cast<uint64_t>(number) - before));
      before = static_cast<uint64_t>(number);
    }
    append_text(out, column.name);
    append_text(out, body);
  }
  return out;
}

Result<TableChunk> decode_table(std::string_view payload) {
  const Error damaged{"a chunk of rows that is damaged"};
  ByteReader reader(payload);
  TableChunk chunk;
  chunk.table = reader.text();
  chunk.rows = reader.varint();
  const uint64_t columns = reader.varint();
  // A number takes a byte at least, and so does a column.
  if (!reader.ok() || chunk.rows > payload.size() || columns > payload.size()) return damaged;
  for (uint64_t c = 0; c < columns; ++c) {
    TableColumn column;
    column.name = reader.text();
    ByteReader body(reader.text());
    if (!reader.ok()) return damaged;
    const uint64_t texts = body.varint();
    if (texts > body.left()) return damaged;
    for (uint64_t i = 0; i < texts; ++i) column.texts.emplace_back(body.text());
    if (!body.ok() || chunk.rows > body.left()) return damaged;
    column.numbers.reserve(chunk.rows);
    uint64_t before = 0;
    for (uint64_t row = 0; row < chunk.rows; ++row) {
      before += static_cast<uint64_t>(body.signed_varint());
      const auto number = static_cast<int64_t>(before);
      if (texts > 0 && before >= texts) return damaged;
      column.numbers.push_back(number);
    }
    if (!body.ok()) return damaged;
    chunk.columns.push_back(std::move(column));
  }
  return chunk;
}

}  // namespace firelane::format
