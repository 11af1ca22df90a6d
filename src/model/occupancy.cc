#include "model/occupancy.h"

#include <algorithm>
#include <array>
#include <utility>

namespace firelane {
namespace {

constexpr double kMostBlocks = 1e15;  // of a grid: 2^31 * 2^16 * 2^16 are more, and nobody's
constexpr int64_t kMostThreads = 65536;
constexpr int64_t kMostSharedBytes = 1 << 30;

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

bool is_amd(const DeviceProperties& device) { return device.warp_size == 64; }

// Resident blocks of a multiprocessor: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
// AMD's compute units (a warp is a wave of 64 there) have 16 barriers, which blocks of one wave do not need (LLVM's
// AMDGPU backend, getMaxWorkGroupsPerCU).
int64_t block_slots(const DeviceProperties& device, int64_t warps) {
  if (is_amd(device)) return warps == 1 ? 32 : 16;
  const int64_t major = device.compute_major;
  const int64_t minor = device.compute_minor;
  if ((major == 8 && minor == 9) || major == 12) return 24;
  if ((major == 8 && minor >= 6) || (major == 7 && minor == 5)) return 16;
  return 32;
}

// Registers are given to warps in units of 256, from one of four partitions.
int64_t blocks_by_registers(const DeviceProperties& device, const LaunchShape& launch, int64_t warp, int64_t warps) {
  if (launch.registers <= 0 || launch.registers > kMostThreads || device.registers_per_multiprocessor <= 0) {
    return INT64_MAX;
  }
  const int64_t per_warp = round_up(launch.registers * warp, 256);
  return device.registers_per_multiprocessor / 4 / per_warp * 4 / warps;
}

// NVIDIA: since compute capability 8.0 each block costs another KiB. AMD gives out shared memory (LDS) in pieces of
// 512 bytes.
int64_t blocks_by_shared_memory(const DeviceProperties& device, const LaunchShape& launch) {
  const int64_t room = device.shared_memory_per_multiprocessor_bytes;
  if (room <= 0 || launch.shared_memory_bytes < 0 || launch.shared_memory_bytes > kMostSharedBytes) return INT64_MAX;
  const int64_t reserved = !is_amd(device) && device.compute_major >= 8 ? 1024 : 0;
  const int64_t per_block = round_up(launch.shared_memory_bytes + reserved, is_amd(device) ? 512 : 128);
  return per_block > 0 ? room / per_block : INT64_MAX;
}

}  // namespace

std::optional<Occupancy> estimate_occupancy(const DeviceProperties& device, const LaunchShape& launch) {
  const int64_t warp = device.warp_size > 0 ? device.warp_size : 32;
  const int64_t most_threads = device.max_threads_per_multiprocessor;
  const bool is_known = device.multiprocessors > 0 && most_threads > 0 && launch.threads > 0 &&
                        launch.threads <= kMostThreads && launch.blocks > 0 && launch.blocks < kMostBlocks;
  if (!is_known || warp > kMostThreads) return std::nullopt;

  const int64_t warps = (launch.threads + warp - 1) / warp;
  // If several limits are equal, the first is named: relaxing a later one would not help.
  const std::array<std::pair<OccupancyLimit, int64_t>, 4> limits = {{
      {OccupancyLimit::kWarps, most_threads / warp / warps},
      {OccupancyLimit::kBlocks, block_slots(device, warps)},
      {OccupancyLimit::kRegisters, blocks_by_registers(device, launch, warp, warps)},
      {OccupancyLimit::kSharedMemory, blocks_by_shared_memory(device, launch)},
  }};
  const auto& least =
      *std::min_element(limits.begin(), limits.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (least.second <= 0) return std::nullopt;

  Occupancy out{.blocks_per_sm = launch.blocks / static_cast<double>(device.multiprocessors),
                .most_blocks = least.second,
                .limit = least.first};
  const auto threads = static_cast<double>(launch.threads);
  out.warps_per_sm = out.blocks_per_sm * threads / static_cast<double>(warp);
  const double active = std::min(out.blocks_per_sm, static_cast<double>(out.most_blocks));
  out.percent = std::min(100.0, 100 * active * threads / static_cast<double>(most_threads));
  if (out.blocks_per_sm < static_cast<double>(out.most_blocks)) out.limit = OccupancyLimit::kGrid;
  if (out.percent >= 100) out.limit = OccupancyLimit::kNone;
  return out;
}

LaunchShape launch_shape(const KernelDetails& k, Row row) {
  const auto product = [](int32_t x, int32_t y, int32_t z) {
    return static_cast<double>(std::max(0, x)) * std::max(0, y) * std::max(0, z);
  };
  return {.blocks = product(k.grid_x[row], k.grid_y[row], k.grid_z[row]),
          .threads = static_cast<int64_t>(std::min(product(k.block_x[row], k.block_y[row], k.block_z[row]), 1e6)),
          .registers = k.registers[row],
          .shared_memory_bytes = k.shared_memory_bytes[row]};
}

const DeviceProperties* find_device(const TraceInfo& info, int32_t device) {
  const auto found = std::find_if(info.devices.begin(), info.devices.end(),
                                  [&](const DeviceProperties& each) { return each.id == device; });
  if (found != info.devices.end()) return &*found;
  // ROCm numbers devices as the machine does, and lists those that the process sees: alike ones answer for each other.
  const bool all_alike = !info.devices.empty() && info.accelerator == Accelerator::kHip &&
                         std::all_of(info.devices.begin(), info.devices.end(), [&](const DeviceProperties& each) {
                           return each.name == info.devices.front().name;
                         });
  return all_alike ? &info.devices.front() : nullptr;
}

namespace {

double most_warps_per_sm(const DeviceProperties* device) {
  const bool is_known = device != nullptr && device->max_threads_per_multiprocessor > 0 && device->warp_size > 0;
  if (!is_known) return 64;  // NVIDIA's data center GPUs since Pascal
  return static_cast<double>(device->max_threads_per_multiprocessor) / static_cast<double>(device->warp_size);
}

// Kineto writes 0 for kernels that opt in to more shared memory than the default (seen with torch 2.11 on an H200:
// every nvjet and cudnn attention kernel); a kernel whose warps fill 1% of an SM or more cannot have it.
bool is_known(const KernelDetails& kernels, Row row, const DeviceProperties* device) {
  const float percent = kernels.occupancy_percent[row];
  const double warps = kernels.warps_per_sm[row];
  return percent > 0 || (percent == 0 && !(warps * 100 >= most_warps_per_sm(device)));
}

}  // namespace

void fill_occupancy(Model& model) {
  KernelDetails& kernels = model.kernel_details;
  if (kernels.size() == 0) return;
  // Without blocks there is nothing to estimate from: XLA's kernels on a TPU.
  const auto is_blank = [](const auto& column) { return column.is_uniform() && std::as_const(column)[0] < 0; };
  if (is_blank(kernels.block_x) && is_blank(kernels.occupancy_percent)) return;
  for (Row row = 0; row < kernels.size(); ++row) {
    if (kernels.slice[row] == kNoRow) continue;
    const DeviceProperties* device = find_device(model.info, model.device_slices.device[kernels.slice[row]]);
    const auto estimate = device == nullptr ? std::nullopt : estimate_occupancy(*device, launch_shape(kernels, row));
    if (estimate) kernels.occupancy_limit[row] = estimate->limit;
    if (is_known(kernels, row, device)) continue;
    kernels.occupancy_percent[row] = estimate ? static_cast<float>(estimate->percent) : -1;
    if (!estimate) continue;
    if (kernels.blocks_per_sm[row] < 0) kernels.blocks_per_sm[row] = static_cast<float>(estimate->blocks_per_sm);
    if (kernels.warps_per_sm[row] < 0) kernels.warps_per_sm[row] = static_cast<float>(estimate->warps_per_sm);
  }
}

}  // namespace firelane
