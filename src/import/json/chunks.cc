#include "import/json/chunks.h"

#include <cstring>

#include "import/json/scan.h"

namespace firelane::importer {

ChunkFeeder::ChunkFeeder(ByteSource& source, std::string carry, uint64_t carry_source, size_t chunk_bytes)
    : source_(source), carry_(std::move(carry)), carry_source_(carry_source), chunk_bytes_(chunk_bytes) {}

bool ChunkFeeder::next(ChunkBuffer& chunk) {
  const std::scoped_lock lock(mutex_);
  if (ended_) return false;
  chunk.source = carry_source_;
  chunk.size = carry_.size();
  size_t target = std::max(chunk_bytes_, carry_.size() + chunk_bytes_ / 2);
  chunk.reserve(target);
  std::memcpy(chunk.text(), carry_.data(), carry_.size());

  for (;;) {
    const size_t want = target - chunk.size;
    const size_t got = source_.read(chunk.text() + chunk.size, want);
    chunk.size += got;
    ended_ = got < want;
    const size_t comma = last_event_comma({chunk.text(), chunk.size});
    if (comma != kNotFound) {
      carry_.assign(chunk.text() + comma + 1, chunk.size - comma - 1);
      carry_source_ = chunk.source + comma + 1;
      chunk.size = comma;
      chunk.index = next_index_++;
      return true;
    }
    // No comma yet: one long event. Read on, within reason.
    if (ended_ || chunk.size >= kMaxEventBytes) {
      ended_ = true;
      carry_.assign(chunk.text(), chunk.size);
      carry_source_ = chunk.source;
      return false;
    }
    target *= 2;
    chunk.reserve(target);
  }
}

}  // namespace firelane::importer
