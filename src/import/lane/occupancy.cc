#include "import/lane/occupancy.h"

#include <algorithm>

namespace firelane {
namespace {

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

int64_t max_blocks(const DeviceProperties& device) {
  if (device.compute_major == 8 && device.compute_minor == 9) return 24;
  if ((device.compute_major == 8 && device.compute_minor >= 6) ||
      (device.compute_major == 7 && device.compute_minor == 5)) {
    return 16;
  }
  return 32;
}

}  // namespace

void estimate_occupancy(const DeviceProperties& device, RawKernel& k) {
  const int64_t warp = device.warp_size > 0 ? device.warp_size : 32;
  const int64_t threads = int64_t{k.block[0]} * k.block[1] * k.block[2];
  if (device.multiprocessors <= 0 || device.max_threads_per_multiprocessor <= 0 || threads <= 0 || threads > 65536)
    return;
  const double blocks = static_cast<double>(k.grid[0]) * k.grid[1] * k.grid[2];
  const double blocks_per_sm = blocks / static_cast<double>(device.multiprocessors);
  k.blocks_per_sm = static_cast<float>(blocks_per_sm);
  k.warps_per_sm = static_cast<float>(blocks_per_sm * static_cast<double>(threads) / static_cast<double>(warp));

  const int64_t warps = (threads + warp - 1) / warp;
  int64_t limit = std::min(max_blocks(device), device.max_threads_per_multiprocessor / warp / warps);
  if (k.registers > 0 && device.registers_per_multiprocessor > 0) {
    // Registers are given to warps in units of 256, from one of four partitions.
    const int64_t per_warp = round_up(int64_t{k.registers} * warp, 256);
    limit = std::min(limit, device.registers_per_multiprocessor / 4 / per_warp * 4 / warps);
  }
  if (device.shared_memory_per_multiprocessor_bytes > 0 && k.shared_memory_bytes >= 0) {
    const int64_t reserved = device.compute_major >= 8 ? 1024 : 0;
    const int64_t per_block = round_up(k.shared_memory_bytes + reserved, 128);
    if (per_block > 0) limit = std::min(limit, device.shared_memory_per_multiprocessor_bytes / per_block);
  }
  const double active = std::min(blocks_per_sm, static_cast<double>(limit));
  k.occupancy_percent = static_cast<float>(std::min(
      100.0, 100 * active * static_cast<double>(threads) / static_cast<double>(device.max_threads_per_multiprocessor)));
}

}  // namespace firelane
