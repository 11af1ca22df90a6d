#include "format/chunk.h"

#include <zstd.h>

#include <cstring>

#include "base/crc32c.h"
#include "base/varint.h"

namespace firelane::format {
namespace {

template <typename T>
T read_at(std::string_view bytes, size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

void append_chunk_header(std::string& out, ChunkKind kind, uint8_t flags, uint32_t stored, uint32_t raw,
                         uint32_t number) {
  out.append(kChunkMarker);
  append_fixed(out, static_cast<uint8_t>(kind));
  append_fixed(out, flags);
  append_fixed(out, uint16_t{0});
  append_fixed(out, stored);
  append_fixed(out, raw);
  append_fixed(out, number);
}

}  // namespace

ChunkWriter::ChunkWriter(ByteSink& sink, int level) : sink_(sink), zstd_(ZSTD_createCCtx()), level_(level) {}
ChunkWriter::~ChunkWriter() { ZSTD_freeCCtx(zstd_); }

std::string ChunkWriter::write_header(uint64_t trace_id) {
  buffer_.clear();
  buffer_.append(kLaneMagic);
  append_fixed(buffer_, kLaneMajor);
  append_fixed(buffer_, kLaneMinor);
  append_fixed(buffer_, uint16_t{0});
  append_fixed(buffer_, trace_id);
  std::string error = sink_.reserve(buffer_.size() + kEndBytes);
  if (error.empty()) error = sink_.write(buffer_);
  if (error.empty()) offset_ += buffer_.size();
  return error;
}

std::string ChunkWriter::write_chunk(ChunkKind kind, std::string_view raw) {
  const std::string_view chunk = encode(kind, raw);
  if (std::string error = sink_.reserve(chunk.size() + kEndBytes); !error.empty()) return error;
  return append(kind, chunk);
}

std::string ChunkWriter::write_last_notes(std::string_view raw) {
  return append(ChunkKind::kNotes, encode(ChunkKind::kNotes, raw));
}

std::string ChunkWriter::finish(uint64_t event_count) {
  const uint64_t index_offset = offset_;
  std::string_view index = encode_index(event_count, entries_.size() == next_number_);
  if (!sink_.reserve(index.size() + kTrailerBytes).empty()) index = encode_index(event_count, false);
  if (std::string error = append(ChunkKind::kIndex, index); !error.empty()) return error;
  std::string trailer;
  append_fixed(trailer, index_offset);
  trailer.append(kTrailerMagic);
  std::string error = sink_.write(trailer);
  if (error.empty()) offset_ += trailer.size();
  return error;
}

// Valid until the next call.
std::string_view ChunkWriter::encode(ChunkKind kind, std::string_view raw) {
  buffer_.resize(kChunkHeaderBytes + ZSTD_compressBound(raw.size()));
  char* payload = buffer_.data() + kChunkHeaderBytes;
  size_t stored = zstd_ == nullptr ? raw.size()
                                   : ZSTD_compressCCtx(zstd_, payload, buffer_.size() - kChunkHeaderBytes, raw.data(),
                                                       raw.size(), level_);
  uint8_t flags = kChunkFlagZstd;
  if (ZSTD_isError(stored) != 0 || stored >= raw.size()) {
    flags = 0;
    stored = raw.size();
    if (stored != 0) std::memcpy(payload, raw.data(), stored);
  }
  std::string head;
  append_chunk_header(head, kind, flags, static_cast<uint32_t>(stored), static_cast<uint32_t>(raw.size()),
                      next_number_);
  append_fixed(head, crc32c({payload, stored}, crc32c(head)));
  std::memcpy(buffer_.data(), head.data(), kChunkHeaderBytes);
  return std::string_view(buffer_).substr(0, kChunkHeaderBytes + stored);
}

std::string ChunkWriter::append(ChunkKind kind, std::string_view chunk) {
  if (std::string error = sink_.write(chunk); !error.empty()) return error;
  if (entries_.size() < kMaxEntries) entries_.push_back({offset_, kind});
  offset_ += chunk.size();
  ++next_number_;
  return {};
}

std::string_view ChunkWriter::encode_index(uint64_t event_count, bool with_list) {
  std::string raw;
  append_varint(raw, event_count);
  append_varint(raw, with_list ? entries_.size() : 0);
  uint64_t last = 0;
  for (const Entry& entry : entries_) {
    if (!with_list) break;
    append_varint(raw, static_cast<uint64_t>(entry.kind));
    append_varint(raw, entry.offset - last);
    last = entry.offset;
  }
  return encode(ChunkKind::kIndex, raw);
}

std::string encode_chunk(ChunkKind kind, uint8_t flags, uint32_t raw_size, uint32_t number, std::string_view stored) {
  std::string out;
  append_chunk_header(out, kind, flags, static_cast<uint32_t>(stored.size()), raw_size, number);
  append_fixed(out, crc32c(stored, crc32c(out)));
  out.append(stored);
  return out;
}

ChunkReader::ChunkReader(std::string_view file) : file_(file), zstd_(ZSTD_createDCtx()) {}
ChunkReader::~ChunkReader() { ZSTD_freeDCtx(zstd_); }

Result<void> ChunkReader::read_header(const std::string& name) {
  if (!file_.starts_with(kLaneMagic)) {
    return Error{name + ": not a .lane file (no LANE at byte 0)"};
  }
  if (file_.size() < kFileHeaderBytes) {
    return Error{name + ": the file ends inside its header: the recording was cut off before its first event"};
  }
  const auto major = read_at<uint8_t>(file_, 4);
  if (major == 0 || major > kLaneMajor) {
    return Error{name + ": .lane version " + std::to_string(major) + ", this firelane reads up to " +
                 std::to_string(kLaneMajor) + "; update firelane"};
  }
  trace_id_ = read_at<uint64_t>(file_, 8);
  at_ = kFileHeaderBytes;
  return {};
}

ChunkReader::Outcome ChunkReader::try_chunk(size_t at, Chunk& chunk, size_t& end) {
  if (file_.size() - at < kChunkHeaderBytes) return Outcome::kCutOff;
  if (file_.substr(at, kChunkMarker.size()) != kChunkMarker) return Outcome::kDamaged;
  const auto flags = read_at<uint8_t>(file_, at + 5);
  const auto stored = read_at<uint32_t>(file_, at + 8);
  const auto raw = read_at<uint32_t>(file_, at + 12);
  if (stored > kMaxChunkBytes || raw > kMaxChunkBytes) return Outcome::kDamaged;
  if (file_.size() - at - kChunkHeaderBytes < stored) return Outcome::kCutOff;
  const std::string_view payload = file_.substr(at + kChunkHeaderBytes, stored);
  if (crc32c(payload, crc32c(file_.substr(at, 20))) != read_at<uint32_t>(file_, at + 20)) {
    searched_bytes_ += stored;
    return Outcome::kDamaged;
  }
  chunk.kind = static_cast<ChunkKind>(read_at<uint8_t>(file_, at + 4));
  chunk.number = read_at<uint32_t>(file_, at + 16);
  chunk.offset = at;
  end = at + kChunkHeaderBytes + stored;
  if ((flags & kChunkFlagZstd) == 0) {
    chunk.payload = payload;
    return stored == raw ? Outcome::kOk : Outcome::kDamaged;
  }
  // The frame's header has its size: checked before anything is allocated.
  if (ZSTD_getFrameContentSize(payload.data(), payload.size()) != raw) return Outcome::kDamaged;
  raw_.resize(raw);
  if (ZSTD_decompressDCtx(zstd_, raw_.data(), raw, payload.data(), payload.size()) != raw) return Outcome::kDamaged;
  chunk.payload = raw_;
  return Outcome::kOk;
}

bool ChunkReader::next(Chunk& chunk) {
  bool searching = false;
  while (at_ < file_.size()) {
    if (!searching && file_.size() - at_ == kTrailerBytes && file_.substr(at_ + 8) == kTrailerMagic) {
      clean_end_ = true;
      at_ = file_.size();
      return false;
    }
    // Room that the recorder had set aside when the program was killed (file_sink.cc).
    if (!searching && file_.find_first_not_of('\0', at_) == std::string_view::npos) {
      at_ = file_.size();
      return false;
    }
    size_t end = at_;
    const Outcome outcome = try_chunk(at_, chunk, end);
    if (outcome == Outcome::kOk) {
      at_ = end;
      content_bytes_ += chunk.payload.size();
      return true;
    }
    // A size that runs past the end may itself be damage: look for a later chunk before
    // calling the file torn.
    const size_t found = file_.find(kChunkMarker, at_ + 1);
    const bool is_last = found == std::string_view::npos;
    const bool is_torn = is_last && (outcome == Outcome::kCutOff || file_.back() == '\0');  // zeros: killed in a write
    if (!searching && !is_torn) ++damaged_;
    searching = true;
    // Crafted files can make every marker claim the rest of the file: bound the re-reading.
    if (is_last || searched_bytes_ > 4 * file_.size()) break;
    at_ = found;
  }
  cut_off_ |= at_ < file_.size();
  at_ = file_.size();
  return false;
}

}  // namespace firelane::format
