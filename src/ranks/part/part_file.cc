#include "ranks/part/part_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/crc32c.h"
#include "base/varint.h"

namespace firelane::ranks {

namespace {

enum class Section : uint32_t {
  kEnd = 0,
  kHead = 1,
  kGroups = 2,
  kCollectives = 3,
  kSteps = 4,
  kKernels = 5,
  kPlaces = 6,
  kShapes = 7,
  kDeviceState = 8
};
enum class Form : uint8_t { kConstant = 0, kPlain = 1, kDelta = 2 };

constexpr uint64_t kMostRows = uint64_t{1} << 32;
constexpr uint64_t kMostNames = uint64_t{1} << 20;
constexpr uint64_t kMostRanks = uint64_t{1} << 20;

// The values as unsigned distances from the least of them.
struct Packed {
  int64_t base = 0;
  uint8_t width = 0;  // bytes a value: 0, 1, 2, 4 or 8
};

uint8_t width_of(uint64_t span) {
  return span == 0 ? 0 : span <= 0xFF ? 1 : span <= 0xFFFF ? 2 : span <= 0xFFFFFFFF ? 4 : 8;
}

// Differences wrap around, and reading wraps back: any int64 may follow any other.
int64_t minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

template <typename Value>
Packed packing(size_t rows, const Value& value) {
  int64_t least = rows == 0 ? 0 : value(0);
  int64_t most = least;
  for (size_t i = 1; i < rows; ++i) {
    least = std::min(least, value(i));
    most = std::max(most, value(i));
  }
  return {least, width_of(static_cast<uint64_t>(most) - static_cast<uint64_t>(least))};
}

template <typename Value>
void append_values(std::string& out, size_t rows, const Packed& packed, const Value& value) {
  const size_t at = out.size();
  out.resize(at + rows * packed.width);
  char* to = out.data() + at;
  for (size_t i = 0; i < rows && packed.width > 0; ++i, to += packed.width) {
    const uint64_t distance = static_cast<uint64_t>(value(i)) - static_cast<uint64_t>(packed.base);
    std::memcpy(to, &distance, packed.width);
  }
}

void append_column(std::string& out, const std::vector<int64_t>& values) {
  const size_t rows = values.size();
  const auto plain = [&](size_t i) { return values[i]; };
  const auto delta = [&](size_t i) { return i == 0 ? 0 : minus(values[i], values[i - 1]); };
  const Packed as_plain = packing(rows, plain);
  const Packed as_delta = packing(rows, delta);
  const bool by_delta = as_delta.width < as_plain.width;
  const Packed& packed = by_delta ? as_delta : as_plain;
  append_fixed(out, packed.width == 0 && !by_delta ? Form::kConstant : by_delta ? Form::kDelta : Form::kPlain);
  append_fixed(out, packed.width);
  append_fixed(out, packed.base);
  if (by_delta) {
    append_fixed(out, values.empty() ? int64_t{0} : values[0]);
    append_values(out, rows, packed, delta);
  } else {
    append_values(out, rows, packed, plain);
  }
}

template <typename T>
void unpack(std::string_view bytes, int64_t base, std::vector<int64_t>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T distance{};
    std::memcpy(&distance, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<int64_t>(static_cast<uint64_t>(base) + distance);
  }
}

bool read_column(ByteReader& in, uint64_t rows, std::vector<int64_t>& out) {
  const auto form = in.fixed<Form>();
  const auto width = in.fixed<uint8_t>();
  const auto base = in.fixed<int64_t>();
  const int64_t first = form == Form::kDelta ? in.fixed<int64_t>() : 0;
  if (width != 0 && width != 1 && width != 2 && width != 4 && width != 8) return false;
  const std::string_view bytes = in.bytes(rows * width);
  if (!in.ok() || form > Form::kDelta) return false;
  out.assign(static_cast<size_t>(rows), base);
  switch (width) {
    case 1: unpack<uint8_t>(bytes, base, out); break;
    case 2: unpack<uint16_t>(bytes, base, out); break;
    case 4: unpack<uint32_t>(bytes, base, out); break;
    case 8: unpack<uint64_t>(bytes, base, out); break;
    default: break;
  }
  if (form == Form::kDelta && !out.empty()) {
    out[0] = first;
    for (size_t i = 1; i < out.size(); ++i) {
      out[i] = static_cast<int64_t>(static_cast<uint64_t>(out[i]) + static_cast<uint64_t>(out[i - 1]));
    }
  }
  return true;
}

void append_section(std::string& out, Section kind, std::string_view payload) {
  std::string head;
  append_fixed(head, static_cast<uint32_t>(kind));
  append_fixed(head, static_cast<uint64_t>(payload.size()));
  const uint32_t sum = crc32c(payload, crc32c(head));
  out += head;
  append_fixed(out, sum);
  out += payload;
}

// Numbers and texts of the head, for both ways.
template <typename P, typename Number, typename Text>
void each_field(P& part, const Number& number, const Text& text) {
  text(part.path);
  text(part.format);
  text(part.host);
  text(part.device);
  text(part.backend);
  text(part.nccl_version);
  number(part.rank);
  number(part.world_size);
  number(part.unix_start_ns);
  number(part.duration_ns);
  number(part.clock_grain_ns);
  number(part.peak_bytes);
  number(part.reserved_bytes);
  number(part.capacity_bytes);
}

std::string head_of(const Part& part) {
  std::string out;
  each_field(part, [&](int64_t n) { append_zigzag(out, n); }, [&](const std::string& s) { append_text(out, s); });
  append_varint(out, part.has_device_work ? 1 : 0);
  append_varint(out, part.steps_marked ? 1 : 0);
  append_varint(out, part.losses.size());
  for (const auto& [name, count] : part.losses) {
    append_text(out, name);
    append_zigzag(out, count);
  }
  append_varint(out, part.dtypes.size());
  for (const std::string& dtype : part.dtypes) append_text(out, dtype);
  return out;
}

bool read_head(ByteReader in, Part& part) {
  each_field(part, [&](int64_t& n) { n = in.signed_varint(); }, [&](std::string& s) { s = in.text(); });
  part.has_device_work = in.varint() != 0;
  part.steps_marked = in.varint() != 0;
  const uint64_t losses = in.varint();
  if (losses > kMostNames) return false;
  for (uint64_t i = 0; i < losses && in.ok(); ++i) {
    std::string name(in.text());
    part.losses.emplace_back(std::move(name), in.signed_varint());
  }
  const uint64_t dtypes = in.varint();
  if (dtypes > kMostNames) return false;
  for (uint64_t i = 0; i < dtypes && in.ok(); ++i) part.dtypes.emplace_back(in.text());
  return in.ok();
}

std::string groups_of(const Part& part) {
  std::string out;
  append_varint(out, part.groups.size());
  for (const PartGroup& group : part.groups) {
    append_text(out, group.name);
    append_text(out, group.description);
    append_zigzag(out, group.size);
    append_varint(out, group.ranks_cut ? 1 : 0);
    append_varint(out, group.ranks.size());
    int64_t before = 0;
    for (const int64_t rank : group.ranks) {
      append_zigzag(out, minus(rank, before));
      before = rank;
    }
  }
  return out;
}

bool read_groups(ByteReader in, Part& part) {
  const uint64_t count = in.varint();
  if (count > kMostNames) return false;
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    PartGroup& group = part.groups.emplace_back();
    group.name = in.text();
    group.description = in.text();
    group.size = in.signed_varint();
    group.ranks_cut = in.varint() != 0;
    const uint64_t ranks = in.varint();
    if (ranks > kMostRanks || ranks > in.left()) return false;
    int64_t rank = 0;
    for (uint64_t r = 0; r < ranks; ++r) {
      rank = static_cast<int64_t>(static_cast<uint64_t>(rank) + static_cast<uint64_t>(in.signed_varint()));
      group.ranks.push_back(rank);
    }
  }
  return in.ok();
}

std::string kernels_of(const Part& part) {
  std::string out;
  append_varint(out, part.kernels.size());
  for (const PartKernel& kernel : part.kernels) {
    append_text(out, kernel.name);
    append_text(out, kernel.op);
    append_zigzag(out, kernel.calls);
    append_zigzag(out, kernel.total_ns);
    append_zigzag(out, kernel.work);
  }
  return out;
}

bool read_kernels(ByteReader in, Part& part) {
  const uint64_t count = in.varint();
  if (count > kMostNames) return false;
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    PartKernel& kernel = part.kernels.emplace_back();
    kernel.name = in.text();
    kernel.op = in.text();
    kernel.calls = in.signed_varint();
    kernel.total_ns = in.signed_varint();
    kernel.work = in.signed_varint();
  }
  return in.ok();
}

