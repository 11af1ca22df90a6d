// Several traces in one file: times on one axis, processes of the same number kept apart, arrows from one to another.
#include <gtest/gtest.h>

#include "export/chrome.h"
#include "export/perfetto.h"
#include "import/load.h"
#include "model/trace_builder.h"

namespace firelane::exporter {
namespace {

Model rank_model() {
  return TraceBuilder()
      .op("aten::mm", {.start_us = 10, .end_us = 30, .external_id = 1})
      .call("cudaLaunchKernel", {.start_us = 12, .end_us = 14, .correlation = 7, .external_id = 1})
      .kernel("gemm", {.start_us = 20, .end_us = 60, .correlation = 7, .external_id = 1})
      .kernel("ncclDevKernel_AllReduce", {.start_us = 70, .end_us = 90, .correlation = 8})
      .build();
}

// The second rank's clock is 5 us behind the first and runs 10% slower.
ExportPlace place_of(int64_t number) {
  ExportPlace place{.number = number, .name = "rank " + std::to_string(number)};
  place.time = [number](int64_t ns) { return number == 0 ? ns : 5'000 + ns + ns / 10; };
  // The collective of rank 0 waits for that of rank 1, which begins before it ends.
  place.arrows = {{.slice = {.row = 1, .on_device = true}, .id = 1, .starts = number == 1, .time_ns = 75'000}};
  return place;
}

void expect_two_ranks(const Result<Model>& loaded) {
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Model& both = loaded.value();
  ASSERT_EQ(both.device_slices.size(), 4u);
  std::vector<std::pair<int64_t, int64_t>> kernels;
  for (Row row = 0; row < both.device_slices.size(); ++row) {
    const int64_t first = both.host_slices.start_ns[0];
    kernels.emplace_back(both.device_slices.start_ns[row] - first, both.device_slices.duration_ns[row]);
  }
  std::sort(kernels.begin(), kernels.end());
  const std::vector<std::pair<int64_t, int64_t>> expected = {
      {10'000, 40'000}, {16'000, 44'000}, {60'000, 20'000}, {71'000, 22'000}};
  EXPECT_EQ(kernels, expected);
  ASSERT_EQ(both.host_slices.size(), 4u);
  EXPECT_NE(both.host_slices.lane[0], both.host_slices.lane[3]);
  size_t launched = 0;
  for (const Row launch : both.device_slices.launch) launched += launch == kNoRow ? 0 : 1;
  EXPECT_EQ(launched, 2u);
}

TEST(Places, of_a_chrome_trace) {
  const Model model = rank_model();
  StringSink sink;
  begin_chrome(sink);
  for (const int64_t number : {0, 1}) ASSERT_TRUE(add_to_chrome(model, place_of(number), sink).ok());
  end_chrome(sink);
  const Result<Model> read = importer::load_trace_bytes(sink.text, "job.json");
  expect_two_ranks(read);
  ASSERT_EQ(read.value().flows.size(), 1u);  // from the kernel of rank 1 to that of rank 0
  const DeviceSlices& device = read.value().device_slices;
  EXPECT_GT(device.start_ns[read.value().flows.from[0].row], device.start_ns[read.value().flows.to[0].row]);
  EXPECT_NE(sink.text.find("\"rank 1: "), std::string::npos);
}

TEST(Places, of_a_perfetto_trace) {
  const Model model = rank_model();
  StringSink sink;
  for (const int64_t number : {0, 1}) export_perfetto(model, sink, place_of(number));
  const Result<Model> read = importer::load_trace_bytes(sink.text, "job.pftrace");
  expect_two_ranks(read);
  ASSERT_EQ(read.value().instants.size(), 1u);
  EXPECT_EQ(read.value().text(read.value().instants.name[0]), "last rank arrives");
  EXPECT_NE(sink.text.find("rank 1: "), std::string::npos);
}

}  // namespace
}  // namespace firelane::exporter
