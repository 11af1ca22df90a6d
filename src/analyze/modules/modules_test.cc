// Modules by hand: a Net with a Linear in it, its backward on another thread, and an optimizer.
#include "analyze/modules/modules.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

Model training_step() {
  return TraceBuilder()
      .python("nn.Module: Net_0", {.start_us = 0, .end_us = 50})
      .python("nn.Module: Linear_0", {.start_us = 10, .end_us = 30})
      .op("aten::addmm", {.start_us = 12,
                          .end_us = 20,
                          .external_id = 1,
                          .sequence_number = 7,
                          .dims = "[[4], [2, 3], [3, 4]]",
                          .types = R"(["float", "float", "float"])"})
      .call("cudaLaunchKernel", {.start_us = 13, .end_us = 14, .correlation = 1, .external_id = 1})
      .kernel("gemm", {.start_us = 20, .end_us = 30, .correlation = 1, .external_id = 1})
      .memory({.at_us = 15, .bytes = 1024, .device_type = 1, .device = 0, .total_allocated = 1024})
      .op("aten::relu", {.start_us = 35, .end_us = 40, .external_id = 2})
      .call("cudaLaunchKernel", {.start_us = 36, .end_us = 37, .correlation = 2, .external_id = 2})
      .kernel("relu", {.start_us = 40, .end_us = 43, .correlation = 2, .external_id = 2})
      .op("autograd::engine::evaluate_function: AddmmBackward0",
          {.start_us = 60, .end_us = 80, .thread = 2, .sequence_number = 7, .forward_thread = 1})
      .op("aten::mm", {.start_us = 62,
                       .end_us = 70,
                       .thread = 2,
                       .external_id = 3,
                       .dims = "[[3, 2], [2, 4]]",
                       .types = R"(["float", "float"])"})
      .call("cudaLaunchKernel", {.start_us = 63, .end_us = 64, .thread = 2, .correlation = 3, .external_id = 3})
      .kernel("gemm", {.start_us = 70, .end_us = 75, .correlation = 3, .external_id = 3})
      .annotation("Optimizer.step#SGD.step", {.start_us = 90, .end_us = 100})
      .op("aten::_foreach_add_", {.start_us = 91, .end_us = 95, .external_id = 4})
      .call("cudaLaunchKernel", {.start_us = 92, .end_us = 93, .correlation = 4, .external_id = 4})
      .kernel("multi_tensor_apply", {.start_us = 95, .end_us = 97, .correlation = 4, .external_id = 4})
      .build();
}

TEST(Modules, forward_and_backward_go_to_the_module_of_the_forward) {
  const ModuleTable table = module_table(training_step());
  ASSERT_EQ(table.rows.size(), 2u);
  const ModuleRow& net = table.rows[0];
  const ModuleRow& linear = table.rows[1];
  EXPECT_EQ(net.name, "Net_0");
  EXPECT_EQ(net.host_ns, 50'000);
  EXPECT_EQ(net.self_host_ns, 30'000);
  EXPECT_EQ(net.forward_device_ns, 13'000);
  EXPECT_EQ(net.self_forward_device_ns, 3'000);
  EXPECT_EQ(net.backward_device_ns, 5'000);
  EXPECT_EQ(linear.type, "Linear");
  EXPECT_EQ(linear.parent, "Net_0");
  EXPECT_EQ(linear.depth, 1);
  EXPECT_EQ(linear.forward_device_ns, 10'000);
  EXPECT_EQ(linear.self_backward_device_ns, 5'000);
  EXPECT_EQ(linear.backward_host_ns, 20'000);
  EXPECT_EQ(linear.compute_device_ns, 15'000);  // both gemm kernels
  EXPECT_EQ(linear.limit, Limit::kOverhead);    // 40 us of host for 15 us of work
  EXPECT_EQ(linear.forward_flops, 2 * 2 * 3 * 4);
  EXPECT_EQ(linear.backward_flops, 2 * 3 * 2 * 4);
  EXPECT_EQ(linear.allocated_bytes, 1024);
  EXPECT_EQ(table.work_ns, 20'000);
  EXPECT_EQ(table.without_module_device_ns, 2'000);
}

TEST(Modules, phases_split_host_and_device) {
  const ModuleTable table = module_table(training_step());
  const auto phase = [&](Phase which) { return table.phases[static_cast<size_t>(which)]; };
  EXPECT_EQ(phase(Phase::kForward).device_ns, 13'000);
  EXPECT_EQ(phase(Phase::kBackward).device_ns, 5'000);
  EXPECT_EQ(phase(Phase::kOptimizer).device_ns, 2'000);
  EXPECT_EQ(phase(Phase::kForward).host_ns, 50'000);
  EXPECT_EQ(phase(Phase::kBackward).host_ns, 20'000);
  EXPECT_EQ(phase(Phase::kOptimizer).host_ns, 10'000);
  EXPECT_EQ(phase(Phase::kForward).allocated_bytes, 1024);
}

TEST(Modules, by_type_counts_a_module_inside_its_like_once) {
  const Model model = TraceBuilder()
                          .python("nn.Module: Block_0", {.start_us = 0, .end_us = 50})
                          .python("nn.Module: Block_1", {.start_us = 10, .end_us = 30})
                          .build();
  const ModuleTable table = module_table(model, {.by_type = true});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].name, "Block");
  EXPECT_EQ(table.rows[0].calls, 2);
  EXPECT_EQ(table.rows[0].host_ns, 50'000);
}

TEST(Phases, copies_between_host_and_device_are_transfer) {
  const Model model =
      TraceBuilder()
          .op("aten::to", {.start_us = 0, .end_us = 10})
          .op("aten::copy_", {.start_us = 1, .end_us = 9, .external_id = 1})
          .call("cudaMemcpyAsync", {.start_us = 2, .end_us = 3, .correlation = 1, .external_id = 1})
          .copy("Memcpy HtoD (Pageable -> Device)", {.start_us = 4, .end_us = 6, .correlation = 1, .external_id = 1})
          .op("aten::relu", {.start_us = 10, .end_us = 20})
          .build();
  const Phases phases = find_phases(model);
  EXPECT_EQ(phases.host[0], Phase::kTransfer);
  EXPECT_EQ(phases.host[1], Phase::kTransfer);
  EXPECT_EQ(phases.device[0], Phase::kTransfer);
  EXPECT_EQ(phases.host.back(), Phase::kForward);
  EXPECT_FALSE(phases.has_backward);
}

TEST(Phases, the_innermost_open_slice_is_found_at_any_moment) {
  const Model model = TraceBuilder()
                          .op("outer", {.start_us = 10, .end_us = 50})
                          .op("first", {.start_us = 12, .end_us = 20})
                          .op("second", {.start_us = 30, .end_us = 40})
                          .build();
  const auto name_at = [&](int64_t us) {
    const Row row = open_slice_at(model, LaneId{0}, us * 1000 - 10'000);  // times count from the first slice
    return row == kNoRow ? std::string("none") : std::string(model.text(model.host_slices.name[row]));
  };
  EXPECT_EQ(name_at(5), "none");
  EXPECT_EQ(name_at(11), "outer");
  EXPECT_EQ(name_at(15), "first");
  EXPECT_EQ(name_at(25), "outer");
  EXPECT_EQ(name_at(35), "second");
  EXPECT_EQ(name_at(60), "none");
}

}  // namespace
}  // namespace firelane::analyze
