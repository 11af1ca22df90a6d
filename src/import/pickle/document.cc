#include "import/pickle/document.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace firelane::importer {

namespace {

constexpr int64_t kMostInline = (int64_t{1} << 60) - 1;
constexpr int32_t kUnknownPlace = -2, kNoPlace = -1;
// A key is looked for among the last pairs of a dictionary without a shape: no dictionary that a reader knows is
// larger.
constexpr uint32_t kMostPairsSearched = 4096;
constexpr uint32_t kFewestShared = 4;  // items of a list: shorter ones are not worth looking for
constexpr size_t kSharedSlots = size_t{1} << 15;

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

// Two chains at once: a call stack is long, and each step of a chain waits for the one before.
uint64_t hash_items(const uint32_t* bits, size_t count) {
  uint64_t even = count, odd = ~count;
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t words[4];
    std::memcpy(words, bits + i, sizeof(words));
    even = mix_hash(even ^ words[0], words[1]);
    odd = mix_hash(odd ^ words[2], words[3]);
  }
  for (; i < count; ++i) even = mix_hash(even, bits[i]);
  return mix_hash(even, odd);
}

}  // namespace

Document::Document() { last_shape_.fill(kPairs); }

// ---- reading -----------------------------------------------------------------------------

ValueType Document::type(Value value) const {
  switch (tag_of(value)) {
    case Tag::kWord: {
      const uint64_t word = payload_of(value);
      return word == 0 ? ValueType::kNone : word == kHugeWord ? ValueType::kInteger : ValueType::kTruth;
    }
    case Tag::kInteger:
    case Tag::kBig: return ValueType::kInteger;
    case Tag::kText: return ValueType::kText;
    case Tag::kList: return ValueType::kList;
    case Tag::kTuple: return ValueType::kTuple;
    case Tag::kDict: return ValueType::kDict;
    case Tag::kReal: return ValueType::kReal;
  }
  return ValueType::kNone;
}

std::optional<int64_t> Document::integer(Value value) const {
  if (tag_of(value) == Tag::kInteger) return static_cast<int64_t>(value.bits) >> 3;
  if (tag_of(value) == Tag::kBig) return bigs_[payload_of(value)];
  return std::nullopt;
}

std::optional<double> Document::real(Value value) const {
  if (tag_of(value) == Tag::kReal) return reals_[payload_of(value)];
  const std::optional<int64_t> number = integer(value);
  return number ? std::optional<double>(static_cast<double>(*number)) : std::nullopt;
}

std::optional<bool> Document::truth(Value value) const {
  if (value.bits == tagged(Tag::kWord, kTrueWord)) return true;
  if (value.bits == tagged(Tag::kWord, kFalseWord)) return false;
  return std::nullopt;
}

std::string_view Document::text(Value value) const {
  return tag_of(value) == Tag::kText ? strings_.view(static_cast<StringId>(payload_of(value))) : std::string_view();
}

size_t Document::size(Value value) const {
  const ValueType kind = type(value);
  if (kind != ValueType::kList && kind != ValueType::kTuple && kind != ValueType::kDict) return 0;
  size_t count = 0;
  each_chunk(container(value), [&](const Chunk& chunk) {
    count += chunk.count;
    return true;
  });
  return count;
}

uint32_t Document::container(Value value) const { return static_cast<uint32_t>(payload_of(value)); }

// ---- building ----------------------------------------------------------------------------

Value Document::of_integer(int64_t number) {
  if (number >= -kMostInline && number <= kMostInline) return {tagged(Tag::kInteger, static_cast<uint64_t>(number))};
  bigs_.push_back(number);
  return {tagged(Tag::kBig, bigs_.size() - 1)};
}

Value Document::of_real(double number) {
  reals_.push_back(number);
  return {tagged(Tag::kReal, reals_.size() - 1)};
}

Value Document::add_container(Tag tag) {
  FL_CHECK(containers_.size() < UINT32_MAX, "document: fewer than 2^32 containers");
  containers_.emplace_back();
  return {tagged(tag, containers_.size() - 1)};
}

Value Document::new_list() { return add_container(Tag::kList); }
Value Document::new_dict() { return add_container(Tag::kDict); }

Value Document::new_tuple(std::span<const Value> items) {
  const Value tuple = add_container(Tag::kTuple);
  append(tuple, items);
  return tuple;
}

Value* Document::room_for(size_t count) {
  if (count > free_count_) {
    const size_t wanted = std::max(count, kBlockValues);
    blocks_.push_back(std::make_unique_for_overwrite<Value[]>(wanted));
    block_bytes_ += wanted * sizeof(Value);
    // A large run has a block of its own; what is left of the last block stays in use.
    if (count >= kBlockValues) return blocks_.back().get();
    free_ = blocks_.back().get();
    free_count_ = wanted;
  }
  free_count_ -= count;
  return std::exchange(free_, free_ + count);
}

void Document::add_chunk(Value value, const Chunk& chunk) {
  Chunk& first = containers_[container(value)];
  if (first.count == 0) {
    first = chunk;
  } else if (chunk.count > 0) {
    more_[container(value)].push_back(chunk);
    ++more_chunks_;
  }
}

