// Rows that are added to few others or taken with brackets, and those for which that is fast.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

class Rows : public WrittenProgram<Rows> {
 public:
  struct Call {
    std::string_view name;
    double us = 0;
    std::string_view dims;
    std::string_view numbers = R"(["", "", "", "", ""])";
  };
  Rows& op(const Call& call) {
    builder_.op(call.name, {.start_us = at_,
                            .end_us = at_ + call.us,
                            .dims = call.dims,
                            .types = R"(["float", "", "long int", "float", "Scalar"])",
                            .concrete = call.numbers});
    at_ += call.us + 4;
    return *this;
  }
  // On an H200: the operator launches one kernel.
  Rows& launch(const Call& call) {
    const int64_t id = correlation_++;
    builder_.op(call.name, {.start_us = at_,
                            .end_us = at_ + 10,
                            .external_id = id,
                            .dims = call.dims,
                            .types = R"(["float", "", "long int", "float", "Scalar"])",
                            .concrete = call.numbers});
    builder_.call("cudaLaunchKernel", {.start_us = at_ + 2, .end_us = at_ + 8, .correlation = id, .external_id = id});
    device_at_ = std::max(device_at_, at_ + 12);
    builder_.kernel(call.name,
                    {.start_us = device_at_, .end_us = device_at_ + call.us, .correlation = id, .external_id = id});
    device_at_ += call.us + 1;
    at_ += 14;
    return *this;
  }
  Rows& wait() {
    builder_.call("cudaDeviceSynchronize", {.start_us = at_, .end_us = device_at_ + 2, .correlation = correlation_++});
    at_ = device_at_ + 5;
    return end_step();
  }
  Rows() { builder_.device({.id = 0, .name = "NVIDIA H200"}); }

 private:
  double device_at_ = 0;
};

Judged added_to(std::string_view dims, double us, std::string_view name = "aten::index_add_") {
  Rows program;
  for (int step = 0; step < 4; ++step) {
    program.launch({.name = "aten::gelu", .us = 400, .dims = "[[262144, 128], []]"})
        .launch({.name = name, .us = us, .dims = dims, .numbers = R"(["", "0", "", "", "1"])"})
        .wait();
  }
  return program.judged();
}

TEST(ContendedScatter, many_rows_added_to_each_of_ten_are_told_with_a_product) {
  const Judged found = added_to("[[10, 128], [], [262144], [262144, 128], []]", 350);
  const Finding* told = find(found, "contended-scatter");
  ASSERT_NE(told, nullptr);
  EXPECT_NE(told->title.find("adds 262144 rows to 10"), std::string::npos) << told->title;
  EXPECT_NEAR(static_cast<double>(told->gain.middle_ns()), 250e3, 60e3);
}

TEST(ContendedScatter, many_targets_and_what_is_as_fast_as_reading_are_none) {
  EXPECT_EQ(find(added_to("[[100000, 128], [], [262144], [262144, 128], []]", 350), "contended-scatter"), nullptr);
  EXPECT_EQ(find(added_to("[[10, 128], [], [262144], [262144, 128], []]", 100), "contended-scatter"), nullptr);
}

TEST(ContendedScatter, the_largest_of_many_rows_was_advised_to_be_a_product) {
  EXPECT_EQ(
      find(added_to("[[10, 128], [], [262144], [262144, 128], []]", 350, "aten::scatter_reduce_"), "contended-scatter"),
      nullptr);
}

Judged taken(std::string_view accumulates, double selecting_us = 500) {
  Rows program;
  for (int step = 0; step < 4; ++step) {
    program.op({.name = "aten::gelu", .us = 1000, .dims = "[[3000, 32], []]"})
        .op({.name = "aten::index", .us = 1000, .dims = "[[3000, 32], []]"})
        .op({.name = "aten::index_select", .us = selecting_us, .dims = "[[3000, 32], [], [40000]]"})
        .op({.name = "aten::_index_put_impl_",
             .us = 1000,
             .dims = "[[3000, 32], [], [40000, 32], [], []]",
             .numbers = accumulates})
        .end_step();
  }
  return program.judged();
}

TEST(IndexBackward, rows_taken_with_brackets_on_a_cpu_are_told_with_index_select) {
  const Judged found = taken(R"(["", "", "", "True", "True"])");
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "index-backward");
  EXPECT_NE(found.findings[0].try_code.find("index_select"), std::string::npos);
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 400e3, 60e3) << "no index_add to compare with";
}

TEST(IndexBackward, brackets_that_are_as_fast_as_index_select_in_this_program_are_none) {
  EXPECT_EQ(find(taken(R"(["", "", "", "True", "True"])", 950), "index-backward"), nullptr);
}

TEST(IndexBackward, writing_rows_without_adding_is_none) {
  EXPECT_EQ(find(taken(R"(["", "", "", "False", "True"])"), "index-backward"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
