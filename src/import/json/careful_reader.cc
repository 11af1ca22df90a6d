#include "import/json/careful_reader.h"

#include <algorithm>

#include "import/json/chunks.h"
#include "import/json/scan.h"

namespace firelane {

namespace {
constexpr size_t kWindowBytes = 1 << 20;

// How far to look for the end of an event. A missing quote makes an event look endless;
// many of them must not make the load quadratic.
size_t search_limit(uint64_t broken) {
  if (broken < 4) return ChunkFeeder::kMaxEventBytes;
  if (broken < 64) return size_t{4} << 20;
  return size_t{64} << 10;
}
}  // namespace

void CarefulReader::load_window(uint64_t from, size_t size, uint64_t content_end) {
  size = static_cast<size_t>(std::min<uint64_t>(size, content_end - from));
  window_.resize(size);
  const auto got = source_.read_at(from, window_.data(), size);
  window_.resize(got.ok() ? got.value() : 0);
  window_start_ = from;
}

// The character at at_, after white space and commas; 0 at the end.
char CarefulReader::look(uint64_t content_end) {
  for (;;) {
    if (at_ >= content_end) return 0;
    if (at_ < window_start_ || at_ >= window_start_ + window_.size()) {
      load_window(at_, kWindowBytes, content_end);
      if (window_.empty()) return 0;
    }
    size_t i = static_cast<size_t>(at_ - window_start_);
    while (i < window_.size() && (skip_space(window_, i) != i || window_[i] == ',')) {
      i = std::max(skip_space(window_, i), i + 1);
    }
    at_ = window_start_ + i;
    if (i < window_.size()) return window_[i];
  }
}

CarefulReader::Stop CarefulReader::read(uint64_t at, uint64_t until, uint64_t content_end, RawPart& part) {
  at_ = at;
  window_.clear();
  for (;;) {
    if (at_ >= until) return Stop::kBoundary;
    const char c = look(content_end);
    if (at_ >= until && c != 0) return Stop::kBoundary;
    if (c == 0) return Stop::kEnd;
    if (c == ']') {
      ++at_;
      return Stop::kListEnd;
    }
    if (c != '{' || !read_event(content_end, part)) skip_broken(content_end, part);
  }
}

// Reads the event at at_ and steps behind it. False: it cannot be read.
bool CarefulReader::read_event(uint64_t content_end, RawPart& part) {
  const size_t limit = search_limit(broken_);
  for (size_t size = kWindowBytes;; size *= 4) {
    const auto begin = static_cast<size_t>(at_ - window_start_);
    const size_t end = value_end(window_, begin);
    if (end != kNotFound) {
      std::string event(window_, begin, end - begin);
      const Repairs repairs = repair_text(event.data(), event.size());
      const size_t length = event.size();
      event.append(kTextPadding, ' ');
      RawPart trial;
      if (!parser_.parse_event(event.data(), length, at_, trial)) return false;
      RawPart again;  // rows go straight into `part` once the event is known to be whole
      parser_.parse_event(event.data(), length, at_, part);
      if (repairs.characters > 0) ++part.losses[Stat::kTextRepaired];
      if (repairs.numbers > 0) ++part.losses[Stat::kNotANumber];
      at_ += end - begin;
      return true;
    }
    const bool all_there = window_start_ + window_.size() >= content_end;
    if (all_there || window_.size() - begin >= limit) return false;
    load_window(at_, std::min(size * 4, limit), content_end);
  }
}

// Steps to what may be the next event. An event that is cut off by the end of the source
// is a tear, not a broken event.
void CarefulReader::skip_broken(uint64_t content_end, RawPart& part) {
  const bool is_event = window_[static_cast<size_t>(at_ - window_start_)] == '{';
  for (;;) {
    const auto begin = static_cast<size_t>(at_ - window_start_);
    const size_t comma = first_event_comma(window_, begin + 1);
    if (comma != kNotFound) {
      ++part.losses[Stat::kEventMalformed];
      ++broken_;
      at_ = window_start_ + comma + 1;
      return;
    }
    const uint64_t window_end = window_start_ + window_.size();
    if (window_end >= content_end) {
      // Nothing like an event follows: the last one is torn, or garbage ends the file.
      const size_t end = value_end(window_, begin);
      if (is_event && end == kNotFound) {
        torn_ = true;
      } else {
        ++part.losses[Stat::kEventMalformed];
        if (is_event && end != kNotFound) {
          at_ += end - begin;
          return;
        }
      }
      at_ = content_end;
      return;
    }
    // Keep a little, so that a comma across the edge of two windows is seen.
    const uint64_t from = std::max(at_, window_end - std::min<uint64_t>(window_.size(), 4096));
    if (from > at_) at_ = from;
    load_window(from, kWindowBytes, content_end);
  }
}

}  // namespace firelane
