// The Perfetto export, decoded by protoc with a declaration of its own (tests/perfetto_subset.proto).
#include "export/perfetto.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "model/trace_builder.h"

namespace firelane::exporter {
namespace {

// The trace as protoc prints it.
std::string decoded(const Model& model) {
  StringSink sink;
  export_perfetto(model, sink);
  const std::string path = (std::filesystem::temp_directory_path() / ("pftrace" + std::to_string(::getpid()))).string();
  std::ofstream(path, std::ios::binary) << sink.text;
  const std::string folder = FIRELANE_TEST_DATA "/..";
  const std::string command =
      FIRELANE_TEST_PROTOC " --decode=Trace -I " + folder + " " + folder + "/perfetto_subset.proto < " + path + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) text.append(buffer, n);
  EXPECT_EQ(::pclose(pipe), 0) << text;
  std::filesystem::remove(path);
  return text;
}

// Packets in short, one a line: descriptors with their names, events with interned names resolved by hand.
std::string without(std::string text, const std::string& part) {
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos;) text.erase(at, part.size());
  return text;
}
std::string packets(const Model& model) {
  std::string text = decoded(model);
  for (const char* part : {"  trusted_packet_sequence_id: 1\n", "  sequence_flags: 2\n", "packet {\n"}) {
    text = without(text, part);
  }
  for (size_t at = 0; (at = text.find("\n}\n", at)) != std::string::npos;) text.replace(at, 3, "\n--\n");
  return text;
}

class Perfetto : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string_view(FIRELANE_TEST_PROTOC).empty()) GTEST_SKIP() << "needs protoc (protobuf-compiler) to decode";
  }
};