// Where the kernels are called: one entry each, in their order.
std::string places_of(const Part& part) {
  std::string out;
  append_varint(out, part.kernels.size());
  for (const PartKernel& kernel : part.kernels) {
    append_text(out, kernel.module);
    append_text(out, kernel.line);
  }
  return out;
}

bool read_places(ByteReader in, Part& part) {
  if (in.varint() != part.kernels.size()) return false;
  for (PartKernel& kernel : part.kernels) {
    kernel.module = in.text();
    kernel.line = in.text();
  }
  return in.ok();
}

std::string shapes_of(const Part& part) {
  std::string out;
  append_varint(out, part.kernels.size());
  for (const PartKernel& kernel : part.kernels) append_text(out, kernel.shapes);
  return out;
}

bool read_shapes(ByteReader in, Part& part) {
  if (in.varint() != part.kernels.size()) return false;
  for (PartKernel& kernel : part.kernels) kernel.shapes = in.text();
  return in.ok();
}

template <typename P, typename Number>
void each_state(P& part, const Number& number) {
  number(part.device_state.sm_clock_mhz);
  number(part.device_state.memory_clock_mhz);
  number(part.device_state.power_watts);
  number(part.device_state.temperature_celsius);
}

std::string device_state_of(const Part& part) {
  std::string out;
  each_state(part, [&](int64_t n) { append_zigzag(out, n); });
  return out;
}

