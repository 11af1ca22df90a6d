#include "model/collectives.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane {
namespace {

TEST(Collectives, a_range_of_c10d_names_its_backend_and_its_collective) {
  EXPECT_EQ(collective_named("gloo:all_reduce").backend, CommBackend::kGloo);
  EXPECT_EQ(collective_named("gloo:all_reduce").collective, "all_reduce");
  EXPECT_EQ(collective_named("nccl:_all_gather_base").backend, CommBackend::kNccl);
  EXPECT_EQ(collective_named("mpi:broadcast").backend, CommBackend::kMpi);
  for (const std::string_view other : {"", "gloo", "gloo:", "ucc::init", "aten::mm", "step:1", "nccl", ":x"}) {
    EXPECT_EQ(collective_named(other).backend, CommBackend::kUnknown) << other;
  }
}

TEST(Collectives, a_range_of_gloo_is_a_collective_on_the_host) {
  const Model m = TraceBuilder()
                      .op("c10d::allreduce_", {.start_us = 0, .end_us = 5})
                      .annotation("gloo:all_reduce", {.start_us = 2, .end_us = 40, .thread = 2})
                      .annotation("Optimizer.step#SGD.step", {.start_us = 41, .end_us = 50})
                      .build();
  ASSERT_EQ(m.comm_details.size(), 1u);
  EXPECT_EQ(m.text(m.comm_details.collective[0]), "all_reduce");
  EXPECT_EQ(m.comm_details.backend[0], CommBackend::kGloo);
  for (Row row = 0; row < m.host_slices.size(); ++row) {
    EXPECT_EQ(m.is_host_collective(row), m.text(m.host_slices.name[row]) == "gloo:all_reduce");
  }
}

TEST(Collectives, nccls_own_range_is_no_second_collective) {
  const Model m =
      TraceBuilder().annotation("nccl:all_reduce", {.start_us = 1, .end_us = 4}).build();  // without details
  EXPECT_EQ(m.comm_details.size(), 0u);
  EXPECT_FALSE(m.is_host_collective(0));
}

}  // namespace
}  // namespace firelane