TEST_F(Perfetto, an_op_its_launch_and_its_kernel) {
  EXPECT_EQ(packets(TraceBuilder()
                        .op("aten::mm", {.start_us = 0, .end_us = 20, .external_id = 1, .dims = "[[2, 3]]"})
                        .call("cudaLaunchKernel", {.start_us = 5, .end_us = 9, .correlation = 7, .external_id = 1})
                        .kernel("gemm", {.start_us = 12, .end_us = 30, .correlation = 7, .external_id = 1, .grid = 4})
                        .build()),
            R"(  sequence_flags: 1
  track_descriptor {
    uuid: 1
    name: "process 100"
    process {
      pid: 100
    }
    child_ordering: EXPLICIT
  }
--
  track_descriptor {
    uuid: 2
    thread {
      pid: 100
      tid: 1
      thread_name: "thread 1"
    }
    parent_uuid: 1
  }
--
  track_descriptor {
    uuid: 3
    name: "GPU 0"
    child_ordering: EXPLICIT
  }
--
  track_descriptor {
    uuid: 4
    name: "stream 7"
    parent_uuid: 3
    sibling_order_rank: 1
  }
--
  timestamp: 0
  track_event {
    category_iids: 3
    debug_annotations {
      name_iid: 1
      int_value: 1
    }
    debug_annotations {
      name_iid: 2
      string_value_iid: 4
    }
    type: TYPE_SLICE_BEGIN
    name_iid: 2
    track_uuid: 2
    flow_ids: 2
  }
  interned_data {
    event_categories {
      iid: 3
      name: "cpu_op"
    }
    event_names {
      iid: 2
      name: "aten::mm"
    }
    debug_annotation_names {
      iid: 1
      name: "External id"
    }
    debug_annotation_names {
      iid: 2
      name: "Input Dims"
    }
    debug_annotation_string_values {
      iid: 4
      str: "[[2, 3]]"
    }
  }
--
  timestamp: 5000
  track_event {
    category_iids: 6
    debug_annotations {
      name_iid: 1
      int_value: 1
    }
    debug_annotations {
      name_iid: 3
      int_value: 7
    }
    type: TYPE_SLICE_BEGIN
    name_iid: 5
    track_uuid: 2
    flow_ids: 1
    terminating_flow_ids: 2
  }
  interned_data {
    event_categories {
      iid: 6
      name: "cuda_runtime"
    }
    event_names {
      iid: 5
      name: "cudaLaunchKernel"
    }
    debug_annotation_names {
      iid: 3
      name: "correlation"
    }
  }
--
  timestamp: 9000
  track_event {
    type: TYPE_SLICE_END
    track_uuid: 2
  }
--
  timestamp: 20000
  track_event {
    type: TYPE_SLICE_END
    track_uuid: 2
  }
--
  timestamp: 12000
  track_event {
    category_iids: 8
    debug_annotations {
      name_iid: 1
      int_value: 1
    }
    debug_annotations {
      name_iid: 4
      int_value: 0
    }
    debug_annotations {
      name_iid: 5
      int_value: 7
    }
    debug_annotations {
      name_iid: 3
      int_value: 7
    }
    debug_annotations {
      name_iid: 6
      string_value: "[4, 1, 1]"
    }
    type: TYPE_SLICE_BEGIN
    name_iid: 7
    track_uuid: 4
    terminating_flow_ids: 1
  }
  interned_data {
    event_categories {
      iid: 8
      name: "kernel"
    }
    event_names {
      iid: 7
      name: "gemm"
    }
    debug_annotation_names {
      iid: 4
      name: "device"
    }
    debug_annotation_names {
      iid: 5
      name: "stream"
    }
    debug_annotation_names {
      iid: 6
      name: "grid"
    }
  }
--
  timestamp: 30000
  track_event {
    type: TYPE_SLICE_END
    track_uuid: 4
  }
--
)");
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

TEST_F(Perfetto, overlapping_kernels_go_to_a_second_track_of_the_same_name) {
  const std::string text = packets(TraceBuilder()
                                       .kernel("a", {.start_us = 0, .end_us = 10})
                                       .kernel("b", {.start_us = 5, .end_us = 15})
                                       .kernel("c", {.start_us = 10, .end_us = 12})
                                       .build());
  EXPECT_EQ(count(text, "name: \"stream 7\"\n    parent_uuid: 1"), 2u);
  EXPECT_EQ(count(text, "TYPE_SLICE_BEGIN"), 3u);
  EXPECT_EQ(count(text, "TYPE_SLICE_END"), 3u);
  EXPECT_NE(text.find("timestamp: 5000\n  track_event {\n    category_iids: 3\n    debug_annotations {\n"),
            std::string::npos);
  EXPECT_EQ(count(text, "type: TYPE_SLICE_BEGIN\n    name_iid: 4\n    track_uuid: 3"), 1u) << text;  // b
}

TEST_F(Perfetto, counters_memory_totals_instants_and_the_wall_clock) {
  Model model = TraceBuilder()
                    .op("a", {.start_us = 10, .end_us = 20})
                    .memory({.at_us = 12, .bytes = 512, .device_type = 1, .device = 0, .total_allocated = 700})
                    .counter("power", 13, 350.5)
                    .instant("mark", 1)
                    .build();
  model.info.base_time_ns = 1'000'000'000;
  const std::string text = packets(model);
  EXPECT_NE(text.find("clocks {\n      clock_id: 6\n      timestamp: 1000\n    }\n    clocks {\n      clock_id: 1\n"
                      "      timestamp: 1000001000\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("timestamp: 1000\n  track_event {\n    type: TYPE_INSTANT\n"), std::string::npos) << text;
  EXPECT_NE(text.find("name: \"power\"\n    parent_uuid: 1\n    counter {\n    }\n"), std::string::npos) << text;
  EXPECT_NE(text.find("double_counter_value: 350.5"), std::string::npos);
  EXPECT_NE(
      text.find("name: \"memory allocated, GPU 0\"\n    parent_uuid: 1\n    counter {\n      unit: UNIT_SIZE_BYTES"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("counter_value: 700"), std::string::npos);
}

TEST_F(Perfetto, hardware_counters_lie_below_their_gpu) {
  const std::string text = packets(TraceBuilder()
                                       .gpu_counter(0, "dram__throughput.avg", 1, 61.5)
                                       .gpu_counter(1, "dram__throughput.avg", 1, 62.5)
                                       .build());
  EXPECT_EQ(count(text, "name: \"GPU 1 Counters\""), 1u) << text;
  EXPECT_EQ(count(text, "name: \"dram__throughput.avg\"\n    parent_uuid: 1\n"), 1u) << text;
  EXPECT_EQ(count(text, "name: \"dram__throughput.avg\"\n    parent_uuid: 3\n"), 1u) << text;
}

TEST_F(Perfetto, hostile_names_stay_valid_text) {
  const std::string text = packets(TraceBuilder().op("\"\n\xFF</script>", {.start_us = 0, .end_us = 1}).build());
  EXPECT_NE(text.find("name: \"\\\"\\n\\357\\277\\275</script>\""), std::string::npos) << text;
}

}  // namespace
}  // namespace firelane::exporter
