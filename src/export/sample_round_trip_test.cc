// Traces of other tools: exported and read again they are the same, as Chrome JSON, as .lane and as Perfetto's.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "export/chrome.h"
#include "export/gzip_sink.h"
#include "export/lane_file.h"
#include "export/perfetto.h"
#include "export/testing.h"
#include "import/load.h"
#include "import/samples_for_tests.h"
#include "model/same.h"

namespace firelane::exporter {
namespace {

// Which operator needs whose data, by the ids of the nodes.
std::map<std::string, int> data_of(const Model& m) {
  std::map<std::string, int> out;
  const auto node = [&](Row detail) {
    return detail == kNoRow ? std::string("-") : std::to_string(m.op_details.data_node[detail]);
  };
  for (Row row = 0; row < m.data_dependencies.size(); ++row) {
    ++out[node(m.data_dependencies.op[row]) + " needs " + node(m.data_dependencies.producer[row])];
  }
  return out;
}

// A sample, and what is compared of it: made once for all tests.
struct Sample {
  Model model;
  std::map<std::string, int> slices;
};

// Null when it cannot be read.
const Sample* read_sample(const std::string& path) {
  static std::map<std::string, std::unique_ptr<const Sample>> read;
  const auto [at, added] = read.try_emplace(path);
  if (added) {
    Result<Model> loaded = importer::load_trace(path);
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    if (loaded.ok()) {
      auto slices = slices_of(loaded.value());
      at->second = std::make_unique<const Sample>(std::move(loaded).value(), std::move(slices));
    }
  }
  return at->second.get();
}

class SampleRoundTrip : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string path = importer::sample_path(GetParam());
    if (path.empty()) GTEST_SKIP() << "no sample " << GetParam() << " here; set FIRELANE_SAMPLES to its folder";
    sample_ = read_sample(path);
    ASSERT_NE(sample_, nullptr);
  }
  const Model& model() const { return sample_->model; }

  static Model again(std::string bytes) {
    Result<Model> loaded = importer::load_trace_bytes(std::move(bytes), "again");
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    return loaded.ok() ? std::move(loaded).value() : Model();
  }

  static int64_t sum(const auto& numbers) {
    int64_t total = 0;
    for (const int64_t number : numbers) total += number == kNoNumber ? 0 : number;
    return total;
  }

  void expect_same(const Model& other) const {
    const auto& before = sample_->slices;
    const auto after = slices_of(other);
    size_t lost = 0;
    for (const auto& [slice, count] : before) {
      const auto found = after.find(slice);
      if (found != after.end() && found->second == count) continue;
      if (++lost <= 3) ADD_FAILURE() << "lost or changed: " << slice;
    }
    EXPECT_EQ(lost, 0u);
    EXPECT_EQ(before.size(), after.size());
    EXPECT_EQ(model().steps.number, other.steps.number);
    EXPECT_EQ(sum(model().kernel_details.flops), sum(other.kernel_details.flops));
    EXPECT_EQ(sum(model().copy_details.bytes), sum(other.copy_details.bytes));
    EXPECT_EQ(model().data_dependencies.size(), other.data_dependencies.size());
    EXPECT_EQ(sum(model().data_dependencies.bytes), sum(other.data_dependencies.bytes));
    EXPECT_EQ(model().info.has_order_only, other.info.has_order_only);
    EXPECT_EQ(model().info.accelerator, other.info.accelerator);
    EXPECT_EQ(model().info.devices.size(), other.info.devices.size());
  }

  const Sample* sample_ = nullptr;
};

TEST_P(SampleRoundTrip, through_chrome_json) {
  StringSink sink;
  ASSERT_TRUE(export_chrome(model(), sink).ok());
  expect_same(again(std::move(sink.text)));
}

// Tables whose rows stand in one order, with every cell; of all others that no row is missing.
void expect_every_row(const Model& model, const Model& other) {
  for (const TableInfo& table : model_tables()) {
    EXPECT_EQ(table.size(model), table.size(other)) << table.name;
  }
  const auto table_named = [](std::string_view name) {
    const auto all = model_tables();
    return *std::find_if(all.begin(), all.end(), [&](const TableInfo& each) { return each.name == name; });
  };
  for (const std::string_view name :
       {"memory_events", "allocator_events", "allocator_segments", "allocator_blocks", "steps", "counter_tracks"}) {
    EXPECT_EQ(first_difference(model, other, table_named(name)), std::nullopt) << name;
  }
}

TEST_P(SampleRoundTrip, through_a_lane_file) {
  StringSink sink;
  ASSERT_TRUE(export_lane(model(), sink).ok());
  const Model other = again(std::move(sink.text));
  expect_same(other);
  expect_every_row(model(), other);
  EXPECT_EQ(model().info.origin, other.info.origin);
  EXPECT_EQ(std::vector<CommState>(model().comm_details.state.begin(), model().comm_details.state.end()),
            std::vector<CommState>(other.comm_details.state.begin(), other.comm_details.state.end()));
  EXPECT_EQ(data_of(model()), data_of(other));
}

TEST_P(SampleRoundTrip, through_perfetto) {
  StringSink sink;
  export_perfetto(model(), sink);
  EXPECT_EQ(slices_of(model(), Links::kLost), slices_of(again(std::move(sink.text)), Links::kLost));
}

INSTANTIATE_TEST_SUITE_P(Samples, SampleRoundTrip,
                         testing::Values("nsys_h100_2gpu.sqlite", "tpu_v6e_inference.xplane.pb",
                                         "jax_mi300_conv.xplane.pb", "rocprofv3_mi350.json.gz",
                                         "ascend_trace_view.json.gz", "kineto_mtia_inference.json.gz",
                                         "kineto_mi300_qwen.json.gz", "kineto_nccl_one_rank_h200.json.gz",
                                         "memory_snapshot_h200.pickle", "nccl_flight_recorder_h200.pickle",
                                         "nccl_flight_recorder_h200.json", "execution_trace_linear.json.gz"));

// The part of a snapshot that a Chrome trace has no form for, where there are no samples.
TEST(LaneFile, a_converted_snapshot_keeps_the_allocator_and_stacks) {
  Result<Model> loaded = importer::load_trace(FIRELANE_TEST_DATA "/snapshot.pickle");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  StringSink sink;
  ASSERT_TRUE(export_lane(loaded.value(), sink).ok());
  const Result<Model> other = importer::load_trace_bytes(std::move(sink.text), "again");
  ASSERT_TRUE(other.ok());
  EXPECT_GT(other.value().allocator_segments.size(), 0u);
  expect_every_row(loaded.value(), other.value());
}

TEST(LaneFile, one_of_ours_is_not_converted_again) {
  Model model;
  model.info.origin = Origin::kFirelane;
  StringSink sink;
  EXPECT_FALSE(export_lane(model, sink).ok());
}

}  // namespace
}  // namespace firelane::exporter
