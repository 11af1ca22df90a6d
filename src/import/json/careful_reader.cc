#include "import/json/careful_reader.h"

#include <algorithm>

#include "import/json/chunks.h"
#include "import/json/scan.h"

namespace firelane::importer {

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
    const char c = at_ < until ? look(content_end) : 0;
    if (at_ >= until) return Stop::kBoundary;
    if (c == 0) {
      // Nothing good after the broken events: the first of them is where the file was torn.
      if (pending_tear_) {
        torn_ = true;
        pending_ = 0;
      }
      settle(part);
      return Stop::kEnd;
    }
    if (c == ']') {
      settle(part);
      ++at_;
      return Stop::kListEnd;
    }
    if (c != '{' || !read_event(content_end, part)) skip_broken(content_end);
  }
}

// Broken events are counted once it is clear that they are not the tear at the end.
void CarefulReader::settle(RawPart& part) {
  part.losses[Stat::kEventMalformed] += pending_;
  pending_ = 0;
  pending_tear_ = false;
}

// Reads the event at at_ and steps behind it. False: it cannot be read.
bool CarefulReader::read_event(uint64_t content_end, RawPart& part) {
  const size_t limit = search_limit(broken_);
  for (size_t size = kWindowBytes;; size *= 4) {
    const auto begin = static_cast<size_t>(at_ - window_start_);
    const size_t end = value_end(window_, begin);
    if (end != kNotFound) {
      std::string event(window_, begin, end - begin);
      // After something broken, an object inside of args must not pass for an event.
      if (pending_ > 0 && (event.find("\"ph\"") == std::string::npos || event.find("\"pid\"") == std::string::npos)) {
        return false;
      }
      const Repairs repairs = repair_text(event.data(), event.size());
      const size_t length = event.size();
      event.append(kTextPadding, ' ');
      RawPart trial;  // thrown away: rows go into `part` only when the event is known to be whole
      if (!parser_.parse_event(event.data(), length, at_, trial)) return false;
      parser_.parse_event(event.data(), length, at_, part);
      settle(part);
      part.losses[Stat::kTextRepaired] += repairs.characters;
      part.losses[Stat::kNotANumber] += repairs.numbers;
      at_ += end - begin;
      return true;
    }
    const bool all_there = window_start_ + window_.size() >= content_end;
    if (all_there) pending_tear_ = pending_tear_ || pending_ == 0;
    if (all_there || window_.size() - begin >= limit) return false;
    load_window(at_, std::min(size * 4, limit), content_end);
  }
}

// Steps from something broken to what may be the next event.
void CarefulReader::skip_broken(uint64_t content_end) {
  ++broken_;
  ++pending_;
  ++at_;
  for (;;) {
    const auto begin = static_cast<size_t>(at_ - window_start_);
    const size_t next = next_event_start(window_, begin);
    if (next != kNotFound) {
      at_ = window_start_ + next;
      return;
    }
    const uint64_t window_end = window_start_ + window_.size();
    if (window_end >= content_end) {
      // No event follows. The list may still end properly behind this one.
      const size_t bracket = window_.rfind(']');
      at_ = !pending_tear_ && bracket != std::string::npos && bracket >= begin ? window_start_ + bracket : content_end;
      return;
    }
    // Keep a little, so that "," and "{" on two sides of an edge are seen together.
    at_ = std::max(at_, window_end - std::min<uint64_t>(window_.size(), 64));
    load_window(at_, kWindowBytes, content_end);
  }
}

}  // namespace firelane::importer
