// Plain data as a pickle holds it: None, truth, numbers, texts, lists, tuples and dictionaries that refer to each
// other.
//
// Memory snapshots are rows with the same few keys and shared call stacks, so values take 4 or 8 bytes each, texts are
// kept once, a dictionary is its values plus the number of its *shape*: the list of keys that thousands of others
// have too, and lists of the same items, as the call stacks of a loop are, share them. What was written once and
// referred to often is kept once (a "billion laughs" stays as small as its file), and may refer to itself: nothing here
// follows references on its own.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/string_pool.h"

namespace firelane::importer {

enum class ValueType : uint8_t { kNone, kTruth, kInteger, kReal, kText, kList, kTuple, kDict };

// REQUIRES: used with the Document that it comes from.
struct Value {
  uint64_t bits = 0;  // Tag in the lowest 3 bits, then a number or an index
  bool operator==(const Value&) const = default;
};
inline constexpr Value kNoneValue{};

class Document {
 public:
  Document();

  Value root;

  // ---- reading ---------------------------------------------------------------------------

  ValueType type(Value value) const;
  bool is_none(Value value) const { return value == kNoneValue; }
  // Nothing when it is no integer, or does not fit.
  std::optional<int64_t> integer(Value value) const;
  std::optional<double> real(Value value) const;  // also of an integer
  std::optional<bool> truth(Value value) const;
  std::string_view text(Value value) const;  // "" when it is no text
  // For lists, tuples and dictionaries; 0 for anything else.
  size_t size(Value value) const;
  // Names a list, tuple or dictionary: the same wherever it is referred to. Below container_count().
  uint32_t container(Value value) const;
  size_t container_count() const { return containers_.size(); }

  // Calls visit(item) for the items of a list or tuple until it returns false.
  template <typename Visit>
  void each(Value list, const Visit& visit) const {
    if (type(list) != ValueType::kList && type(list) != ValueType::kTuple) return;
    each_chunk(container(list), [&](const Chunk& chunk) {
      for (uint32_t i = 0; i < chunk.count; ++i) {
        if (!visit(chunk.shape == kNarrow ? narrow_item(chunk, i) : chunk.items[i])) return false;
      }
      return true;
    });
  }
  // Lists and tuples with the same bytes have the same items, and where the bytes are the same memory, too. "" for
  // those that were filled in several goes, and for all else.
  std::string_view item_bytes(Value list) const;
  // Calls visit(key, value) for the pairs of a dictionary until it returns false. A key that was set again comes again.
  template <typename Visit>
  void each_pair(Value dict, const Visit& visit) const {
    if (type(dict) != ValueType::kDict) return;
    each_chunk(container(dict), [&](const Chunk& chunk) {
      for (uint32_t i = 0; i < chunk.count; ++i) {
        if (!(chunk.shape == kPairs ? visit(chunk.items[2 * i], chunk.items[2 * i + 1])
                                    : visit(shapes_[chunk.shape].keys[i], chunk.items[i])))
          return false;
      }
      return true;
    });
  }

  // ---- building --------------------------------------------------------------------------

  static Value of_truth(bool is_true) { return {tagged(Tag::kWord, is_true ? kTrueWord : kFalseWord)}; }
  Value of_integer(int64_t number);
  // REQUIRES: `number` has fewer than 61 bits.
  static Value of_small(int64_t number) { return {tagged(Tag::kInteger, static_cast<uint64_t>(number))}; }
  Value of_huge_integer() const { return {tagged(Tag::kWord, kHugeWord)}; }
  Value of_real(double number);
  Value of_text(std::string_view text) { return {tagged(Tag::kText, static_cast<uint32_t>(strings_.intern(text)))}; }
  Value new_list();
  Value new_dict();
  Value new_tuple(std::span<const Value> items);
  void append(Value list, std::span<const Value> items);
  // Key, value, key, value.
  void set_items(Value dict, std::span<const Value> pairs);

  // What it holds, roughly.
  uint64_t memory_bytes() const;

 private:
  friend class Field;
  enum class Tag : uint8_t { kWord, kInteger, kText, kList, kTuple, kDict, kBig, kReal };
  static constexpr uint64_t kFalseWord = 1, kTrueWord = 2, kHugeWord = 3;
  static constexpr uint32_t kPairs = UINT32_MAX;  // instead of a shape: keys stand before their values
  static constexpr uint32_t kNarrow =
      UINT32_MAX - 1;  // of lists: items take 4 bytes each, as references and small numbers do
  static constexpr size_t kMostShapes = 4096;
  static constexpr size_t kMostKeys = 64;  // of a shape
  static constexpr size_t kBlockValues = size_t{1} << 15;

  struct Chunk {
    const Value* items = nullptr;
    uint32_t count = 0;  // items, or pairs
    uint32_t shape = kPairs;
  };
  struct Shape {
    std::vector<Value> keys;
  };

  static Value narrow_item(const Chunk& chunk, uint32_t at) {
    uint32_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const char*>(chunk.items) + at * sizeof(bits), sizeof(bits));
    return {bits};
  }
  static uint64_t tagged(Tag tag, uint64_t payload) { return payload << 3 | static_cast<uint64_t>(tag); }
  static Tag tag_of(Value value) { return static_cast<Tag>(value.bits & 7); }
  static uint64_t payload_of(Value value) { return value.bits >> 3; }

  template <typename Visit>
  void each_chunk(uint32_t container, const Visit& visit) const {
    if (!visit(containers_[container])) return;
    const auto more = more_.find(container);
    if (more == more_.end()) return;
    for (const Chunk& chunk : more->second) {
      if (!visit(chunk)) return;
    }
  }
  // Items of the same bits that a list has already, or none; and room for these to be found by the next one.
  const Value* same_items(const uint32_t* bits, uint32_t count, size_t& slot);
  Value add_container(Tag tag);
  void add_chunk(Value value, const Chunk& chunk);
  Value* room_for(size_t count);
  // kPairs when these keys get no shape.
  uint32_t shape_of(std::span<const Value> pairs);
  bool has_keys(uint32_t shape, std::span<const Value> pairs) const;

  StringPool strings_;
  std::deque<Chunk> containers_;                           // a vector would need twice the room while it grows
  std::unordered_map<uint32_t, std::vector<Chunk>> more_;  // of containers that were filled in several goes
  uint64_t more_chunks_ = 0;
  std::vector<Shape> shapes_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> shapes_by_hash_;
  std::array<uint32_t, kMostKeys + 1> last_shape_;  // by number of keys: rows of a table follow each other
  std::vector<int64_t> bigs_;
  std::vector<double> reals_;
  std::vector<std::unique_ptr<Value[]>> blocks_;
  // Lists of narrow items that others may share, by the hash of these; a later one takes the place of an earlier one.
  struct Shared {
    const Value* items = nullptr;
    uint32_t count = 0;
    uint32_t hash = 0;
  };
  std::vector<Shared> shared_;
  std::vector<uint32_t> narrow_;  // items that are being added
  Value* free_ = nullptr;
  size_t free_count_ = 0;
  uint64_t block_bytes_ = 0;
};

// A key of many dictionaries of one document; where it stands in each shape is found once.
class Field {
 public:
  Field(const Document& document, std::string_view key);
  // None when the dictionary has no such key, or is no dictionary.
  Value of(Value dict) const;

 private:
  const Document& document_;
  Value key_;
  bool is_there_;                          // as a text of the document
  mutable std::vector<int32_t> place_in_;  // by shape; kUnknown: not yet asked
};

}  // namespace firelane::importer