void Document::append(Value list, std::span<const Value> items) {
  if (items.empty()) return;
  const auto count = static_cast<uint32_t>(items.size());
  // Call stacks, most of a snapshot, are lists of references.
  uint64_t all_bits = 0;
  for (const Value item : items) all_bits |= item.bits;
  if (all_bits > UINT32_MAX) {
    Value* const room = room_for(items.size());
    std::copy(items.begin(), items.end(), room);
    return add_chunk(list, {room, count, kPairs});
  }
  if (narrow_.size() < items.size()) narrow_.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) narrow_[i] = static_cast<uint32_t>(items[i].bits);
  size_t slot = 0;
  const Value* found = count < kFewestShared ? nullptr : same_items(narrow_.data(), count, slot);
  if (found == nullptr) {
    Value* const room = room_for((items.size() + 1) / 2);
    std::memcpy(static_cast<void*>(room), narrow_.data(), count * sizeof(uint32_t));
    found = room;
    if (count >= kFewestShared) shared_[slot].items = room;
  }
  add_chunk(list, {found, count, kNarrow});
}

const Value* Document::same_items(const uint32_t* bits, uint32_t count, size_t& slot) {
  if (shared_.empty()) shared_.resize(kSharedSlots);
  const uint64_t hash = hash_items(bits, count);
  slot = hash % kSharedSlots;
  Shared& known = shared_[slot];
  const auto check = static_cast<uint32_t>(hash >> 32);
  const bool is_same = known.items != nullptr && known.count == count && known.hash == check &&
                       std::memcmp(known.items, bits, count * sizeof(uint32_t)) == 0;
  if (is_same) return known.items;
  known = {.count = count, .hash = check};
  return nullptr;
}

std::string_view Document::item_bytes(Value list) const {
  if (tag_of(list) != Tag::kList && tag_of(list) != Tag::kTuple) return {};
  const Chunk& chunk = containers_[container(list)];
  if (chunk.count == 0 || chunk.shape != kNarrow || more_.contains(container(list))) return {};
  return {reinterpret_cast<const char*>(chunk.items), chunk.count * sizeof(uint32_t)};
}

void Document::set_items(Value dict, std::span<const Value> pairs) {
  if (pairs.empty()) return;
  const auto count = static_cast<uint32_t>(pairs.size() / 2);
  const uint32_t shape = shape_of(pairs);
  if (shape == kPairs) {
    Value* const room = room_for(pairs.size());
    std::copy(pairs.begin(), pairs.end(), room);
    return add_chunk(dict, {room, count, kPairs});
  }
  Value* const room = room_for(count);
  for (uint32_t i = 0; i < count; ++i) room[i] = pairs[2 * i + 1];
  add_chunk(dict, {room, count, shape});
}

uint32_t Document::shape_of(std::span<const Value> pairs) {
  const size_t count = pairs.size() / 2;
  if (count > kMostKeys) return kPairs;
  uint32_t& last = last_shape_[count];
  if (last != kPairs && has_keys(last, pairs)) return last;
  uint64_t hash = count;
  for (size_t i = 0; i < count; ++i) {
    if (tag_of(pairs[2 * i]) != Tag::kText) return kPairs;
    hash = mix(hash, pairs[2 * i].bits);
  }
  std::vector<uint32_t>& same_hash = shapes_by_hash_[hash];
  for (const uint32_t shape : same_hash) {
    if (has_keys(shape, pairs)) return last = shape;
  }
  if (shapes_.size() >= kMostShapes) {
    if (same_hash.empty()) shapes_by_hash_.erase(hash);
    return kPairs;
  }
  Shape& added = shapes_.emplace_back();
  for (size_t i = 0; i < count; ++i) added.keys.push_back(pairs[2 * i]);
  same_hash.push_back(static_cast<uint32_t>(shapes_.size() - 1));
  return last = same_hash.back();
}

bool Document::has_keys(uint32_t shape, std::span<const Value> pairs) const {
  const std::vector<Value>& keys = shapes_[shape].keys;
  if (keys.size() != pairs.size() / 2) return false;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] != pairs[2 * i]) return false;
  }
  return true;
}

uint64_t Document::memory_bytes() const {
  constexpr uint64_t kMapNode = 96;  // of the map, its vector and the first chunks in it
  return block_bytes_ + containers_.size() * sizeof(Chunk) + more_.size() * kMapNode +
         2 * more_chunks_ * sizeof(Chunk) + (bigs_.capacity() + reals_.capacity()) * 8 + strings_.memory_bytes() +
         shared_.size() * sizeof(Shared) + narrow_.size() * sizeof(uint32_t);
}

// ---- fields ------------------------------------------------------------------------------

Field::Field(const Document& document, std::string_view key) : document_(document) {
  const StringId id = document.strings_.find(key);
  is_there_ = id != kNoString;
  key_ = {Document::tagged(Document::Tag::kText, static_cast<uint32_t>(id))};
}

Value Field::of(Value dict) const {
  if (!is_there_ || document_.type(dict) != ValueType::kDict) return kNoneValue;
  Value found = kNoneValue;
  uint32_t searched = 0;
  document_.each_chunk(document_.container(dict), [&](const Document::Chunk& chunk) {
    if (chunk.shape == Document::kPairs) {
      for (uint32_t i = 0; i < chunk.count && searched < kMostPairsSearched; ++i, ++searched) {
        if (chunk.items[2 * i] == key_) found = chunk.items[2 * i + 1];
      }
      return searched < kMostPairsSearched;
    }
    if (chunk.shape >= place_in_.size()) place_in_.resize(document_.shapes_.size(), kUnknownPlace);
    int32_t& place = place_in_[chunk.shape];
    if (place == kUnknownPlace) {
      const std::vector<Value>& keys = document_.shapes_[chunk.shape].keys;
      place = kNoPlace;
      for (size_t i = 0; i < keys.size(); ++i) {
        if (keys[i] == key_) place = static_cast<int32_t>(i);
      }
    }
    if (place != kNoPlace && chunk.count > 0) found = chunk.items[place];
    return ++searched < kMostPairsSearched;
  });
  return found;
}

}  // namespace firelane::importer
