#include "base/page_allocator.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace firelane {
namespace {

// Where pages are larger than 4 KiB, the kernel rounds the end of a part of one up.
TEST(ReleasePages, elements_beside_the_released_ones_could_go_with_them) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<char, PageAllocator<char>> bytes(5 * page, 'x');
  char* begin = bytes.data() + page / 2;
  char* end = bytes.data() + 4 * page + page / 2;
  release_pages(begin, end);
  const auto is = [&](char c, size_t from, size_t until) {
    return std::all_of(bytes.data() + from, bytes.data() + until, [&](char byte) { return byte == c; });
  };
  EXPECT_TRUE(is('x', 0, page));
  EXPECT_TRUE(is('\0', page, 4 * page));
  EXPECT_TRUE(is('x', 4 * page, 5 * page));

  release_pages(bytes.data() + 1, bytes.data() + page - 1);  // no whole page
  EXPECT_TRUE(is('x', 0, page));
}

}  // namespace
}  // namespace firelane
