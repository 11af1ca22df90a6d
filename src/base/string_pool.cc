#include "base/string_pool.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"

namespace firelane {

namespace {
constexpr size_t kFirstBlockBytes = 4096;
constexpr size_t kMaxBlockBytes = 1 << 20;
constexpr size_t kFirstSlots = 256;
}  // namespace

StringPool::StringPool() : views_(1), slots_(kFirstSlots) {}

size_t StringPool::probe(std::string_view text, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at].id != 0) {
    if (slots_[at].hash == hash && views_[slots_[at].id] == text) break;
    at = (at + 1) & mask;
  }
  return at;
}

StringId StringPool::intern(std::string_view text) {
  if (text.empty()) return kNoString;
  const auto hash = static_cast<uint32_t>(hash_text(text));
  size_t at = probe(text, hash);
  if (slots_[at].id != 0) return StringId{slots_[at].id};
  if (views_.size() * 2 > slots_.size()) {
    grow();
    at = probe(text, hash);
  }
  const auto id = static_cast<uint32_t>(views_.size());
  views_.push_back(store(text));
  slots_[at] = {.hash = hash, .id = id};
  return StringId{id};
}

StringId StringPool::find(std::string_view text) const {
  if (text.empty()) return kNoString;
  return StringId{slots_[probe(text, static_cast<uint32_t>(hash_text(text)))].id};
}

std::string_view StringPool::store(std::string_view text) {
  if (text.size() > free_bytes_) {
    const size_t grown = std::clamp(block_bytes_ * 2, kFirstBlockBytes, kMaxBlockBytes);
    const size_t bytes = std::max(grown, text.size());
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(bytes));
    free_ = blocks_.back().get();
    free_bytes_ = bytes;
    block_bytes_ = grown;
  }
  std::memcpy(free_, text.data(), text.size());
  const std::string_view stored(free_, text.size());
  free_ += text.size();
  free_bytes_ -= text.size();
  return stored;
}

void StringPool::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id == 0) continue;
    size_t at = slot.hash & mask;
    while (slots_[at].id != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

size_t StringPool::memory_bytes() const {
  size_t text_bytes = 0;
  for (const std::string_view view : views_) text_bytes += view.size();
  return text_bytes + views_.capacity() * sizeof(std::string_view) + slots_.capacity() * sizeof(Slot);
}

}  // namespace firelane
