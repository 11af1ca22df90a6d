#include "import/load.h"

#include <gtest/gtest.h>

#include <sstream>

#include "import/cut_json.h"
#include "import/testing.h"

namespace firelane::importer {
namespace {

TEST(Load, a_real_trace_gives_every_event) {
  const Result<Model> loaded = load_trace(FIRELANE_TEST_DATA "/gpt_full.json.gz");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Model& m = loaded.value();
  // Counted by another JSON reader: 12,064 ops, 18 annotations, 11,335 Python functions, 2,127 calls, 1 span.
  EXPECT_EQ(m.info.event_count, 37650u);
  EXPECT_EQ(m.host_slices.size(), 25545u);
  EXPECT_EQ(m.device_slices.size(), 1835u);
  EXPECT_EQ(m.memory_events.size(), 4392u);
  EXPECT_EQ(m.steps.number, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(m.losses[Stat::kFlowEndWithoutStart], 301u);
  EXPECT_EQ(m.losses[Stat::kFlowStartWithoutEnd], 3u);
}

Model load_fixture(const std::string& name) {
  Result<Model> loaded = load_trace(FIRELANE_TEST_DATA "/" + name);
  EXPECT_TRUE(loaded.ok()) << loaded.error().message;
  return loaded.ok() ? std::move(loaded).value() : Model();
}

TEST(Load, kernels_of_a_cuda_graph_belong_to_its_launch) {
  const Model m = load_fixture("cuda_graph.json.gz");
  const DeviceSlices& device = m.device_slices;
  size_t kernels = 0;
  for (Row row = 0; row < device.size(); ++row) {
    if (device.kind[row] != DeviceKind::kKernel) continue;
    ++kernels;
    ASSERT_NE(device.launch[row], kNoRow);
    EXPECT_EQ(m.text(m.host_slices.name[device.launch[row]]), "cudaGraphLaunch");
  }
  EXPECT_EQ(kernels, 60u);  // 3 steps of 4 replays of 5 kernels
  EXPECT_EQ(m.losses[Stat::kKernelBeforeLaunch], 0u);
}

TEST(Load, synchronizations_are_device_slices_with_what_they_wait_for) {
  const Model m = load_fixture("two_streams.json.gz");
  EXPECT_EQ(m.sync_details.size(), 13u);
  size_t waits = 0;
  for (Row detail = 0; detail < m.sync_details.size(); ++detail) {
    const Row row = m.sync_details.slice[detail];
    if (m.text(m.device_slices.name[row]) != "Stream Wait Event") continue;
    ++waits;
    EXPECT_NE(m.sync_details.wait_on_event[detail], kNoNumber);
    // Its external id is its own correlation id, not that of an op.
    const Row launch = m.device_slices.launch[row];
    ASSERT_NE(launch, kNoRow);
    EXPECT_EQ(m.device_slices.op[row], m.call_details.op[m.call_detail(launch)]);
  }
  EXPECT_GT(waits, 0u);
}

TEST(Load, a_rank_knows_its_place_and_its_collectives) {
  const Model m = load_fixture("one_rank.json.gz");
  EXPECT_TRUE(m.info.distributed.present);
  EXPECT_EQ(m.info.distributed.rank, 0);
  EXPECT_EQ(m.info.distributed.world_size, 1);
  EXPECT_EQ(m.info.distributed.backend, "nccl");
  ASSERT_EQ(m.comm_details.size(), 3u);
  EXPECT_EQ(m.text(m.comm_details.collective[0]), "allreduce");
  EXPECT_EQ(m.comm_details.in_elements[0], 1 << 20);
}

TEST(Load, triton_kernels_are_linked_through_the_driver_call) {
  const Model m = load_fixture("compiled.json.gz");
  const DeviceSlices& device = m.device_slices;
  size_t triton = 0;
  for (Row row = 0; row < device.size(); ++row) {
    if (!m.text(device.name[row]).starts_with("triton_")) continue;
    ++triton;
    ASSERT_NE(device.launch[row], kNoRow);
    EXPECT_EQ(m.host_slices.kind[device.launch[row]], HostKind::kDriver);
    EXPECT_NE(device.op[row], kNoRow);
  }
  EXPECT_GT(triton, 0u);
}

// A format of lines "NAME START_NS DURATION_NS", as whoever adds one would write it.
Result<RawTrace> read_lines(std::unique_ptr<ByteSource> content, const ReadRequest&) {
  std::string text(1000, '\0');
  text.resize(content->read(text.data(), text.size()));
  RawTrace raw;
  raw.info.format = "Lines";
  RawPool& pool = raw.pools.emplace_back();
  RawPart& part = raw.parts.emplace_back();
  std::istringstream lines(text.substr(text.find('\n') + 1));
  std::string name;
  int64_t start_ns = 0, duration_ns = 0;
  while (lines >> name >> start_ns >> duration_ns) {
    part.host_slices.push_back({.start_ns = start_ns,
                                .duration_ns = duration_ns,
                                .lane = pool.lane({.number = 1}, {.number = 1}),
                                .name = pool.strings.intern(name)});
  }
  if (!lines.eof()) ++raw.losses[Stat::kEventMalformed];
  return raw;
}

TEST(Load, a_new_format_is_a_reader_in_the_list) {
  const Reader readers[] = {{"Lines", [](std::string_view begin) { return begin.starts_with("LINES"); }, read_lines}};
  const auto load_lines = [&](std::string bytes) {
    return load_content(open_memory(std::move(bytes)), "toy", {}, readers);
  };
  for (const std::string& file : {std::string("LINES\nouter 5 100\ninner 10 20\nbroken x y\n"),
                                  gzip("LINES\nouter 5 100\ninner 10 20\nbroken x y\n")}) {
    const Result<Model> loaded = load_lines(file);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    const Model& m = loaded.value();
    ASSERT_EQ(m.host_slices.size(), 2u);
    EXPECT_EQ(m.text(m.host_slices.name[1]), "inner");
    EXPECT_EQ(m.host_slices.parent[1], 0u);
    EXPECT_EQ(m.info.format, "Lines");
    EXPECT_EQ(m.losses[Stat::kEventMalformed], 1u);
  }
  EXPECT_EQ(load_lines("WORDS\n").error().message, "toy: not a trace in a format that Firelane reads");
}

TEST(CutJson, the_record_that_the_text_ends_in_is_dropped_and_the_rest_closed) {
  const auto closed = [](std::string text) { return close_cut_json(text) ? text : "not cut: " + text; };
  EXPECT_EQ(closed(R"({"a": [{"b": 1}, {"b": [2, {"c)"), R"({"a": [{"b": 1}, {"b": [2]}]})");
  EXPECT_EQ(closed(R"([{"a": [1], "b": {"c": 3)"), R"([{"a": [1]}])") << "what holds a list is more than a record";
  EXPECT_EQ(closed(R"({"a": [{"b": 1}], "c": "d\"}]")"), R"({"a": [{"b": 1}]})") << "brackets in texts are none";
  EXPECT_EQ(closed(R"({"a": [[1, 2], [3, )"), R"({"a": [[1, 2]]})");
  EXPECT_EQ(closed(R"({"a": 1, "b": {"c": 2, "d)"), R"({"a": 1, "b": {"c": 2}})") << "no list: as far as it goes";
  EXPECT_EQ(closed("["), "[]");
  EXPECT_EQ(closed("[1]"), "not cut: [1]");
  EXPECT_EQ(closed("]["), "not cut: ][");
  EXPECT_EQ(closed(std::string(100'000, '[')).substr(0, 8), "not cut:");
}

}  // namespace
}  // namespace firelane::importer
