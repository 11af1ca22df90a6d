// The pool's promises that no recording shows: pages touched beforehand, and blocks that come back.
#include "record/core/block_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <memory>

namespace firelane::record {
namespace {

bool is_resident(void* block) {
  std::array<unsigned char, kBlockBytes / 4096> pages{};
  if (::mincore(block, kBlockBytes, pages.data()) != 0) return false;
  for (const unsigned char page : pages) {
    if ((page & 1) == 0) return false;
  }
  return true;
}

// Some sandboxes do not know.
bool residency_is_told() {
  void* pages = ::mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool told = pages != MAP_FAILED && !is_resident(pages);
  if (pages != MAP_FAILED) ::munmap(pages, kBlockBytes);
  return told;
}

class Pool : public testing::Test {
 protected:
  Pool() { mapped = pool->map(); }
  ~Pool() override { pool->unmap(); }

  std::unique_ptr<BlockPool> pool = std::make_unique<BlockPool>();
  bool mapped = false;
};

TEST_F(Pool, blocks_that_were_warmed_are_the_next_ones_and_have_their_pages) {
  ASSERT_TRUE(mapped);
  pool->warm(3);
  EXPECT_EQ(pool->in_use(), 0u);
  for (int i = 0; i < 3; ++i) {
    void* block = pool->take();
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(is_resident(block)) << i;
  }
}

TEST_F(Pool, warming_leaves_a_small_pool_to_its_threads) {
  ASSERT_TRUE(mapped);
  if (!residency_is_told()) GTEST_SKIP() << "this system calls every page resident";
  pool->set_limit(4);
  pool->warm(100);
  EXPECT_FALSE(is_resident(pool->take()));
}

TEST_F(Pool, trim_gives_warm_pages_back) {
  ASSERT_TRUE(mapped);
  if (!residency_is_told()) GTEST_SKIP() << "this system calls every page resident";
  pool->warm(1);
  pool->trim();
  EXPECT_FALSE(is_resident(pool->take()));
}

}  // namespace
}  // namespace firelane::record