bool read_device_state(ByteReader in, Part& part) {
  each_state(part, [&](int64_t& n) { n = in.signed_varint(); });
  return in.ok();
}

// Tables begin with the number of their columns: a later writer may add some at the end. Those that an older one did
// not have are not known.
constexpr uint64_t kFirstCollectiveColumns = 24;
constexpr uint64_t kFirstStepColumns = 13;
#define FL_COUNT_COLUMN(name, meaning) +1
constexpr uint64_t kCollectiveColumns = 0 FL_PART_COLLECTIVES(FL_COUNT_COLUMN);
constexpr uint64_t kStepColumns = 0 FL_PART_STEPS(FL_COUNT_COLUMN);
#undef FL_COUNT_COLUMN

template <typename Table, typename Each>
void each_column(Table& table, const Each& each) {
  if constexpr (requires { table.sequence; }) {
#define FL_VISIT(name, meaning) each(table.name);
    FL_PART_COLLECTIVES(FL_VISIT)
#undef FL_VISIT
  } else {
#define FL_VISIT(name, meaning) each(table.name);
    FL_PART_STEPS(FL_VISIT)
#undef FL_VISIT
  }
}

template <typename Table>
std::string table_of(const Table& table, uint64_t columns) {
  std::string out;
  append_fixed(out, static_cast<uint64_t>(table.size()));
  append_fixed(out, columns);
  each_column(table, [&](const std::vector<int64_t>& column) { append_column(out, column); });
  return out;
}

// A row of a constant column takes no bytes, so that a few bytes could ask for any memory: rows are bounded by the
// bytes of the section, which holds at least a byte a row of its times.
template <typename Table>
bool read_table(ByteReader in, uint64_t least_columns, Table& table) {
  const auto rows = in.fixed<uint64_t>();
  const auto there = in.fixed<uint64_t>();
  if (!in.ok() || rows > kMostRows || there < least_columns) return false;
  if (rows > 4096 && rows > in.left()) return false;
  bool good = true;
  uint64_t at = 0;
  each_column(table, [&](std::vector<int64_t>& column) {
    if (at++ < there) {
      good = good && read_column(in, rows, column);
    } else if (good) {
      column.assign(static_cast<size_t>(rows), -1);
    }
  });
  return good;
}

bool in_range(const std::vector<int64_t>& column, int64_t low, int64_t high) {
  return std::all_of(column.begin(), column.end(), [&](int64_t v) { return v >= low && v <= high; });
}

// Times and sizes far beyond any trace would overflow sums; indices must point somewhere.
constexpr int64_t kMostNumber = int64_t{1} << 56;

bool is_sound(const Part& part) {
  const auto size = [](const auto& list) { return static_cast<int64_t>(list.size()); };
  const PartCollectives& c = part.collectives;
  bool good = in_range(c.group, -1, size(part.groups) - 1) && in_range(c.dtype, -1, size(part.dtypes) - 1) &&
              in_range(c.kernel, -1, size(part.kernels) - 1) && in_range(c.op, 0, kCollectiveCount - 1) &&
              in_range(c.source, 0, 2) && in_range(c.step, -1, static_cast<int64_t>(part.steps.size()) - 1);
  each_column(c,
              [&](const std::vector<int64_t>& column) { good = good && in_range(column, -kMostNumber, kMostNumber); });
  each_column(part.steps,
              [&](const std::vector<int64_t>& column) { good = good && in_range(column, -kMostNumber, kMostNumber); });
  for (size_t i = 0; i < c.size() && good; ++i) {
    good = c.start_ns[i] <= c.end_ns[i] && (i == 0 || c.start_ns[i - 1] <= c.start_ns[i]);
  }
  good = good && part.rank >= -1 && part.rank < static_cast<int64_t>(kMostRanks) && part.world_size >= 0 &&
         part.world_size <= static_cast<int64_t>(kMostRanks) && part.clock_grain_ns >= 0 &&
         part.clock_grain_ns < 1'000'000'000;
  return good &&
         (part.unix_start_ns == kNoNumber || (part.unix_start_ns >= 0 && part.unix_start_ns < int64_t{1} << 62));
}

}  // namespace

