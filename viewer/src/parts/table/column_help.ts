// Tooltips of column headers, for terms that a first reader of a trace may not know.

const kColumnHelp: Readonly<Record<string, string>> = {
  self_cpu_ns: "Time in the operator itself, excluding the operators it calls.",
  self_device_ns: "Device time of the kernels that the operator launched itself.",
  occupancy_percent: "Share of the threads a GPU can hold at once that this kernel fills; estimated from its launch configuration.",
  occupancy_limit: "What limits occupancy: the grid (too few blocks for the GPU), registers, shared memory, or the GPU's own limits.",
  registers: "Registers per thread.",
  shared_memory_bytes: "Shared memory per block.",
  graph_calls: "Calls launched by a CUDA graph.",
  top_op: "The operator that launched most of it.",
  top_op_percent: "Share of this kernel's time that was launched by that operator.",
  roof_percent: "Share of what the hardware can reach at this arithmetic intensity.",
  flops_per_byte: "Arithmetic intensity: FLOPs per byte read or written. Low means bound by memory bandwidth.",
  tensor_cores: "Whether the kernel used tensor cores.",
  forward_device_ns: "Device time of its forward pass, including its submodules.",
  backward_device_ns: "Device time of its backward pass.",
  device_percent: "Share of all device time.",
  uncertain_bytes: "Part of the peak whose category is not certain.",
  cached_bytes: "Reserved by the allocator but unused at the peak.",
  peak_percent: "Share of the device's memory.",
  growth_per_step_bytes: "Memory left over after each step. Above 0, the program eventually runs out of memory.",
  allocator_calls: "Driver calls for memory (cudaMalloc, cudaFree): slow, and there should be none after the first steps.",
  allocator_ns: "Time in these calls.",
  reserved_bytes: "Held by the caching allocator.",
  allocated_bytes: "In use by tensors.",
  waiting_bytes: "Freed, but possibly still in use by another stream.",
  free_bytes: "Reserved but unused.",
  largest_free_bytes: "The largest free block. A larger allocation needs new memory from the driver.",
  scattered_percent: "Share of free memory outside the largest block. High means fragmented.",
  segments: "Segments that the allocator got from the driver.",
  ping_pong_calls: "Casts whose result is cast back.",
  overlapped_percent: "Share of copy time during which kernels ran, so that it costs nothing.",
  pinned: "From pinned (page-locked) host memory: faster, and the host does not have to wait.",
  compute_ns: "Device time of compute-bound kernels.",
  cause_ns: "The part of the gap that this cause explains.",
  outlier: "Much slower than the other steps.",
  warmup: "One of the first, slower steps; not analyzed.",
};

export function columnHelp(column: string): string | undefined {
  return Object.hasOwn(kColumnHelp, column) ? kColumnHelp[column] : undefined;
}
