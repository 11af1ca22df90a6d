// Memory by hand: each category by its rule, growth, spikes, and the allocator's calls.
#include "analyze/memory/memory.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

// Keeps the allocator's total while a trace is built.
class MemoryTrace {
 public:
  explicit MemoryTrace(int64_t start_bytes = 0) : total_(start_bytes) {}
  MemoryTrace& alloc(double at_us, uint64_t address, int64_t bytes, int64_t thread = 1) {
    return change(at_us, address, bytes, thread);
  }
  MemoryTrace& free(double at_us, uint64_t address, int64_t bytes, int64_t thread = 1) {
    return change(at_us, address, -bytes, thread);
  }
  TraceBuilder trace;

 private:
  MemoryTrace& change(double at_us, uint64_t address, int64_t bytes, int64_t thread) {
    total_ += bytes;
    trace.memory({.at_us = at_us,
                  .bytes = bytes,
                  .thread = thread,
                  .device_type = 1,
                  .device = 0,
                  .address = address,
                  .total_allocated = total_,
                  .total_reserved = 10'000});
    return *this;
  }
  int64_t total_;
};

int64_t at_peak(const DeviceMemory& device, MemoryCategory category) {
  return device.at_peak[static_cast<size_t>(category)];
}

TEST(Memory, categories_follow_from_phase_and_lifetime) {
  MemoryTrace t(500);
  t.trace.step(1, {.start_us = 0, .end_us = 100})
      .annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", {.start_us = 1, .end_us = 9})
      .op("aten::addmm", {.start_us = 10, .end_us = 20})
      .op("aten::softmax", {.start_us = 20, .end_us = 30})
      .op("autograd::engine::evaluate_function: X", {.start_us = 40, .end_us = 60, .thread = 2})
      .annotation("Optimizer.step#Adam.step", {.start_us = 70, .end_us = 90});
  t.alloc(2, 0x10, 7);                                            // input
  t.alloc(11, 0x20, 100).alloc(12, 0x21, 40).free(15, 0x21, 40);  // activation; workspace
  t.alloc(21, 0x30, 30).free(25, 0x30, 30);                       // temporary
  t.alloc(41, 0x40, 60, 2);                                       // gradient
  t.alloc(42, 0x41, 5, 2).free(55, 0x41, 5, 2);                   // temporary of the backward
  t.alloc(71, 0x50, 1000);                                        // optimizer state: the peak
  const MemoryReport report = memory_report(t.trace.build());
  ASSERT_EQ(report.devices.size(), 1u);
  const DeviceMemory& device = report.devices[0];
  EXPECT_EQ(device.peak.allocated_bytes, 500 + 7 + 100 + 60 + 1000);
  EXPECT_EQ(at_peak(device, MemoryCategory::kBeforeRecording), 500);
  EXPECT_EQ(at_peak(device, MemoryCategory::kInputs), 7);
  EXPECT_EQ(at_peak(device, MemoryCategory::kActivations), 100);
  EXPECT_EQ(at_peak(device, MemoryCategory::kGradients), 60);
  EXPECT_EQ(at_peak(device, MemoryCategory::kOptimizerState), 1000);
  EXPECT_EQ(at_peak(device, MemoryCategory::kTemporaries), 0);
  EXPECT_EQ(device.start_bytes, 500);
  EXPECT_EQ(device.cached_bytes(), 10'000 - 1667);
  using enum MemoryCategory;
  EXPECT_EQ(report.category, (std::vector{kInputs, kActivations, kWorkspace, kWorkspace, kTemporaries, kTemporaries,
                                          kGradients, kTemporaries, kTemporaries, kOptimizerState}));
  EXPECT_EQ(device.owners.front().op, "");  // the optimizer allocated outside of an op
  EXPECT_EQ(device.owners.front().bytes, 1000);
}

TEST(Memory, parameters_are_made_before_the_first_optimizer_step_and_stay) {
  MemoryTrace t;
  t.trace.op("aten::empty", {.start_us = 0, .end_us = 5})
      .op("aten::relu", {.start_us = 10, .end_us = 15})
      .annotation("Optimizer.step#SGD.step", {.start_us = 20, .end_us = 25})
      .op("aten::relu", {.start_us = 30, .end_us = 35})
      .annotation("Optimizer.step#SGD.step", {.start_us = 40, .end_us = 45});
  t.alloc(1, 0x10, 700).alloc(11, 0x20, 50).free(18, 0x20, 50).alloc(31, 0x30, 60);
  const MemoryReport report = memory_report(t.trace.build());
  EXPECT_EQ(at_peak(report.devices.at(0), MemoryCategory::kParameters), 700);
  EXPECT_EQ(at_peak(report.devices.at(0), MemoryCategory::kActivations), 60);
}

TEST(Memory, what_a_marked_step_makes_and_keeps_is_no_parameter) {
  MemoryTrace t;
  t.trace.op("aten::empty", {.start_us = 0, .end_us = 5});
  for (int i = 0; i < 2; ++i) {
    const double at = 10 + i * 30;
    t.trace.step(i, {.start_us = at, .end_us = at + 30})
        .op("aten::relu", {.start_us = at, .end_us = at + 5})
        .annotation("Optimizer.step#SGD.step", {.start_us = at + 10, .end_us = at + 15});
  }
  t.alloc(1, 0x10, 700).alloc(11, 0x20, 50).alloc(41, 0x30, 50);
  const MemoryReport report = memory_report(t.trace.build());
  EXPECT_EQ(at_peak(report.devices.at(0), MemoryCategory::kParameters), 700);
  EXPECT_EQ(at_peak(report.devices.at(0), MemoryCategory::kActivations), 100) << "leaked, the first one too";
}

TEST(Memory, workspace_is_freed_inside_the_op_that_needs_it) {
  MemoryTrace t;
  t.trace.op("aten::convolution", {.start_us = 0, .end_us = 10});
  t.alloc(1, 0x10, 100).alloc(2, 0x20, 900).free(8, 0x20, 900);
  const MemoryReport report = memory_report(t.trace.build());
  const DeviceMemory& device = report.devices.at(0);
  EXPECT_EQ(at_peak(device, MemoryCategory::kWorkspace), 900);
  EXPECT_EQ(at_peak(device, MemoryCategory::kActivations), 100);
  ASSERT_EQ(device.spikes.size(), 1u);
  EXPECT_EQ(device.spikes[0].extra_bytes, 900);
}

TEST(Memory, the_workspace_that_cublas_keeps_is_neither_a_parameter_nor_a_gradient) {
  MemoryTrace t;
  t.trace.op("aten::linear", {.start_us = 1, .end_us = 9})
      .op("aten::addmm", {.start_us = 2, .end_us = 8})
      .op("autograd::engine::evaluate_function: AddmmBackward0", {.start_us = 20, .end_us = 40, .thread = 2})
      .op("aten::mm", {.start_us = 21, .end_us = 28, .thread = 2})
      .op("aten::mm", {.start_us = 30, .end_us = 38, .thread = 2})
      .annotation("Optimizer.step#Adam.step", {.start_us = 50, .end_us = 60})
      .annotation("Optimizer.step#Adam.step", {.start_us = 90, .end_us = 99});
  t.alloc(3, 0x10, 8).alloc(4, 0x20, 3200).alloc(5, 0x30, 100);           // an activation, two workspaces
  t.alloc(22, 0x40, 8, 2).alloc(23, 0x50, 3200, 2).free(29, 0x40, 8, 2);  // a gradient that passes through, a workspace
  t.alloc(31, 0x60, 16, 2).free(41, 0x10, 8);                             // a weight's gradient
  const MemoryReport report = memory_report(t.trace.build());
  const DeviceMemory& device = report.devices.at(0);
  EXPECT_EQ(at_peak(device, MemoryCategory::kWorkspace), 6500);
  EXPECT_EQ(at_peak(device, MemoryCategory::kParameters), 0);
  EXPECT_EQ(at_peak(device, MemoryCategory::kGradients), 16);
  EXPECT_EQ(at_peak(device, MemoryCategory::kActivations), 8);
}

TEST(Memory, growth_names_who_keeps_what_in_every_step) {
  MemoryTrace t;
  for (int i = 0; i < 4; ++i) {
    const double at = i * 100;
    const auto address = static_cast<uint64_t>(0x1000 * (i + 1));
    t.trace.step(i, {.start_us = at, .end_us = at + 90})
        .op("aten::cat", {.start_us = at + 10, .end_us = at + 20})
        .op("aten::relu", {.start_us = at + 30, .end_us = at + 40});
    t.alloc(at + 15, address, 8192).alloc(at + 35, address + 1, 64).free(at + 45, address + 1, 64);
  }
  const MemoryReport report = memory_report(t.trace.build());
  const DeviceMemory& device = report.devices.at(0);
  EXPECT_EQ(device.growth_per_step_bytes, 8192);
  ASSERT_EQ(device.growth_owners.size(), 1u);
  EXPECT_EQ(device.growth_owners[0].op, "aten::cat");
  EXPECT_EQ(device.growth_owners[0].bytes, 8192);
}

TEST(Memory, optimizer_steps_end_steps_that_nobody_marked) {
  MemoryTrace t;
  for (int i = 0; i < 4; ++i) {
    const double at = i * 100;
    t.trace.op("aten::relu", {.start_us = at + 10, .end_us = at + 20})
        .annotation("Optimizer.step#SGD.step", {.start_us = at + 60, .end_us = at + 90});
    t.alloc(at + 15, static_cast<uint64_t>(i + 1), 8192);
  }
  const MemoryReport report = memory_report(t.trace.build());
  EXPECT_GE(report.devices.at(0).steps.size(), 3u);
  EXPECT_EQ(report.devices.at(0).growth_per_step_bytes, 8192);
}

TEST(Memory, a_steady_program_does_not_grow) {
  MemoryTrace t;
  for (int i = 0; i < 4; ++i) {
    const double at = i * 100;
    t.trace.step(i, {.start_us = at, .end_us = at + 90}).op("aten::relu", {.start_us = at + 10, .end_us = at + 20});
    t.alloc(at + 15, 0x10, 8192).free(at + 50, 0x10, 8192);
  }
  EXPECT_EQ(memory_report(t.trace.build()).devices.at(0).growth_per_step_bytes, 0);
}

TEST(Memory, calls_into_the_driver_are_counted_per_step) {
  MemoryTrace t;
  t.trace.step(1, {.start_us = 0, .end_us = 50})
      .step(2, {.start_us = 50, .end_us = 100})
      .call("cudaMalloc", {.start_us = 60, .end_us = 70})
      .call("cudaFree", {.start_us = 71, .end_us = 75});
  t.alloc(72, 0x10, 100);
  const MemoryReport report = memory_report(t.trace.build());
  EXPECT_EQ(report.devices.at(0).steps[0].allocator_calls, 0);
  EXPECT_EQ(report.devices.at(0).steps[1].allocator_calls, 2);
  EXPECT_EQ(report.devices.at(0).steps[1].allocator_ns, 14'000);
}

TEST(Memory, frees_of_what_was_there_before_are_counted_apart) {
  MemoryTrace t(100);
  t.free(1, 0x99, 100);
  t.trace.op("aten::relu", {.start_us = 0, .end_us = 10});
  EXPECT_EQ(memory_report(t.trace.build()).frees_before_recording, 1);
}

TEST(Memory, the_first_allocation_that_failed_is_known_by_its_time) {
  TraceBuilder builder;
  for (const double at_us : {0.0, 5.0, 9.0})
    builder.memory({.at_us = at_us, .bytes = 64, .device_type = 1, .device = 0});
  Model model = builder.build();
  model.memory_events.kind[1] = model.memory_events.kind[2] = MemoryEventKind::kOutOfMemory;
  const MemoryReport report = memory_report(model);
  ASSERT_EQ(report.devices.size(), 1u);
  EXPECT_EQ(report.devices[0].out_of_memory, 2);
  EXPECT_EQ(report.devices[0].first_out_of_memory_ns, 5'000);
}

}  // namespace
}  // namespace firelane::analyze