bool is_part(std::string_view bytes) { return bytes.starts_with(kPartMagic); }

std::string encode_part(const Part& part) {
  std::string out(kPartMagic);
  append_fixed(out, kPartVersion);
  append_section(out, Section::kHead, head_of(part));
  append_section(out, Section::kGroups, groups_of(part));
  append_section(out, Section::kCollectives, table_of(part.collectives, kCollectiveColumns));
  append_section(out, Section::kSteps, table_of(part.steps, kStepColumns));
  append_section(out, Section::kKernels, kernels_of(part));
  append_section(out, Section::kPlaces, places_of(part));
  append_section(out, Section::kShapes, shapes_of(part));
  append_section(out, Section::kDeviceState, device_state_of(part));
  append_section(out, Section::kEnd, "");
  return out;
}

Result<Part> decode_part(std::string_view bytes, const std::string& name) {
  if (!is_part(bytes)) return Error{name + ": not a part; make one with firelane ranks map TRACE -o PART"};
  ByteReader in(bytes.substr(kPartMagic.size()));
  const auto version = in.fixed<uint32_t>();
  if (!in.ok()) return Error{name + ": the part is cut after " + std::to_string(bytes.size()) + " bytes; map it again"};
  if (version != kPartVersion) {
    return Error{name + ": a part of version " + std::to_string(version) + ", this firelane reads version " +
                 std::to_string(kPartVersion) + "; map the trace again with this firelane"};
  }
  const auto damaged = [&](const char* what) {
    return Error{name + ": the part is damaged (" + what + "); map its trace again"};
  };
  Part part;
  bool has_head = false;
  for (;;) {
    const std::string_view head = in.bytes(12);
    const auto sum = in.fixed<uint32_t>();
    ByteReader fields(head);
    const auto kind = static_cast<Section>(fields.fixed<uint32_t>());
    const std::string_view payload = in.bytes(fields.fixed<uint64_t>());
    if (!in.ok())
      return Error{name + ": the part is cut after " + std::to_string(bytes.size()) + " bytes; map it again"};
    if (crc32c(payload, crc32c(head)) != sum) return damaged("a checksum is wrong");
    if (kind == Section::kEnd) break;
    bool good = true;
    switch (kind) {
      case Section::kHead: good = read_head(ByteReader(payload), part); break;
      case Section::kGroups: good = read_groups(ByteReader(payload), part); break;
      case Section::kCollectives:
        good = read_table(ByteReader(payload), kFirstCollectiveColumns, part.collectives);
        break;
      case Section::kSteps: good = read_table(ByteReader(payload), kFirstStepColumns, part.steps); break;
      case Section::kKernels: good = read_kernels(ByteReader(payload), part); break;
      case Section::kPlaces: good = read_places(ByteReader(payload), part); break;
      case Section::kShapes: good = read_shapes(ByteReader(payload), part); break;
      case Section::kDeviceState: good = read_device_state(ByteReader(payload), part); break;
      default: break;
    }
    has_head |= kind == Section::kHead;
    if (!good) return damaged("a section ends early");
  }
  if (!has_head || !is_sound(part)) return damaged("its numbers contradict each other");
  return part;
}

Result<Part> read_part(const std::string& path) {
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream) return Error{path + ": cannot be opened"};
  const auto size = static_cast<std::streamoff>(stream.tellg());
  std::string bytes(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  stream.seekg(0);
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!stream) return Error{path + ": cannot be read"};
  return decode_part(bytes, path);
}

Result<void> write_part(const Part& part, const std::string& path) {
  const std::string unfinished = path + "." + std::to_string(::getpid()) + ".unfinished";
  std::ofstream stream(unfinished, std::ios::binary);
  const std::string bytes = encode_part(part);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  std::error_code error;
  if (!stream) {
    std::filesystem::remove(unfinished, error);
    return Error{path + ": cannot be written; name a folder that can be with -o"};
  }
  std::filesystem::rename(unfinished, path, error);
  if (error) return Error{path + ": " + error.message()};
  return {};
}

}  // namespace firelane::ranks
