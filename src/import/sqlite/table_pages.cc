#include "import/sqlite/table_pages.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace firelane::importer {

namespace {

constexpr uint32_t kFileHeaderBytes = 100;
constexpr size_t kBytesAtOnce = size_t{256} << 10;
constexpr uint64_t kMostPayload = uint64_t{64} << 20;  // of one row
constexpr size_t kMostLevels = 32;
constexpr size_t kMostColumns = 4096;
constexpr uint8_t kInterior = 5, kLeaf = 13;

uint32_t big16(const char* at) {
  return static_cast<uint32_t>(static_cast<uint8_t>(at[0])) << 8 | static_cast<uint8_t>(at[1]);
}
uint32_t big32(const char* at) { return big16(at) << 16 | big16(at + 2); }

// SQLite's own form of numbers: high bits first, a ninth byte has all of its bits. Null when the bytes end.
const char* read_varint(const char* at, const char* end, uint64_t& number) {
  if (at < end && static_cast<signed char>(*at) >= 0) {  // most have one byte
    number = static_cast<uint8_t>(*at);
    return at + 1;
  }
  number = 0;
  for (int i = 0; i < 9 && at < end; ++i) {
    const auto byte = static_cast<uint8_t>(*at++);
    if (i == 8) {
      number = number << 8 | byte;
      return at;
    }
    number = number << 7 | (byte & 0x7Fu);
    if (byte < 0x80) return at;
  }
  return nullptr;
}

uint64_t bytes_of(uint64_t type) {
  static constexpr uint64_t kBytes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
  return type < 12 ? kBytes[type] : (type - 12) / 2;
}

}  // namespace

int64_t StoredValue::integer() const {
  const auto byte = [this](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  switch (type) {
    case 1: return static_cast<int8_t>(byte(0));
    case 2: return static_cast<int16_t>(big16(bytes));
    case 3: return static_cast<int32_t>(big16(bytes) << 16 | static_cast<uint32_t>(byte(2)) << 8) >> 8;
    case 4: return static_cast<int32_t>(big32(bytes));
    case 5:
      return static_cast<int64_t>(static_cast<uint64_t>(big32(bytes)) << 32 | uint64_t{big16(bytes + 4)} << 16) >> 16;
    case 6: return static_cast<int64_t>(static_cast<uint64_t>(big32(bytes)) << 32 | big32(bytes + 4));
    case 7: {
      const double value = real();
      return std::fabs(value) < 9.2e18 ? static_cast<int64_t>(value) : kNoNumber;
    }
    case 8: return 0;
    case 9: return 1;
    case kRowId: return row_id;
    default: return kNoNumber;
  }
}

double StoredValue::real() const {
  if (type == 7) {
    const uint64_t bits = uint64_t{big32(bytes)} << 32 | big32(bytes + 4);
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  const bool is_number = (type >= 1 && type <= 9) || type == kRowId;
  return is_number ? static_cast<double>(integer()) : std::numeric_limits<double>::quiet_NaN();
}

std::string_view StoredValue::text() const {
  const bool is_text = type >= 13 && type != kRowId && type % 2 == 1;
  return is_text ? std::string_view(bytes, static_cast<size_t>(bytes_of(type))) : std::string_view();
}

std::unique_ptr<TablePages> TablePages::open(std::shared_ptr<const ByteSource> source) {
  char header[kFileHeaderBytes];
  const auto got = source->read_at(0, header, sizeof header);
  if (!got.ok() || got.value() != sizeof header) return nullptr;
  const uint32_t stored = big16(header + 16);
  const uint32_t page_bytes = stored == 1 ? 65536 : stored;
  const uint32_t reserved = static_cast<uint8_t>(header[20]);
  constexpr uint32_t kUtf8 = 1;
  const bool is_power = page_bytes >= 512 && (page_bytes & (page_bytes - 1)) == 0;
  // A journal beside the file may hold newer pages; payload fractions have one value in every file there is.
  const bool is_plain = header[18] == 1 && header[19] == 1 && header[21] == 64 && header[22] == 32 && header[23] == 32;
  if (!is_power || !is_plain || page_bytes - reserved < 480 || big32(header + 56) != kUtf8) return nullptr;
  std::unique_ptr<TablePages> pages(new TablePages(std::move(source)));
  pages->page_bytes_ = page_bytes;
  pages->usable_bytes_ = page_bytes - reserved;
  pages->page_count_ = pages->source_->total_bytes() / page_bytes;
  pages->window_.resize(std::max<size_t>(kBytesAtOnce, page_bytes));
  return pages;
}

const char* TablePages::page(uint32_t number) {
  if (number == 0 || number > page_count_) return nullptr;
  const uint64_t offset = uint64_t{number - 1} * page_bytes_;
  if (offset < window_at_ || offset + page_bytes_ > window_at_ + window_bytes_) {
    const auto got = source_->read_at(offset, window_.data(), window_.size());
    window_at_ = offset;
    window_bytes_ = got.ok() ? got.value() : 0;
    if (window_bytes_ < page_bytes_) return nullptr;
  }
  return window_.data() + (offset - window_at_);
}

bool TablePages::is_table(uint32_t root) {
  const char* const first = page(root);
  if (first == nullptr) return false;
  const auto type = static_cast<uint8_t>(first[root == 1 ? kFileHeaderBytes : 0]);
  return type == kInterior || type == kLeaf;
}

bool TablePages::scan(uint32_t root, const std::vector<Wanted>& wanted, const Visit& visit) {
  wanted_ = &wanted;
  values_.assign(wanted.size(), {});
  place_of_column_.clear();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].column < 0) continue;
    const auto column = static_cast<size_t>(wanted[i].column);
    if (column >= kMostColumns) return false;
    if (place_of_column_.size() <= column) place_of_column_.resize(column + 1, -1);
    place_of_column_[column] = static_cast<int>(i);
  }
  // Interior pages are few: the children of those that are open are kept.
  struct Open {
    std::vector<uint32_t> children;
    size_t next = 0;
  };
  std::vector<Open> open;
  open.push_back({{root}, 0});
  visited_ = 0;
  is_whole_ = true;
  while (!open.empty()) {
    if (open.back().next == open.back().children.size()) {
      open.pop_back();
      continue;
    }
    const uint32_t number = open.back().children[open.back().next++];
    const char* const bytes = page(number);
    if (bytes == nullptr || ++visited_ > page_count_) return false;
    const uint32_t header = number == 1 ? kFileHeaderBytes : 0;
    const auto type = static_cast<uint8_t>(bytes[header]);
    if (type == kLeaf) {
      if (!read_leaf(bytes, header, visit)) return false;
      continue;
    }
    if (type != kInterior || open.size() == kMostLevels) return false;
    const uint32_t cells = big16(bytes + header + 3);
    if (header + 12 + 2 * cells > usable_bytes_) return false;
    Open below;
    for (uint32_t i = 0; i < cells; ++i) {
      const uint32_t at = big16(bytes + header + 12 + 2 * i);
      if (at + 4 > usable_bytes_) return false;
      below.children.push_back(big32(bytes + at));
    }
    below.children.push_back(big32(bytes + header + 8));
    open.push_back(std::move(below));
  }
  return is_whole_;
}

