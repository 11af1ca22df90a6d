#include "import/xplane/space.h"

#include <algorithm>
#include <cstring>

namespace firelane::importer::xplane {

namespace {

constexpr size_t kPiece = size_t{4} << 20;
constexpr size_t kBufferBytes = size_t{64} << 10;

enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

}  // namespace

// Short reads come from the buffer; long ones take what is left of it and go to the source.
bool SpaceFields::take(char* out, size_t size) {
  size_t got = 0;
  while (got < size) {
    if (at_ == buffer_.size()) {
      if (size - got >= kBufferBytes) {
        got += source_.read(out + got, size - got);
        break;
      }
      buffer_.resize(kBufferBytes);
      buffer_.resize(source_.read(buffer_.data(), kBufferBytes));
      at_ = 0;
      if (buffer_.empty()) break;
    }
    const size_t some = std::min(size - got, buffer_.size() - at_);
    std::memcpy(out + got, buffer_.data() + at_, some);
    at_ += some;
    got += some;
  }
  read_bytes_ += got;
  return got == size;
}

bool SpaceFields::varint(uint64_t& number) {
  number = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    char byte = 0;
    if (!take(&byte, 1)) return false;
    number |= (static_cast<uint64_t>(byte) & 127) << shift;
    if ((static_cast<unsigned char>(byte) & 128) == 0) return true;
  }
  return false;
}

bool SpaceFields::pass(uint64_t size) {
  char ignored[8];
  return take(ignored, size);
}

// A length that the file only claims costs no memory: the room grows with what is there.
bool SpaceFields::take_bytes(uint64_t size) {
  bytes_.clear();
  while (bytes_.size() < size) {
    if (read_bytes_ > request_.max_content_bytes) {
      is_too_long_ = true;
      return false;
    }
    const size_t at = bytes_.size();
    const auto piece = static_cast<size_t>(std::min<uint64_t>(size - at, std::max(at, kPiece)));
    bytes_.resize(at + piece);
    if (!take(bytes_.data() + at, piece)) return false;
  }
  return true;
}

bool SpaceFields::next(LossCounts& losses) {
  const auto broken = [&] {
    ++losses[Stat::kMessageMalformed];
    return false;
  };
  for (;;) {
    if (request_.progress) request_.progress(source_.consumed_bytes(), source_.total_bytes());
    const uint64_t before = read_bytes_;
    uint64_t key = 0;
    if (!varint(key)) return read_bytes_ == before ? false : broken();
    tag_ = static_cast<uint32_t>(key >> 3);
    if (tag_ == 0 || key > UINT32_MAX) return broken();
    uint64_t size = 0;
    switch (key & 7) {
      case kVarint:
        if (!varint(size)) return broken();
        break;
      case kFixed64:
        if (!pass(8)) return broken();
        break;
      case kFixed32:
        if (!pass(4)) return broken();
        break;
      case kBytes: return (varint(size) && take_bytes(size)) || broken();
      default: return broken();
    }
  }
}

std::string SpaceFields::fatal() const {
  if (!source_.fatal().empty()) return source_.fatal();
  if (!is_too_long_) return "";
  return "unpacks to more than " + std::to_string(request_.max_content_bytes) + " bytes; is this a trace?";
}

}  // namespace firelane::importer::xplane
