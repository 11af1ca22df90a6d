// The small text formats: CSV, JSON tables, folded stacks, speedscope; and gzip around them.
#include <gtest/gtest.h>
#include <isa-l/igzip_lib.h>

#include "export/gzip_sink.h"
#include "export/speedscope.h"
#include "export/stacks.h"
#include "export/table_files.h"
#include "model/testing.h"
#include "model/trace_builder.h"

namespace firelane::exporter {
namespace {

Model nested_model() {
  return TraceBuilder()
      .python("train.py(3): main", {.start_us = 0, .end_us = 100})
      .op("aten::linear", {.start_us = 10, .end_us = 60, .external_id = 1})
      .op("aten::mm", {.start_us = 20, .end_us = 50, .external_id = 2})
      .call("cudaLaunchKernel", {.start_us = 30, .end_us = 35, .correlation = 7, .external_id = 2})
      .kernel("gemm", {.start_us = 40, .end_us = 90, .correlation = 7, .external_id = 2})
      .kernel("orphan", {.start_us = 95, .end_us = 98.9})
      .build();
}

std::string stacks(const Model& model, StackMetric metric) {
  StringSink sink;
  export_stacks(model, metric, sink);
  return sink.text;
}

// A table of model/testing.h, which nothing here knows.
TEST(Csv, a_new_column_of_a_list_is_written) {
  StringSink sink;
  export_csv(with_words(), catalog_table(one_thing_info()), sink);
  EXPECT_EQ(sink.text,
            "id,start_ns,duration_ns,end_ns,name,parent,color,mood,comm,weight_bytes\n"
            "0,5,7,12,thing,,red,bad,3,100\n");
}

TEST(Stacks, self_time_is_what_no_child_covers) {
  EXPECT_EQ(stacks(nested_model(), StackMetric::kSelfHost),
            "train.py(3):_main 50\n"
            "train.py(3):_main;aten::linear 20\n"
            "train.py(3):_main;aten::linear;aten::mm 25\n"
            "train.py(3):_main;aten::linear;aten::mm;cudaLaunchKernel 5\n");
}

TEST(Stacks, device_work_lies_below_the_stack_of_its_op) {
  EXPECT_EQ(stacks(nested_model(), StackMetric::kSelfDevice),
            "train.py(3):_main;aten::linear;aten::mm;gemm 50\n"
            "(no_op);orphan 3\n");
}

TEST(Stacks, equal_stacks_are_one_line_and_short_ones_are_left_out) {
  EXPECT_EQ(stacks(TraceBuilder()
                       .op("a;b\t\n", {.start_us = 0, .end_us = 0.6})
                       .op("a;b\t\n", {.start_us = 1, .end_us = 1.6, .thread = 2})
                       .op("tiny", {.start_us = 2, .end_us = 2.999})
                       .build(),
                   StackMetric::kSelfHost),
            "a_b__ 1\n");
}

TEST(Stacks, overlapping_children_are_not_taken_off_twice) {
  EXPECT_EQ(stacks(TraceBuilder()
                       .op("p", {.start_us = 0, .end_us = 100})
                       .op("x", {.start_us = 10, .end_us = 40})
                       .op("y", {.start_us = 30, .end_us = 60})
                       .build(),
                   StackMetric::kSelfHost),
            "p 50\np;x 30\np;y 30\n");
}

TEST(Speedscope, each_lane_is_a_profile_and_overlaps_get_their_own) {
  StringSink sink;
  export_speedscope(TraceBuilder()
                        .op("a", {.start_us = 0, .end_us = 4})
                        .op("b", {.start_us = 1, .end_us = 2})
                        .op("\"c\"", {.start_us = 3, .end_us = 6})
                        .kernel("a", {.start_us = 2, .end_us = 3})
                        .build(),
                    sink);
  EXPECT_EQ(sink.text,
            R"json({"$schema": "https://www.speedscope.app/file-format-schema.json", "exporter": "firelane",
"shared": {"frames": [
{"name": "a"},
{"name": "b"},
{"name": "\"c\""}]},
"profiles": [
{"type": "evented", "name": "process 100: thread 1", "unit": "nanoseconds", "startValue": 0, "endValue": 4000, "events": [
{"type": "O", "frame": 0, "at": 0},
{"type": "O", "frame": 1, "at": 1000},
{"type": "C", "frame": 1, "at": 2000},
{"type": "C", "frame": 0, "at": 4000}]},
{"type": "evented", "name": "process 100: thread 1 (overlap 1)", "unit": "nanoseconds", "startValue": 3000, "endValue": 6000, "events": [
{"type": "O", "frame": 2, "at": 3000},
{"type": "C", "frame": 2, "at": 6000}]},
{"type": "evented", "name": "GPU 0: stream 7", "unit": "nanoseconds", "startValue": 2000, "endValue": 3000, "events": [
{"type": "O", "frame": 0, "at": 2000},
{"type": "C", "frame": 0, "at": 3000}]}]
}
)json");
}

TEST(Csv, one_table_with_quoted_names) {
  StringSink sink;
  export_csv(TraceBuilder().op("a, \"b\"\n\xFF", {.start_us = 0, .end_us = 1}).build(),
             *find_catalog_table("host_slices"), sink);
  EXPECT_EQ(sink.text,
            "id,lane,start_ns,duration_ns,end_ns,name,category,kind,role,parent,depth,detail,call_line\n"
            "0,0,0,1000,1000,\"a, \"\"b\"\"\n\xEF\xBF\xBD\",cpu_op,op,,,0,0,\n");
}

TEST(Json, every_table_is_a_list_of_objects) {
  StringSink sink;
  export_json(TraceBuilder().op("a\"</script>", {.start_us = 0, .end_us = 1, .external_id = 4}).build(), sink);
  EXPECT_NE(sink.text.find("{\n\"trace\": {\"format\": \"built by hand\", \"start_ns\": 0, \"base_time_ns\": 0, "
                           "\"duration_ns\": 1000},\n\"lanes\": [\n{\"id\": 0, \"kind\": \"thread\", \"pid\": 100, "
                           "\"tid\": 1, \"host_slice_count\": 1, \"device_slice_count\": 0}],\n\"host_slices\": [\n"
                           "{\"id\": 0, \"lane\": 0, \"start_ns\": 0, \"duration_ns\": 1000, \"end_ns\": 1000, "
                           "\"name\": \"a\\\"</script>\", \"category\": \"cpu_op\", \"kind\": \"op\", \"depth\": 0, "
                           "\"detail\": 0}],\n\"op_details\": [\n{\"id\": 0, \"slice\": 0, \"external_id\": 4}],\n"
                           "\"data_dependencies\": [],\n\"call_details\": [],\n"),
            std::string::npos)
      << sink.text;
}

std::string gunzip(const std::string& bytes) {
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_GZIP;
  state.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
  state.avail_in = static_cast<uint32_t>(bytes.size());
  std::string out(8 << 20, '\0');
  state.next_out = reinterpret_cast<uint8_t*>(out.data());
  state.avail_out = static_cast<uint32_t>(out.size());
  EXPECT_EQ(isal_inflate(&state), ISAL_DECOMP_OK);
  EXPECT_EQ(state.block_state, ISAL_BLOCK_FINISH);  // the checksum was right, too
  out.resize(out.size() - state.avail_out);
  return out;
}

TEST(Gzip, what_goes_in_comes_out_again) {
  for (const size_t pieces : {0u, 1u, 3u, 40'000u}) {
    StringSink sink;
    GzipSink gzip(sink);
    std::string whole;
    for (size_t i = 0; i < pieces; ++i) {
      const std::string piece = "{\"name\": \"aten::mm\", \"ts\": " + std::to_string(i * 7919) + "}\n";
      gzip.write(piece);
      whole += piece;
    }
    gzip.finish();
    EXPECT_EQ(gunzip(sink.text), whole);
    if (pieces > 100) {
      EXPECT_LT(sink.text.size(), whole.size() / 3);
    }
  }
}

}  // namespace
}  // namespace firelane::exporter
