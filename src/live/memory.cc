#include "live/memory.h"

#include <algorithm>

namespace firelane::live {

namespace {

constexpr size_t kMostParts = 1024;  // IOV_MAX

}  // namespace

bool Memory::read(uint64_t address, void* into, size_t bytes) const {
  struct iovec own{.iov_base = into, .iov_len = bytes};
  struct iovec other{.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};
  return ::process_vm_readv(pid_, &own, 1, &other, 1, 0) == static_cast<ssize_t>(bytes);
}

void Memory::add(uint64_t address, void* into, size_t bytes) {
  own_.push_back({.iov_base = into, .iov_len = bytes});
  other_.push_back({.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes});
}

const std::vector<bool>& Memory::read_all() {
  done_.assign(own_.size(), false);
  for (size_t begin = 0; begin < own_.size();) {
    const size_t count = std::min(kMostParts, own_.size() - begin);
    const ssize_t got = ::process_vm_readv(pid_, own_.data() + begin, count, other_.data() + begin, count, 0);
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
