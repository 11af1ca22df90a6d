#include "import/gzip_source.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "import/decompress.h"

namespace firelane::importer {

namespace {

constexpr size_t kInputBytes = 1 << 18;
constexpr uint64_t kCheckpointEvery = uint64_t{16} << 20;

enum class Progress { kMore, kEnd, kTorn, kDamaged, kTrailing };

// One inflater over a source that can be read at any place. Copying it is a checkpoint.
// The state begins as zeros: isal_inflate_init() leaves parts as they are (seen in 2.30), damaged headers make it use
// them.
struct Inflater {
  inflate_state state{};
  uint64_t in_offset = 0;  // next compressed byte to read into the input buffer
  uint64_t unused_in = 0;  // bytes of the input buffer not consumed at a checkpoint
  uint64_t out_offset = 0;
  bool member_open = false;
  bool ended = false;  // at the end or at damage, behind which ISA-L's state means nothing
};

class GzipSource : public ByteSource {
 public:
  GzipSource(std::unique_ptr<ByteSource> compressed, uint64_t max_content_bytes)
      : compressed_(std::move(compressed)), max_content_bytes_(max_content_bytes) {
    start(main_);
  }

  size_t read(char* out, size_t size) override {
    size_t done = 0;
    while (done < size && !main_.ended) {
      const uint64_t boundary = (main_.out_offset / kCheckpointEvery + 1) * kCheckpointEvery;
      const size_t want = std::min<uint64_t>(size - done, boundary - main_.out_offset);
      const size_t got = inflate_some(main_, main_input_, out + done, want);
      done += got;
      if (main_.out_offset == boundary) keep_checkpoint();
      if (too_large()) break;
    }
    return done;
  }

  Result<size_t> read_at(uint64_t offset, char* out, size_t size) const override {
    const std::scoped_lock lock(mutex_);
    if (side_ == nullptr || side_->out_offset > offset || next_checkpoint(offset) > side_->out_offset) seek(offset);
    std::array<char, 1 << 16> skipped;
    while (side_->out_offset < offset) {
      const size_t want = std::min<uint64_t>(skipped.size(), offset - side_->out_offset);
      if (inflate_some(*side_, side_input_, skipped.data(), want) == 0) return size_t{0};
    }
    size_t done = 0;
    while (done < size) {
      const size_t got = inflate_some(*side_, side_input_, out + done, size - done);
      if (got == 0) break;
      done += got;
    }
    return done;
  }

  uint64_t consumed_bytes() const override { return main_.in_offset; }
  uint64_t total_bytes() const override { return compressed_->total_bytes(); }
  const std::string& fatal() const override { return fatal_; }

 private:
  static void start(Inflater& inflater) {
    isal_inflate_init(&inflater.state);
    inflater.state.crc_flag = ISAL_GZIP;
    inflater.state.next_in = nullptr;
    inflater.state.avail_in = 0;
    inflater.member_open = true;
  }

  // Input comes from read_at for checkpoint readers too, so the main reader uses it as well.
  bool refill(Inflater& inflater, std::vector<char>& input) const {
    input.resize(kInputBytes);
    const auto got = compressed_->read_at(inflater.in_offset, input.data(), input.size());
    const size_t size = got.ok() ? got.value() : 0;
    inflater.in_offset += size;
    inflater.state.next_in = reinterpret_cast<uint8_t*>(input.data());
    inflater.state.avail_in = static_cast<uint32_t>(size);
    return size > 0;
  }

  // Inflates up to `size` bytes. 0 = the end (or damage, which the main reader reports).
  size_t inflate_some(Inflater& inflater, std::vector<char>& input, char* out, size_t size) const {
    const size_t limit = std::min<size_t>(size, 1u << 30);
    inflater.state.next_out = reinterpret_cast<uint8_t*>(out);
    inflater.state.avail_out = static_cast<uint32_t>(limit);
    while (inflater.state.avail_out > 0 && !inflater.ended) {
      const Progress progress = advance(inflater, input);
      if (progress == Progress::kMore) continue;
      inflater.ended = true;
      if (&inflater == &main_) report_end(progress);
      break;
    }
    const size_t got = limit - inflater.state.avail_out;
    inflater.out_offset += got;
    return got;
  }

