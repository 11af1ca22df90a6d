// Occupancy and what bounds it, worked out by hand from NVIDIA's tables for an A100 (8.0), an H200 (9.0) and an RTX
// 3090 (8.6).
#include "model/occupancy.h"

#include <gtest/gtest.h>

#include <string>

#include "model/trace_builder.h"

namespace firelane {
namespace {

DeviceProperties device(int64_t major, int64_t minor, int64_t multiprocessors, int64_t threads, int64_t shared_kib) {
  return {.id = 0,
          .compute_major = major,
          .compute_minor = minor,
          .multiprocessors = multiprocessors,
          .max_threads_per_multiprocessor = threads,
          .registers_per_multiprocessor = 65536,
          .shared_memory_per_multiprocessor_bytes = shared_kib * 1024,
          .warp_size = 32};
}
const DeviceProperties kA100 = device(8, 0, 108, 2048, 164);
const DeviceProperties kH200 = device(9, 0, 132, 2048, 228);
const DeviceProperties kRtx3090 = device(8, 6, 82, 1536, 100);

struct Launch {
  double blocks = 1e6;
  int64_t threads = 256;
  int64_t registers = 32;
  int64_t shared_bytes = 0;
};

// "4 blocks, 50%, registers"
std::string of(const DeviceProperties& gpu, const Launch& launch) {
  const auto estimate = estimate_occupancy(gpu, {.blocks = launch.blocks,
                                                 .threads = launch.threads,
                                                 .registers = launch.registers,
                                                 .shared_memory_bytes = launch.shared_bytes});
  if (!estimate) return "unknown";
  std::string percent = std::to_string(estimate->percent);
  percent.erase(percent.find_last_not_of('0') + 1);
  if (percent.ends_with('.')) percent.pop_back();
  return std::to_string(estimate->most_blocks) + " blocks, " + percent + "%, " + std::string(name_of(estimate->limit));
}

TEST(Occupancy, nothing_bounds_a_kernel_that_fills_the_device) {
  EXPECT_EQ(of(kA100, {}), "8 blocks, 100%, none");
  EXPECT_EQ(of(kH200, {.threads = 1024}), "2 blocks, 100%, none");  // 64 warps by threads and by registers
}

TEST(Occupancy, registers_bound_by_warp_and_partition) {
  // 64 * 32 = 2048 a warp; 16384 of a partition hold 8 warps, four partitions 32: four blocks of 8 warps.
  EXPECT_EQ(of(kA100, {.registers = 64}), "4 blocks, 50%, registers");
  // 255 * 32 = 8160, given as 8192: 2 warps a partition, 8 in all: one block.
  EXPECT_EQ(of(kH200, {.registers = 255}), "1 blocks, 12.5%, registers");
  // 168 * 32 = 5376 = 21 * 256: 3 warps a partition, 12 in all: one block of 12 warps.
  EXPECT_EQ(of(kH200, {.threads = 384, .registers = 168}), "1 blocks, 18.75%, registers");
}

TEST(Occupancy, shared_memory_bounds_and_each_block_costs_a_kib_more) {
  // 49 KiB a block: 164 KiB hold 3, 228 KiB hold 4.
  EXPECT_EQ(of(kA100, {.threads = 128, .shared_bytes = 48 * 1024}), "3 blocks, 18.75%, shared memory");
  EXPECT_EQ(of(kH200, {.threads = 128, .shared_bytes = 48 * 1024}), "4 blocks, 25%, shared memory");
  // 57 KiB: 228 KiB hold exactly 4; a byte more makes it 3.
  EXPECT_EQ(of(kH200, {.threads = 128, .shared_bytes = 56 * 1024}), "4 blocks, 25%, shared memory");
  EXPECT_EQ(of(kH200, {.threads = 128, .shared_bytes = 56 * 1024 + 1}), "3 blocks, 18.75%, shared memory");
}

TEST(Occupancy, warps_bound_where_the_block_does_not_divide_the_threads) {
  // 24 warps a block, 64 a multiprocessor: two; registers would allow two as well, so that fewer would not help.
  EXPECT_EQ(of(kA100, {.threads = 768}), "2 blocks, 75%, warps");
}

TEST(Occupancy, blocks_bound_where_they_are_small) {
  EXPECT_EQ(of(kA100, {.threads = 32}), "32 blocks, 50%, blocks");
  EXPECT_EQ(of(kRtx3090, {.threads = 48, .shared_bytes = 0}), "16 blocks, 50%, blocks");
}

TEST(Occupancy, a_grid_that_is_too_small_bounds_before_all_else) {
  EXPECT_EQ(of(kA100, {.blocks = 54}), "8 blocks, 6.25%, grid");                           // half a block each
  EXPECT_EQ(of(kA100, {.blocks = 108 * 4, .registers = 64}), "4 blocks, 50%, registers");  // as many as fit
  EXPECT_EQ(of(kH200, {.blocks = 132 * 2}), "8 blocks, 25%, grid");
}

TEST(Occupancy, what_is_not_known_is_not_guessed) {
  EXPECT_EQ(of({}, {}), "unknown");
  EXPECT_EQ(of(kA100, {.blocks = 0}), "unknown");
  EXPECT_EQ(of(kA100, {.threads = 4096}), "unknown");              // more than fit
  EXPECT_EQ(of(kA100, {.shared_bytes = 1024 * 1024}), "unknown");  // likewise
  EXPECT_EQ(of(kA100, {.registers = -1, .shared_bytes = -1}), "8 blocks, 100%, none");
}

TEST(Occupancy, each_kernel_of_a_trace_has_its_limit) {
  const Model m = TraceBuilder()
                      .device(kA100)
                      .kernel("small", {.start_us = 0, .end_us = 1, .grid = 54, .block = 256, .registers = 32})
                      .kernel("fat", {.start_us = 1, .end_us = 2, .grid = 100000, .block = 256, .registers = 64})
                      .kernel("bare", {.start_us = 2, .end_us = 3})
                      .build();
  const auto& limit = m.kernel_details.occupancy_limit;
  ASSERT_EQ(limit.size(), 3u);
  EXPECT_EQ(limit[0], OccupancyLimit::kGrid);
  EXPECT_EQ(limit[1], OccupancyLimit::kRegisters);
  EXPECT_EQ(limit[2], OccupancyLimit::kUnknown);
}

}  // namespace
}  // namespace firelane
