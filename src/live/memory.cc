#include "live/memory.h"

#include <algorithm>

namespace firelane::live {

namespace {

constexpr size_t kMostParts = 1024;  // IOV_MAX

}  // namespace

ssize_t Memory::transfer(const struct iovec* own, size_t own_count, const struct iovec* other,
                         size_t other_count) const {
  if (pid_ != 0) return ::process_vm_readv(pid_, own, own_count, other, other_count, 0);
  ssize_t done = 0;
  size_t filled = 0;  // of the own part that is being filled; each other part fits into one
  for (size_t i = 0; i < other_count; ++i) {
    const uint64_t at = reinterpret_cast<uint64_t>(other[i].iov_base) - address_;
    const size_t bytes = other[i].iov_len;
    if (at > bytes_.size() || bytes_.size() - at < bytes) break;
    if (own_count > 1 && i > 0) {
      ++own;
      filled = 0;
    }
    if (bytes > 0) std::memcpy(static_cast<uint8_t*>(own->iov_base) + filled, bytes_.data() + at, bytes);
    filled += bytes;
    done += static_cast<ssize_t>(bytes);
  }
  return done;
}

bool Memory::read(uint64_t address, void* into, size_t bytes) const {
  struct iovec own{.iov_base = into, .iov_len = bytes};
  struct iovec other{.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};
  return transfer(&own, 1, &other, 1) == static_cast<ssize_t>(bytes);
}

// A part a page: the call ends between parts, and pages are what is there or not.
size_t Memory::read_some(uint64_t address, void* into, size_t bytes) const {
  struct iovec own{.iov_base = into, .iov_len = bytes};
  std::vector<struct iovec> pages;
  for (size_t done = 0; done < bytes && pages.size() < kMostParts;) {
    const size_t count = std::min<size_t>(bytes - done, kPageSize - (address + done) % kPageSize);
    pages.push_back({.iov_base = reinterpret_cast<void*>(address + done), .iov_len = count});
    done += count;
  }
  const ssize_t got = transfer(&own, 1, pages.data(), pages.size());
  return got < 0 ? 0 : static_cast<size_t>(got);
}

void Memory::add(uint64_t address, void* into, size_t bytes) {
  own_.push_back({.iov_base = into, .iov_len = bytes});
  other_.push_back({.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes});
}

const std::vector<bool>& Memory::read_all() {
  done_.assign(own_.size(), false);
  for (size_t begin = 0; begin < own_.size();) {
    const size_t count = std::min(kMostParts, own_.size() - begin);
    const ssize_t got = transfer(own_.data() + begin, count, other_.data() + begin, count);
    // The call ends at the first part that is not there; those after it are tried by the next one.
    size_t left = got < 0 ? 0 : static_cast<size_t>(got);
    size_t at = begin;
    for (; at < begin + count && left >= own_[at].iov_len; ++at) {
      left -= own_[at].iov_len;
      done_[at] = true;
    }
    begin = at < begin + count ? at + 1 : at;
  }
  own_.clear();
  other_.clear();
  return done_;
}

}  // namespace firelane::live
