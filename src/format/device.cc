#include "format/device.h"

namespace firelane::format {
namespace {

// No table of ours has more; a larger number is damage.
constexpr uint64_t kMaxColumns = 64;

}  // namespace

void DeviceWriter::add_fields(DeviceTable table, const int64_t* fields, size_t count) {
  Table& t = tables_[static_cast<size_t>(table)];
  t.columns.resize(count);
  t.last.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t before = t.columns[i].size();
    // Wraps, so that any number comes back whatever lay before it.
    append_zigzag(t.columns[i],
                  static_cast<int64_t>(static_cast<uint64_t>(fields[i]) - static_cast<uint64_t>(t.last[i])));
    t.last[i] = fields[i];
    byte_count_ += t.columns[i].size() - before;
  }
  ++t.count;
  ++row_count_;
}

void DeviceWriter::append_to(std::string& payload) const {
  for (size_t number = 0; number < tables_.size(); ++number) {
    const Table& t = tables_[number];
    if (t.count == 0) continue;
    append_fixed(payload, static_cast<uint8_t>(number));
    append_varint(payload, t.count);
    append_varint(payload, t.columns.size());
    for (const std::string& column : t.columns) append_varint(payload, column.size());
    for (const std::string& column : t.columns) payload.append(column);
  }
}

void DeviceWriter::clear() {
  for (Table& t : tables_) {
    t.count = 0;
    for (std::string& column : t.columns) column.clear();
    for (int64_t& last : t.last) last = 0;
  }
  row_count_ = 0;
  byte_count_ = 0;
}

bool DeviceReader::next_table() {
  if (damaged_ || reader_.empty()) {
    damaged_ = damaged_ || !reader_.ok();
    return false;
  }
  table_ = static_cast<DeviceTable>(reader_.fixed<uint8_t>());
  left_ = reader_.varint();
  const uint64_t columns = reader_.varint();
  damaged_ = !reader_.ok() || columns == 0 || columns > kMaxColumns;
  if (damaged_) return false;
  std::array<uint64_t, kMaxColumns> lengths{};
  for (uint64_t i = 0; i < columns; ++i) lengths[i] = reader_.varint();
  columns_.clear();
  for (uint64_t i = 0; i < columns; ++i) columns_.emplace_back(reader_.bytes(lengths[i]));
  last_.assign(columns, 0);
  damaged_ = !reader_.ok();
  return !damaged_;
}

bool DeviceReader::next_fields(int64_t* fields, size_t count) {
  if (left_ == 0 || damaged_) return false;
  --left_;
  for (size_t i = 0; i < columns_.size(); ++i) {
    last_[i] =
        static_cast<int64_t>(static_cast<uint64_t>(last_[i]) + static_cast<uint64_t>(columns_[i].signed_varint()));
    damaged_ |= !columns_[i].ok();
    if (i < count) fields[i] = last_[i];
  }
  return !damaged_;
}

}  // namespace firelane::format
