#include "import/xplane/read_xplane.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "import/samples_for_tests.h"
#include "import/testing.h"
#include "import/xplane/testing.h"
#include "model/same.h"

namespace firelane::importer {
namespace {

using namespace xplane_testing;  // NOLINT(google-build-using-namespace): the words of these tests

std::string tpu_plane() {
  std::string out;
  Writer plane(out);
  plane.add_int64(1, 2);
  plane.add_string(2, "/device:TPU:0");
  plane.add_message(
      3, line(2, "XLA Modules",
              {event(4, 0, 50'000'000), event(4, 100'000'000, 60'000'000), event(4, 200'000'000, 50'000'000)}));
  plane.add_message(3, line(3, "XLA Ops",
                            {event(1, 1'000'500, 2'000'700), event(2, 5'000'000, 3'000'000),
                             event(3, 9'000'000, 1'000'000), event(5, 500'000, 20'000'000)}));
  plane.add_message(3, line(4, "Framework Ops", {event(1, 1'000'000, 2'000'000)}));
  plane.add_message(4, op(1, "fusion.1", "convolution fusion", 1000, 4096));
  plane.add_message(4, op(2, "all-reduce.2", "all-reduce", 10, 8192));
  plane.add_message(4, op(3, "copy-done.3", "copy-done", 0, 0));
  plane.add_message(4, named(4, "jit_train(77)"));
  plane.add_message(4, op(5, "while.5", "while", 0, 0));
  plane.add_message(5, named(1, "hlo_category"));
  plane.add_message(5, named(2, "flops"));
  plane.add_message(5, named(3, "bytes_accessed"));
  plane.add_message(5, named(4, "device_type_string"));
  plane.add_message(6, stat(4, std::string("TPU v5 lite")));
  return out;
}

std::string host_plane() {
  std::string out;
  Writer plane(out);
  plane.add_string(2, "/host:CPU");
  plane.add_message(3, line(41, "main/41",
                            {event(1, 0, 90'000'000), event(2, 1'000'000, 5'000'000, {stat(1, 9)}),
                             event(3, 10'000'000, 2'000'000), event(4, 20'000'000, 2'000'000)}));
  plane.add_message(4, named(1, "PjitFunction(train)"));
  plane.add_message(4, named(2, "hipModuleLaunchKernel"));
  plane.add_message(4, named(3, "$train.py:12 loss"));
  plane.add_message(4, named(4, "Client::Execute"));
  plane.add_message(5, named(1, "correlation_id"));
  return out;
}

std::string small_file() {
  std::string out;
  Writer space(out);
  space.add_message(1, tpu_plane());
  space.add_message(1, host_plane());
  space.add_string(4, "worker-0");
  return out;
}

TEST(XPlane, ops_of_a_tpu_are_work_and_derived_lines_are_not) {
  const Model m = load_bytes(small_file());
  std::map<std::string, DeviceKind> kinds;
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    const auto lane = static_cast<size_t>(m.device_slices.lane[row]);
    kinds[std::string(m.text(m.lanes.name[lane])) + ": " + std::string(m.text(m.device_slices.name[row]))] =
        m.device_slices.kind[row];
  }
  EXPECT_EQ(kinds.at("XLA Ops: fusion.1"), DeviceKind::kKernel);
  EXPECT_EQ(kinds.at("XLA Ops: all-reduce.2"), DeviceKind::kCollective);
  EXPECT_EQ(kinds.at("XLA Ops: copy-done.3"), DeviceKind::kSync);
  EXPECT_EQ(kinds.at("XLA Ops: while.5"), DeviceKind::kAnnotation) << "it encloses what it runs";
  EXPECT_EQ(kinds.at("Framework Ops: fusion.1"), DeviceKind::kAnnotation);
  EXPECT_EQ(kinds.at("XLA Modules: jit_train(77)"), DeviceKind::kAnnotation);
  EXPECT_EQ(m.info.accelerator, Accelerator::kTpu);
  ASSERT_EQ(m.info.devices.size(), 1u);
  EXPECT_EQ(m.info.devices[0].name, "TPU v5 lite");
}

TEST(XPlane, large_planes_are_read_side_by_side_and_give_the_same) {
  std::string file;
  Writer space(file);
  space.add_message(1, host_plane());
  for (int device = 0; device < 3; ++device) {
    std::string out;
    Writer plane(out);
    plane.add_string(2, "/device:TPU:" + std::to_string(device));
    std::vector<std::string> events;
    for (int64_t i = 0; i < 2'000; ++i) {
      events.push_back(event(i % 2 + 1, i * 9'000'000, 4'000'000 + device));
      Writer(events.back()).add_string(15, std::string(600, 'x'));  // a field that no reader knows
    }
    plane.add_message(3, line(3, "XLA Ops", events));
    plane.add_message(4, op(1, "fusion.1", "convolution fusion", 1000 + device, 4096));
    plane.add_message(4, op(2, "all-reduce.2", "all-reduce", 10, 8192));
    plane.add_message(5, named(1, "hlo_category"));
    plane.add_message(5, named(2, "flops"));
    ASSERT_GT(out.size(), size_t{1} << 20) << "small planes are not read side by side";
    space.add_message(1, out);
  }
  const auto load = [&](unsigned threads) {
    Result<Model> model = load_trace_bytes(file, "test", {.threads = threads});
    EXPECT_TRUE(model.ok());
    return std::move(model).value();
  };
  const Model alone = load(1);
  EXPECT_EQ(alone.device_slices.size(), 6'000U);
  EXPECT_EQ(alone.info.devices.size(), 3U);
  EXPECT_EQ(first_difference(alone, load(3)), std::nullopt);
}

TEST(XPlane, an_event_whose_fields_come_in_another_order_or_type_is_read_with_care) {
  std::string odd;
  Writer writer(odd);
  writer.add_int64(3, 2'000'000);
  writer.add_fixed64(2, 5);  // not a number of this kind: as if it were not there
  writer.add_string(200, "later");
  writer.add_int64(1, 1);
  std::string out;
  Writer plane(out);
  plane.add_string(2, "/device:TPU:0");
  plane.add_message(3, line(3, "XLA Ops", {odd}));
  plane.add_message(4, op(1, "fusion.1", "convolution fusion", 1000, 4096));
  std::string file;
  Writer space(file);
  space.add_message(1, out);
  const Model m = load_bytes(file);
  ASSERT_EQ(m.device_slices.size(), 1U);
  EXPECT_EQ(m.device_slices.duration_ns[0], 2000);
  EXPECT_EQ(m.text(m.device_slices.name[0]), "fusion.1");
}

TEST(XPlane, an_op_has_its_category_flops_and_bytes) {
  const Model m = load_bytes(small_file());
  ASSERT_EQ(m.kernel_details.size(), 1u);
  EXPECT_EQ(m.kernel_details.flops[0], 1000);
  EXPECT_EQ(m.kernel_details.bytes_accessed[0], 4096);
  EXPECT_EQ(m.text(m.kernel_details.op_category[0]), "convolution fusion");
  ASSERT_EQ(m.comm_details.size(), 1u);
  EXPECT_EQ(m.text(m.comm_details.collective[0]), "allreduce");
  // 1,000.5 ns to 3,001.2 ns after the line's start: ends are rounded as starts are.
  EXPECT_EQ(m.device_slices.duration_ns[m.kernel_details.slice[0]], 2001);
}

TEST(XPlane, hosts_have_calls_python_and_functions) {
  const Model m = load_bytes(small_file());
  std::map<std::string, HostKind> kinds;
  for (Row row = 0; row < m.host_slices.size(); ++row)
    kinds[std::string(m.text(m.host_slices.name[row]))] = m.host_slices.kind[row];
  EXPECT_EQ(kinds.at("PjitFunction(train)"), HostKind::kOp);
  EXPECT_EQ(kinds.at("hipModuleLaunchKernel"), HostKind::kRuntime);
  EXPECT_EQ(kinds.at("$train.py:12 loss"), HostKind::kPython);
  EXPECT_EQ(kinds.at("Client::Execute"), HostKind::kOp);
}

TEST(XPlane, without_a_line_of_steps_runs_of_the_largest_program_are_steps) {
  const Model m = load_bytes(small_file());
  ASSERT_EQ(m.steps.size(), 3u);
  EXPECT_EQ(m.steps.duration_ns[0], 100'000);
  EXPECT_EQ(m.steps.duration_ns[2], 50'000) << "the last one ends with its run";
}

TEST(XPlane, hosts_of_a_run_number_their_devices_on) {
  std::vector<XPlaneFile> files;
  for (const char* const name : {"a", "b"})
    files.push_back({.request = {.name = name}, .content = open_memory(small_file())});
  Result<RawTrace> raw = read_xplane(files);
  ASSERT_TRUE(raw.ok());
  const Model m = assemble(std::move(raw).value());
  EXPECT_EQ(m.info.devices.size(), 2u);
  EXPECT_EQ(m.info.devices[1].id, 1);
  EXPECT_EQ(m.info.format, "XPlane, 2 hosts");
}

TEST(XPlane, a_folder_with_one_file_a_host_is_one_trace) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "xplane_run";
  const std::filesystem::path run = folder / "plugins" / "profile" / "2026_01_02";
  std::filesystem::create_directories(run);
  for (const char* const name : {"a.xplane.pb", "b.xplane.pb"})
    std::ofstream(run / name, std::ios::binary) << small_file();
  const Result<Model> loaded = load_trace(folder.string());
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded.value().info.devices.size(), 2u);
}

// Large planes are parts of their own, whose kernels share details.
TEST(XPlane, runs_of_an_op_have_its_details_in_large_planes_and_small_ones) {
  std::vector<std::string> events;
  constexpr int64_t kRuns = 60'000;  // more than a MiB
  for (int64_t i = 0; i < kRuns; ++i) events.push_back(event(1 + i % 2, i * 5'000'000, 2'000'000, {stat(9, i)}));
  std::string out;
  for (const char* const name : {"/device:TPU:0", "/device:TPU:1"}) {
    std::string plane;
    Writer writer(plane);
    writer.add_string(2, name);
    writer.add_message(3, line(3, "XLA Ops", events));
    writer.add_message(4, op(1, "fusion.1", "convolution fusion", 1000, 4096));
    writer.add_message(4, op(2, "fusion.2", "loop fusion", 20, 8));
    writer.add_message(5, named(1, "hlo_category"));
    writer.add_message(5, named(2, "flops"));
    writer.add_message(5, named(3, "bytes_accessed"));
    Writer(out).add_message(1, plane);
    ASSERT_GT(plane.size(), size_t{1} << 20);
  }
  Writer(out).add_message(1, tpu_plane());
  const Model m = load_bytes(out);
  ASSERT_EQ(m.kernel_details.size(), static_cast<size_t>(2 * kRuns + 1));
  for (Row row = 0; row < m.kernel_details.size(); ++row) {
    const Row slice = m.kernel_details.slice[row];
    ASSERT_EQ(m.device_slices.detail[slice], row);
    ASSERT_EQ(m.kernel_details.flops[row], m.text(m.device_slices.name[slice]) == "fusion.1" ? 1000 : 20);
  }
}

TEST(XPlane, any_cut_keeps_what_came_before) {
  const std::string whole = small_file();
  const size_t all = load_bytes(whole).device_slices.size();
  for (size_t size = 1; size < whole.size(); ++size) {
    const Result<Model> loaded = load_trace_bytes(whole.substr(0, size), "cut.xplane.pb");
    if (!loaded.ok()) {
      EXPECT_EQ(loaded.error().message.find('\n'), std::string::npos) << size;
      continue;
    }
    EXPECT_LE(loaded.value().device_slices.size(), all);
    std::string one_plane;
    Writer(one_plane).add_message(1, tpu_plane());
    const bool between_planes = size == one_plane.size() || size >= whole.size() - 10;
    if (!between_planes) {
      EXPECT_GT(loaded.value().losses[Stat::kMessageMalformed], 0u) << size;
    }
  }
}

TEST(XPlane, hostile_numbers_are_counted) {
  std::string plane;
  Writer writer(plane);
  writer.add_string(2, "/device:TPU:0");
  writer.add_message(
      3,
      line(3, "XLA Ops", {event(1, INT64_MAX, INT64_MAX), event(1, -5, -7), event(99, 0, 5), event(1, INT64_MIN, 1)}));
  writer.add_message(4, op(1, "dot.1", "dot", INT64_MAX, -1));
  std::string space;
  Writer(space).add_message(1, plane);
  const Model m = load_bytes(space);
  EXPECT_EQ(m.losses[Stat::kDurationOutOfRange], 2u);
  EXPECT_EQ(m.losses[Stat::kNameMissing], 1u);
  EXPECT_GE(m.device_slices.size(), 2u);
}

TEST(XPlane, texts_are_not_taken_for_it) {
  EXPECT_FALSE(is_xplane("\n{\"traceEvents\": []}                "));
  EXPECT_FALSE(is_xplane("\n\n\n\n"));
  EXPECT_FALSE(is_xplane("{}"));
  EXPECT_FALSE(is_xplane(std::string_view("\x0A\x06\x15\0\0\0\0\0", 8))) << "a name that is a number of 32 bits";
  EXPECT_TRUE(is_xplane(small_file()));
}

// ---- real files, against a decoder of its own

struct Decoded {
  std::map<std::string, std::pair<int64_t, int64_t>> lines;  // "plane: line" -> events, picoseconds
};

struct Bytes {
  const unsigned char* at;
  const unsigned char* end;
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; at != end; shift += 7) {
      const unsigned char byte = *at++;
      value |= uint64_t{byte & 127u} << shift;
      if (byte < 128) break;
    }
    return value;
  }
};

template <typename Visit>
void each(Bytes message, const Visit& visit) {
  while (message.at < message.end) {
    const uint64_t tag = message.varint();
    Bytes piece{message.at, message.at};
    uint64_t number = 0;
    if ((tag & 7) == 0) number = message.varint();
    if ((tag & 7) == 1) message.at += 8;
    if ((tag & 7) == 5) message.at += 4;
    if ((tag & 7) == 2) {
      const uint64_t size = message.varint();
      piece = {message.at, message.at + size};
      message.at += size;
    }
    visit(tag >> 3, number, piece);
  }
}

Decoded decode(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  const std::string bytes = all.str();
  Decoded out;
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  each({data, data + bytes.size()}, [&](uint64_t field, uint64_t, Bytes plane) {
    if (field != 1) return;
    std::string plane_name;
    each(plane, [&](uint64_t f, uint64_t, Bytes text) {
      if (f == 2) plane_name.assign(text.at, text.end);
    });
    each(plane, [&](uint64_t f, uint64_t, Bytes line_bytes) {
      if (f != 3) return;
      std::string name;
      each(line_bytes, [&](uint64_t g, uint64_t, Bytes text) {
        if (g == 2) name.assign(text.at, text.end);
      });
      auto& sums = out.lines[plane_name + ": " + name];
      each(line_bytes, [&](uint64_t g, uint64_t, Bytes event_bytes) {
        if (g != 4) return;
        ++sums.first;
        each(event_bytes, [&](uint64_t h, uint64_t number, Bytes) {
          if (h == 3) sums.second += static_cast<int64_t>(number);
        });
      });
    });
  });
  return out;
}

TEST(XPlane, the_tpu_sample_gives_every_event) {
  FL_NEED_SAMPLE(path, "tpu_v6e_inference.xplane.pb");
  const Decoded decoded = decode(path);
  Result<Model> loaded = load_trace(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Model& m = loaded.value();
  int64_t device_events = 0;
  int64_t host_events = 0;
  for (const auto& [name, sums] : decoded.lines)
    (name.starts_with("/device") ? device_events : host_events) += sums.first;
  EXPECT_EQ(static_cast<int64_t>(m.device_slices.size()), device_events);
  EXPECT_EQ(static_cast<int64_t>(m.host_slices.size() + m.memory_events.size()),
            host_events + static_cast<int64_t>(m.steps.size()))
      << "allocations are no ranges";
  std::map<std::string, std::pair<int64_t, int64_t>> mine;
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    const auto lane = static_cast<size_t>(m.device_slices.lane[row]);
    auto& sums = mine["/device:TPU:" + std::to_string(m.device_slices.device[row]) + ": " +
                      std::string(m.text(m.lanes.name[lane]))];
    ++sums.first;
    sums.second += m.device_slices.duration_ns[row];
  }
  for (const auto& [name, sums] : mine) {
    EXPECT_EQ(sums.first, decoded.lines.at(name).first) << name;
    EXPECT_NEAR(static_cast<double>(sums.second), static_cast<double>(decoded.lines.at(name).second) / 1000,
                static_cast<double>(sums.first))
        << name;
  }
  EXPECT_EQ(m.info.devices.size(), 4u);
  EXPECT_EQ(m.info.devices[0].name, "TPU v6 Lite");
  EXPECT_EQ(m.losses[Stat::kDeviceNotUnderstood], 0u);
  EXPECT_GT(m.steps.size(), 0u);
}

TEST(XPlane, the_jax_sample_links_kernels_to_their_launches) {
  FL_NEED_SAMPLE(path, "jax_mi300_conv.xplane.pb");
  const Decoded decoded = decode(path);
  Result<Model> loaded = load_trace(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Model& m = loaded.value();
  int64_t device_events = 0;
  for (const auto& [name, sums] : decoded.lines) device_events += name.starts_with("/device") ? sums.first : 0;
  EXPECT_EQ(static_cast<int64_t>(m.device_slices.size()), device_events);
  EXPECT_EQ(m.info.accelerator, Accelerator::kHip);
  const auto& launches = m.device_slices.launch;
  EXPECT_GT(std::count_if(launches.begin(), launches.end(), [](Row launch) { return launch != kNoRow; }), 150);
  const StringId fusion = m.strings.find("loop_transpose_fusion");
  const auto& ops = m.kernel_details.op_name;
  EXPECT_GT(std::count(ops.begin(), ops.end(), fusion), 0);
  EXPECT_EQ(m.info.devices.size(), 8u);
}

}  // namespace
}  // namespace firelane::importer
