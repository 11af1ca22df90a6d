#include "import/zstd_source.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "import/decompress.h"

namespace firelane::importer {

namespace {

constexpr size_t kCompressedBytes = 1 << 18;

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// A place where a frame begins.
struct FrameStart {
  uint64_t in_offset = 0;
  uint64_t out_offset = 0;
};

enum class Ending { kNone, kWhole, kTorn, kDamaged, kTrailing };

// One pass over the frames from one of them on.
class Decoder {
 public:
  Decoder(const ByteSource& compressed, const FrameStart& from)
      : compressed_(compressed),
        context_(ZSTD_createDCtx()),
        in_offset_(from.in_offset),
        out_offset_(from.out_offset) {}

  // Decompresses up to `size` bytes; 0 at the end, or at damage.
  size_t read(char* out, size_t size) {
    ZSTD_outBuffer to{out, size, 0};
    while (to.pos < to.size && ending_ == Ending::kNone) step(to);
    out_offset_ += to.pos;
    return to.pos;
  }

  uint64_t in_offset() const { return in_offset_ + from_.pos; }
  uint64_t out_offset() const { return out_offset_; }
  Ending ending() const { return ending_; }
  // All frames so far except the first.
  const std::vector<FrameStart>& frames() const { return frames_; }
  void stop() { ending_ = Ending::kWhole; }

 private:
  void step(ZSTD_outBuffer& to) {
    if (from_.pos == from_.size && !refill()) {
      // What is still inside of the decoder comes out without input.
      const size_t before = to.pos;
      if (is_in_frame_) decode(to);
      if (ending_ == Ending::kNone && to.pos == before) ending_ = is_in_frame_ ? Ending::kTorn : Ending::kWhole;
      return;
    }
    if (!is_in_frame_ && !begin_frame(to)) return;
    decode(to);
  }

  void decode(ZSTD_outBuffer& to) {
    const size_t left = context_ == nullptr ? 1 : ZSTD_decompressStream(context_.get(), &to, &from_);
    if (context_ == nullptr || ZSTD_isError(left) != 0) {
      ending_ = Ending::kDamaged;
    } else if (left == 0) {
      is_in_frame_ = false;
    }
  }

  bool begin_frame(const ZSTD_outBuffer& to) {
    std::array<char, 4> magic{};
    const auto got = compressed_.read_at(in_offset(), magic.data(), magic.size());
    if (!got.ok() || !is_zstd({magic.data(), got.value()})) {
      ending_ = Ending::kTrailing;
      return false;
    }
    if (in_offset() > 0) frames_.push_back({in_offset(), out_offset_ + to.pos});
    is_in_frame_ = true;
    return true;
  }

  bool refill() {
    in_offset_ += from_.pos;
    input_.resize(kCompressedBytes);
    const auto got = compressed_.read_at(in_offset_, input_.data(), input_.size());
    from_ = {input_.data(), got.ok() ? got.value() : 0, 0};
    return from_.size > 0;
  }

  const ByteSource& compressed_;
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
  std::vector<char> input_;
  ZSTD_inBuffer from_{nullptr, 0, 0};
  uint64_t in_offset_;  // of the first byte of the input buffer
  uint64_t out_offset_;
  bool is_in_frame_ = false;
  Ending ending_ = Ending::kNone;
  std::vector<FrameStart> frames_;
};

class ZstdSource : public ByteSource {
 public:
  ZstdSource(std::unique_ptr<ByteSource> compressed, uint64_t max_content_bytes)
      : compressed_(std::move(compressed)), max_content_bytes_(max_content_bytes), main_(*compressed_, {}) {}

  size_t read(char* out, size_t size) override {
    if (main_.ending() != Ending::kNone) return 0;
    const size_t got = main_.read(out, size);
    report_end();
    fatal_ = refuse_bomb(main_.in_offset(), main_.out_offset(), max_content_bytes_);
    if (!fatal_.empty()) main_.stop();
    const std::scoped_lock lock(mutex_);
    frames_ = main_.frames();
    return got;
  }

  Result<size_t> read_at(uint64_t offset, char* out, size_t size) const override {
    const std::scoped_lock lock(mutex_);
    const FrameStart from = frame_before(offset);
    const bool may_go_on = side_ != nullptr && side_->out_offset() <= offset && side_->out_offset() >= from.out_offset;
    if (!may_go_on) side_ = std::make_unique<Decoder>(*compressed_, from);
    std::array<char, 1 << 16> skipped;
    while (side_->out_offset() < offset) {
      const size_t want = std::min<uint64_t>(skipped.size(), offset - side_->out_offset());
      if (side_->read(skipped.data(), want) == 0) return size_t{0};
    }
    return side_->read(out, size);
  }

  uint64_t consumed_bytes() const override { return main_.in_offset(); }
  uint64_t total_bytes() const override { return compressed_->total_bytes(); }
  const std::string& fatal() const override { return fatal_; }

 private:
  void report_end() {
    if (main_.ending() == Ending::kTorn) ++losses_[Stat::kTruncated];
    if (main_.ending() == Ending::kDamaged) ++losses_[Stat::kCompressionDamaged];
    if (main_.ending() == Ending::kTrailing) ++losses_[Stat::kCompressionTrailingBytes];
  }

  FrameStart frame_before(uint64_t offset) const {
    const auto after = std::upper_bound(frames_.begin(), frames_.end(), offset,
                                        [](uint64_t at, const FrameStart& frame) { return at < frame.out_offset; });
    return after == frames_.begin() ? FrameStart{} : *std::prev(after);
  }

  std::unique_ptr<ByteSource> compressed_;
  uint64_t max_content_bytes_;
  Decoder main_;
  std::string fatal_;

  mutable std::mutex mutex_;
  std::vector<FrameStart> frames_;         // that main_ has met
  mutable std::unique_ptr<Decoder> side_;  // behind read_at
};

// Frames between 0x184D2A50 and 5F hold data for tools; they are passed over.
bool is_skippable(std::string_view begin) { return (begin[0] & 0xF0) == 0x50 && begin.substr(1, 3) == "\x2A\x4D\x18"; }

}  // namespace

bool is_zstd(std::string_view begin) {
  return begin.size() >= 4 && (begin.starts_with("\x28\xB5\x2F\xFD") || is_skippable(begin));
}

std::unique_ptr<ByteSource> open_zstd(std::unique_ptr<ByteSource> compressed, uint64_t max_content_bytes) {
  return std::make_unique<ZstdSource>(std::move(compressed), max_content_bytes);
}

}  // namespace firelane::importer
