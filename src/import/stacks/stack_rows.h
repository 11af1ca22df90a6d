// Stacks as slices: frames are opened and closed, or whole stacks follow each other.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/raw.h"

namespace firelane::importer {

class StackRows {
 public:
  explicit StackRows(RawTrace& raw) : pool_(raw.pools.emplace_back()), part_(raw.parts.emplace_back()) {}

  // A new lane, which begins at 0.
  void begin_lane(std::string_view name);
  // What is still open is closed, and counted if `is_cut`.
  void end_lane(int64_t end_ns, bool is_cut);

  StringId frame(std::string_view name) { return pool_.strings.intern(name); }
  void open(StringId frame, int64_t at_ns);
  // Closes the innermost frame of that name, and those inside of it.
  void close(StringId frame, int64_t at_ns);
  // The stack, root first, for `ns` from where the last one ended.
  void sample(std::span<const StringId> stack, int64_t ns);

  LossCounts& losses() { return part_.losses; }
  bool empty() const { return part_.host_slices.empty(); }
  int64_t now_ns() const { return now_ns_; }

 private:
  struct Frame {
    StringId name;
    size_t row;  // of the slice, which is there from its beginning: of slices of one length, the outer one comes first
  };
  void pop(int64_t at_ns);

  RawPool& pool_;
  RawPart& part_;
  LaneId lane_{};
  int64_t next_lane_ = 1;
  int64_t now_ns_ = 0;
  std::vector<Frame> open_;
};

}  // namespace firelane::importer