  Progress advance(Inflater& inflater, std::vector<char>& input) const {
    if (!inflater.member_open) return next_member(inflater, input);
    const bool pending =
        inflater.state.tmp_out_valid > inflater.state.tmp_out_processed || inflater.state.read_in_length > 0;
    if (inflater.state.avail_in == 0 && !refill(inflater, input) && !pending) return Progress::kTorn;
    const uint32_t in_before = inflater.state.avail_in;
    const uint32_t out_before = inflater.state.avail_out;
    if (isal_inflate(&inflater.state) != ISAL_DECOMP_OK) return Progress::kDamaged;
    if (inflater.state.block_state == ISAL_BLOCK_FINISH) {
      inflater.member_open = false;
    } else if (in_before == inflater.state.avail_in && out_before == inflater.state.avail_out &&
               inflater.state.avail_in == 0) {
      return Progress::kTorn;  // needs input that is not there
    }
    return Progress::kMore;
  }

  // After a member: another gzip header, zero padding, or something that is not ours.
  Progress next_member(Inflater& inflater, std::vector<char>& input) const {
    // Whole bytes that the inflater had taken into its bit buffer belong to what follows.
    const auto buffered = static_cast<uint64_t>(inflater.state.read_in_length / 8);
    const uint64_t at = inflater.in_offset - inflater.state.avail_in - buffered;
    char magic[2] = {};
    const auto got = compressed_->read_at(at, magic, sizeof(magic));
    const size_t size = got.ok() ? got.value() : 0;
    if (size == 0) return Progress::kEnd;
    if (!is_gzip({magic, size})) return Progress::kTrailing;
    uint8_t* const next_out = inflater.state.next_out;
    const uint32_t avail_out = inflater.state.avail_out;
    start(inflater);
    inflater.state.next_out = next_out;
    inflater.state.avail_out = avail_out;
    inflater.in_offset = at;
    refill(inflater, input);
    return Progress::kMore;
  }

  void report_end(Progress progress) const {
    auto* self = const_cast<GzipSource*>(this);  // only the main reader's thread comes here
    if (progress == Progress::kTorn) ++self->losses_[Stat::kTruncated];
    if (progress == Progress::kDamaged) ++self->losses_[Stat::kCompressionDamaged];
    if (progress == Progress::kTrailing) ++self->losses_[Stat::kCompressionTrailingBytes];
  }

  bool too_large() {
    const uint64_t consumed = main_.in_offset - main_.state.avail_in;
    fatal_ = refuse_bomb(consumed, main_.out_offset, max_content_bytes_);
    main_.ended = main_.ended || !fatal_.empty();
    return !fatal_.empty();
  }

  void keep_checkpoint() {
    auto copy = std::make_unique<Inflater>(main_);
    copy->unused_in = main_.state.avail_in;
    const std::scoped_lock lock(mutex_);
    checkpoints_.push_back(std::move(copy));
  }

  uint64_t next_checkpoint(uint64_t offset) const {  // the last one at or before `offset`
    return std::min<uint64_t>(offset / kCheckpointEvery, checkpoints_.size()) * kCheckpointEvery;
  }

  void seek(uint64_t offset) const {
    const size_t index = next_checkpoint(offset) / kCheckpointEvery;
    if (index == 0) {
      side_ = std::make_unique<Inflater>();
      start(*side_);
      return;
    }
    side_ = std::make_unique<Inflater>(*checkpoints_[index - 1]);
    side_->in_offset -= side_->unused_in;  // read the unused input again
    side_->state.avail_in = 0;
  }

  std::unique_ptr<ByteSource> compressed_;
  uint64_t max_content_bytes_;
  Inflater main_;
  std::vector<char> main_input_;
  std::vector<std::unique_ptr<Inflater>> checkpoints_;
  std::string fatal_;

  mutable std::mutex mutex_;
  mutable std::unique_ptr<Inflater> side_;  // the reader behind read_at
  mutable std::vector<char> side_input_;
};

}  // namespace

bool is_gzip(std::string_view begin) { return begin.starts_with("\x1f\x8b"); }

std::unique_ptr<ByteSource> open_gzip(std::unique_ptr<ByteSource> compressed, uint64_t max_content_bytes) {
  return std::make_unique<GzipSource>(std::move(compressed), max_content_bytes);
}

}  // namespace firelane::importer
