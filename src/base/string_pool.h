// Interned strings: each distinct text is stored once and named by a StringId.
//
// Ids are dense from 0; id 0 is always the empty string, which also stands for
// "absent" in optional columns. Views stay valid as long as the pool lives (the
// text lies in blocks that never move). Not thread-safe: readers that run in
// parallel fill one pool each and merge them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace firelane {

enum class StringId : uint32_t {};
inline constexpr StringId kNoString{0};

class StringPool {
 public:
  StringPool();
  StringPool(StringPool&&) noexcept = default;
  StringPool& operator=(StringPool&&) noexcept = default;

  StringId intern(std::string_view text);
  // The id of a text that is already there, or kNoString (also for "").
  StringId find(std::string_view text) const;

  std::string_view view(StringId id) const { return views_[static_cast<uint32_t>(id)]; }
  std::string_view operator[](StringId id) const { return view(id); }
  size_t size() const { return views_.size(); }
  size_t memory_bytes() const;

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t id = 0;  // 0 = free: the empty string is never looked up in slots_
  };
  size_t probe(std::string_view text, uint32_t hash) const;
  std::string_view store(std::string_view text);
  void grow();

  std::vector<std::string_view> views_;
  std::vector<Slot> slots_;  // power of two, open addressing
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;
  size_t free_bytes_ = 0;
  size_t block_bytes_ = 0;
};

}  // namespace firelane
