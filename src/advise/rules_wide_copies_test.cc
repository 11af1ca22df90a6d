// Copies in a wider type than needed: told where the data is widened on the host or narrowed on the device.
#include <gtest/gtest.h>

#include <string>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

enum class Sends { kWidened, kWidenedAndMore, kNarrowedThere, kIdsThere, kAsItIs };

// Steps of a copy of 16 MiB from pinned memory, 400 us, and 300 us of computing.
Judged sent_as(Sends how) {
  TraceBuilder builder;
  int64_t correlation = 1;
  double at = 0;
  constexpr std::string_view kBoth = "[[64, 65536], [64, 65536], []]";
  for (int step = 0; step < 4; ++step) {
    const double from = at;
    if (how == Sends::kWidenedAndMore) {
      builder.op("aten::normal_", {.start_us = at, .end_us = at + 400});
      at += 405;
    }
    if (how == Sends::kWidened || how == Sends::kWidenedAndMore) {
      builder.op(
          "aten::copy_",
          {.start_us = at, .end_us = at + 500, .dims = kBoth, .types = R"(["float", "unsigned char", "Scalar"])"});
      at += 505;
    }
    const double begins = at + 15;
    builder.op("aten::to", {.start_us = at, .end_us = at + 20, .dims = "[[64, 65536]]", .types = R"(["float"])"});
    builder.call("cudaMemcpyAsync", {.start_us = at + 5, .end_us = at + 9, .correlation = correlation});
    builder.copy("Memcpy HtoD (Pinned -> Device)",
                 {.start_us = begins, .end_us = begins + 400, .correlation = correlation++, .bytes = 16 << 20});
    at += 25;
    double busy = begins + 401;
    if (how == Sends::kNarrowedThere || how == Sends::kIdsThere) {
      builder.op("aten::copy_", {.start_us = at,
                                 .end_us = at + 20,
                                 .dims = "[[32, 65536], [32, 65536], []]",
                                 .types = how == Sends::kIdsThere ? R"(["float", "long int", "Scalar"])"
                                                                  : R"(["float", "double", "Scalar"])"});
      builder.call("cudaLaunchKernel", {.start_us = at + 5, .end_us = at + 9, .correlation = correlation});
      builder.kernel("convert", {.start_us = busy, .end_us = busy + 10, .correlation = correlation++});
      busy += 11;
      at += 25;
    }
    builder.op("aten::mm", {.start_us = at, .end_us = at + 20});
    builder.call("cudaLaunchKernel", {.start_us = at + 5, .end_us = at + 9, .correlation = correlation});
    builder.kernel("gemm", {.start_us = busy, .end_us = busy + 300, .correlation = correlation++});
    builder.call("cudaDeviceSynchronize", {.start_us = at + 25, .end_us = busy + 302});
    at = busy + 305;
    builder.step(step, {.start_us = from, .end_us = at});
  }
  const Model model = builder.build();
  return diagnose(model);
}

TEST(WideCopies, bytes_that_become_floats_on_the_host_are_sent_four_times) {
  const Judged found = sent_as(Sends::kWidened);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "wide-copies");
  EXPECT_TRUE(
      found.findings[0].title.starts_with("every step sends 16.0 MiB to the device where 4.0 MiB would do: 8-bit "
                                          "numbers are widened to 32-bit on the host"))
      << found.findings[0].title;
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 800e3, 60e3)
      << "500 us, and three quarters of 400";
  EXPECT_EQ(find(found, "host-compute"), nullptr);
}

TEST(WideCopies, doubles_that_become_floats_on_the_device_are_sent_twice) {
  const Judged found = sent_as(Sends::kNarrowedThere);
  const Finding* finding = find(found, "wide-copies");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("64-bit numbers are narrowed to 32-bit once they are there"), std::string::npos)
      << finding->title;
  EXPECT_NE(finding->try_code.find("float32"), std::string::npos);
}

// Embeddings and losses take them as they are, and something else may take them as floats.
TEST(WideCopies, whole_numbers_were_advised_to_be_sent_as_the_floats_that_are_made_of_them) {
  EXPECT_EQ(find(sent_as(Sends::kIdsThere), "wide-copies"), nullptr);
}

TEST(WideCopies, what_the_host_does_beside_widening_is_said_instead) {
  const Judged found = sent_as(Sends::kWidenedAndMore);
  EXPECT_EQ(find(found, "wide-copies"), nullptr);
  EXPECT_NE(find(found, "host-compute"), nullptr);
}

TEST(WideCopies, data_that_is_used_as_it_is_sent_is_none) {
  EXPECT_EQ(find(sent_as(Sends::kAsItIs), "wide-copies"), nullptr);
}

}  // namespace
}  // namespace firelane::advise