bool TablePages::read_leaf(const char* page, uint32_t header, const Visit& visit) {
  const uint32_t cells = big16(page + header + 3);
  if (header + 8 + 2 * cells > usable_bytes_) return false;
  std::vector<char> kept;
  for (uint32_t i = 0; i < cells; ++i) {
    const uint32_t at = big16(page + header + 8 + 2 * i);
    if (at >= usable_bytes_) return false;
    uint64_t size = 0;
    // A row that goes on in other pages moves the window: this page is needed afterwards.
    const char* const body = read_varint(page + at, page + usable_bytes_, size);
    if (body != nullptr && size > usable_bytes_ - 35 && kept.empty()) {
      kept.assign(page, page + page_bytes_);
      page = kept.data();
    }
    if (!read_cell(page, page + at, visit)) return false;
  }
  return true;
}

bool TablePages::read_cell(const char* page, const char* at, const Visit& visit) {
  const char* const end = page + usable_bytes_;
  uint64_t size = 0;
  uint64_t row_id = 0;
  at = read_varint(at, end, size);
  if (at != nullptr) at = read_varint(at, end, row_id);
  if (at == nullptr) return false;
  if (size > kMostPayload) {  // the rows after it are as good as any
    is_whole_ = false;
    return true;
  }
  const auto left = static_cast<uint64_t>(end - at);
  const char* record = at;
  if (size <= usable_bytes_ - 35) {
    if (size > left) return false;
  } else {
    const uint64_t least = (usable_bytes_ - 12) * 32 / 255 - 23;
    const uint64_t most = least + (size - least) % (usable_bytes_ - 4);
    const uint64_t stored = most <= usable_bytes_ - 35 ? most : least;
    if (stored + 4 > left) return false;
    record = whole_payload(at, stored, size, big32(at + stored));
    if (record == nullptr) return false;
  }
  if (!read_record(record, size, static_cast<int64_t>(row_id))) return false;
  visit(values_.data());
  return true;
}

const char* TablePages::whole_payload(const char* local, uint64_t stored, uint64_t size, uint32_t overflow) {
  long_payload_.assign(local, static_cast<size_t>(stored));
  while (long_payload_.size() < size) {
    const char* const next = page(overflow);
    if (next == nullptr || ++visited_ > page_count_) return nullptr;
    const auto some = static_cast<size_t>(std::min<uint64_t>(size - long_payload_.size(), usable_bytes_ - 4));
    long_payload_.append(next + 4, some);
    overflow = big32(next);
  }
  return long_payload_.data();
}

bool TablePages::read_record(const char* record, uint64_t size, int64_t row_id) {
  const char* const end = record + size;
  uint64_t header_bytes = 0;
  const char* at = read_varint(record, end, header_bytes);
  if (at == nullptr || header_bytes > size || header_bytes < static_cast<uint64_t>(at - record)) return false;
  const char* const types_end = record + header_bytes;
  const char* body = types_end;
  size_t found = 0;
  for (size_t column = 0; column < place_of_column_.size() && at < types_end; ++column) {
    uint64_t type = 0;
    at = read_varint(at, types_end, type);
    if (at == nullptr || type > 2 * kMostPayload + 13 || type == 10 || type == 11) return false;
    const uint64_t bytes = bytes_of(type);
    if (bytes > static_cast<uint64_t>(end - body)) return false;
    if (const int place = place_of_column_[column]; place >= 0) {
      values_[static_cast<size_t>(place)] = {.bytes = body, .type = type};
    }
    body += bytes;
    found = column + 1;
  }
  // A row from before its table got more columns.
  for (size_t column = found; column < place_of_column_.size(); ++column) {
    if (const int place = place_of_column_[column]; place >= 0) values_[static_cast<size_t>(place)] = {};
  }
  for (size_t i = 0; i < wanted_->size(); ++i) {
    if ((*wanted_)[i].may_be_row_id && values_[i].is_null())
      values_[i] = {.type = StoredValue::kRowId, .row_id = row_id};
  }
  return true;
}

}  // namespace firelane::importer
