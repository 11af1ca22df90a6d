// What a column's header tells on hovering, where its label cannot: words that a first reader of a trace does not know.

const kMeanings: Readonly<Record<string, string>> = {
  self_cpu_ns: "Time in the operator itself, without the operators that it calls.",
  self_device_ns: "Device time of the kernels that the operator launched itself.",
  occupancy_percent: "Of the threads that the GPU could hold at once, how many this kernel fills; estimated from its launch.",
  occupancy_limit:
    "What keeps the occupancy down: the grid (too few blocks for the GPU), registers, shared memory, or the GPU's own limits.",
  registers: "Registers of each thread.",
  shared_memory_bytes: "Shared memory of each block.",
  graph_calls: "Launched by a CUDA graph.",
  top_op: "The operator that launched most of it.",
  top_op_percent: "Of this kernel's time, the part for that operator.",
  roof_percent: "Of what the hardware allows at this ratio of arithmetic to memory traffic.",
  flops_per_byte: "Arithmetic for each byte that is read or written: low means limited by memory.",
  tensor_cores: "Whether the kernel used the GPU's matrix units.",
  forward_device_ns: "Device time of the kernels of its forward pass, with all that is inside of it.",
  backward_device_ns: "Device time of the kernels of its backward pass.",
  device_percent: "Of all the device's work.",
  uncertain_bytes: "Of the peak, what could not be assigned to a category for sure.",
  cached_bytes: "Reserved by the allocator, but in no use at the peak.",
  peak_percent: "Of the device's memory.",
  growth_per_step_bytes: "What is left over after each step: more than 0 ends in running out of memory.",
  allocator_calls: "Calls of the driver for memory (cudaMalloc, cudaFree): slow, and after the first steps there should be none.",
  allocator_ns: "Time in these calls.",
  reserved_bytes: "What the caching allocator has from the driver.",
  allocated_bytes: "In use by tensors.",
  waiting_bytes: "Freed, but another stream may still use it: not free yet.",
  free_bytes: "Reserved and in no use.",
  largest_free_bytes: "The largest free piece: an allocation above it needs new memory from the driver.",
  scattered_percent: "Of the free memory, what is not in the largest piece: high means fragmented.",
  segments: "Pieces that the allocator has from the driver.",
  ping_pong_calls: "Casts whose result is cast back.",
  overlapped_percent: "Of the copying time, the part during which kernels ran: it costs nothing.",
  pinned: "From page-locked host memory: faster, and the host need not wait.",
  compute_ns: "Of the device time, that of kernels which arithmetic limits.",
  cause_ns: "Of the gap, the time that this cause explains.",
  outlier: "Much slower than the other steps.",
  warmup: "Among the first, slower steps: not judged.",
};

export function meaningOf(column: string): string | undefined {
  return Object.hasOwn(kMeanings, column) ? kMeanings[column] : undefined;
}
