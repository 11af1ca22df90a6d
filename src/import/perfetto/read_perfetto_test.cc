#include "import/perfetto/read_perfetto.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "import/perfetto/packets.h"
#include "import/testing.h"

namespace firelane::importer::pftrace {
namespace {

using Writer = protozero::pbf_writer;

std::string text_entry(uint64_t id, const std::string& text) {
  std::string out;
  Writer writer(out);
  writer.add_uint64(1, id);
  writer.add_string(2, text);
  return out;
}

std::string thread_track(uint64_t uuid, int32_t pid, int32_t tid, const std::string& name) {
  std::string thread;
  Writer t(thread);
  t.add_int32(1, pid);
  t.add_int32(2, tid);
  t.add_string(5, name);
  std::string out;
  Writer writer(out);
  writer.add_uint64(1, uuid);
  writer.add_message(4, thread);
  return out;
}

std::string named_track(uint64_t uuid, uint64_t parent, const std::string& name, bool is_counter = false) {
  std::string out;
  Writer writer(out);
  writer.add_uint64(1, uuid);
  writer.add_string(2, name);
  if (parent != 0) writer.add_uint64(5, parent);
  if (is_counter) writer.add_message(8, std::string());
  return out;
}

std::string annotation(const std::string& key, int64_t value) {
  std::string out;
  Writer writer(out);
  writer.add_string(10, key);
  writer.add_int64(4, value);
  return out;
}

struct Event {
  int32_t type = 1;
  uint64_t track = 0;
  std::string name, category;
  std::vector<std::string> annotations;
  uint64_t flow = 0, ending_flow = 0;
  uint64_t name_iid = 0;
};

std::string event(const Event& e) {
  std::string out;
  Writer writer(out);
  writer.add_int32(9, e.type);
  if (e.track != 0) writer.add_uint64(11, e.track);
  if (!e.name.empty()) writer.add_string(23, e.name);
  if (e.name_iid != 0) writer.add_uint64(10, e.name_iid);
  if (!e.category.empty()) writer.add_string(22, e.category);
  for (const std::string& each : e.annotations) writer.add_message(4, each);
  if (e.flow != 0) writer.add_fixed64(47, e.flow);
  if (e.ending_flow != 0) writer.add_fixed64(48, e.ending_flow);
  return out;
}

class TraceWriter {
 public:
  TraceWriter& descriptor(const std::string& track) {
    return packet([&](Writer& w) { w.add_message(60, track); });
  }
  TraceWriter& at(uint64_t time_ns, const Event& e) {
    return packet([&](Writer& w) {
      w.add_uint64(8, time_ns);
      w.add_uint32(10, 1);
      w.add_message(11, event(e));
    });
  }
  template <typename Fill>
  TraceWriter& packet(const Fill& fill) {
    std::string body;
    Writer writer(body);
    fill(writer);
    Writer(out_).add_message(1, body);
    return *this;
  }
  const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

std::string small_trace() {
  TraceWriter t;
  t.descriptor(thread_track(1, 10, 11, "main"))
      .descriptor(named_track(2, 0, "GPU 3 (NVIDIA H200)"))
      .descriptor(named_track(3, 2, "stream 7"))
      .descriptor(named_track(4, 0, "power", true))
      .at(1000, {.track = 1, .name = "aten::mm", .category = "cpu_op", .annotations = {annotation("External id", 5)}})
      .at(1200, {.track = 1,
                 .name = "cudaLaunchKernel",
                 .category = "cuda_runtime",
                 .annotations = {annotation("correlation", 9), annotation("External id", 5)},
                 .flow = 77})
      .at(1400, {.type = 2, .track = 1})
      .at(2000, {.type = 2, .track = 1})
      .at(1500, {.track = 3,
                 .name = "gemm",
                 .category = "kernel",
                 .annotations = {annotation("correlation", 9), annotation("registers per thread", 40)},
                 .ending_flow = 77})
      .at(1900, {.type = 2, .track = 3})
      .at(1600, {.type = 3, .track = 1, .name = "mark"});
  t.packet([](Writer& w) {
    std::string sample;
    Writer s(sample);
    s.add_int32(9, 4);
    s.add_uint64(11, 4);
    s.add_double(44, 300.5);
    w.add_uint64(8, 1700);
    w.add_message(11, sample);
  });
  return t.bytes();
}

TEST(Perfetto, slices_links_counters_and_marks) {
  const Model m = load_bytes(small_trace());
  EXPECT_EQ(m.info.format, "Perfetto");
  ASSERT_EQ(m.host_slices.size(), 2u);
  EXPECT_EQ(m.host_slices.kind[0], HostKind::kOp);
  EXPECT_EQ(m.host_slices.duration_ns[0], 1000);
  ASSERT_EQ(m.device_slices.size(), 1u);
  EXPECT_EQ(m.device_slices.kind[0], DeviceKind::kKernel);
  EXPECT_EQ(m.device_slices.device[0], 3);
  EXPECT_EQ(m.device_slices.stream[0], 7);
  EXPECT_EQ(m.text(m.host_slices.name[m.device_slices.launch[0]]), "cudaLaunchKernel");
  EXPECT_EQ(m.text(m.host_slices.name[m.device_slices.op[0]]), "aten::mm");
  EXPECT_EQ(m.kernel_details.registers[0], 40);
  EXPECT_EQ(m.instants.size(), 1u);
  ASSERT_EQ(m.counter_samples.size(), 1u);
  EXPECT_EQ(m.counter_samples.value[0], 300.5);
  EXPECT_EQ(m.flows.size(), 0u) << "the arrow says what the correlation id says";
}

TEST(Perfetto, names_are_those_of_the_sequence_until_it_forgets_them) {
  TraceWriter t;
  const auto interned = [](const std::string& name, uint32_t flags) {
    return [name, flags](Writer& w) {
      std::string data;
      Writer(data).add_message(2, text_entry(1, name));
      w.add_uint64(8, 100);
      w.add_uint32(10, 5);
      w.add_uint32(13, flags);
      w.add_message(12, data);
      w.add_message(11, event({.type = 3, .track = 1, .name_iid = 1}));
    };
  };
  t.descriptor(thread_track(1, 10, 11, "main")).packet(interned("first", 1)).packet(interned("second", 1));
  t.packet([](Writer& w) {  // another sequence does not know it
    w.add_uint64(8, 300);
    w.add_uint32(10, 6);
    w.add_message(11, event({.type = 3, .track = 1, .name_iid = 1}));
  });
  const Model m = load_bytes(t.bytes());
  ASSERT_EQ(m.instants.size(), 3u);
  EXPECT_EQ(m.text(m.instants.name[0]), "first");
  EXPECT_EQ(m.text(m.instants.name[1]), "second");
  EXPECT_EQ(m.losses[Stat::kNameMissing], 1u);
}

TEST(Perfetto, incremental_clocks_count_from_their_snapshot) {
  TraceWriter t;
  t.descriptor(thread_track(1, 10, 11, "main"));
  t.packet([](Writer& w) {
    std::string own, boot, snapshot;
    Writer o(own);
    o.add_uint32(1, 64);
    o.add_uint64(2, 10);
    o.add_bool(3, true);
    o.add_uint64(4, 1000);
    Writer b(boot);
    b.add_uint32(1, 6);
    b.add_uint64(2, 500'000);
    Writer s(snapshot);
    s.add_message(1, own);
    s.add_message(1, boot);
    w.add_uint32(10, 5);
    w.add_message(6, snapshot);
  });
  for (const int32_t type : {1, 2}) {
    t.packet([&](Writer& w) {
      w.add_uint64(8, 3);
      w.add_uint32(58, 64);
      w.add_uint32(10, 5);
      w.add_message(11, event({.type = type, .track = 1, .name = "slice"}));
    });
  }
  const Model m = load_bytes(t.bytes());
  ASSERT_EQ(m.host_slices.size(), 1u);
  EXPECT_EQ(m.host_slices.duration_ns[0], 3000);
  EXPECT_EQ(m.info.start_ns, 503'000);
}

TEST(Perfetto, what_is_open_at_the_end_is_closed_and_counted) {
  TraceWriter t;
  t.descriptor(thread_track(1, 10, 11, "main"))
      .at(100, {.track = 1, .name = "open"})
      .at(900, {.type = 3, .track = 1, .name = "last"})
      .at(50, {.type = 2, .track = 99});
  const Model m = load_bytes(t.bytes());
  EXPECT_EQ(m.losses[Stat::kBeginWithoutEnd], 1u);
  EXPECT_EQ(m.losses[Stat::kEndWithoutBegin], 1u);
  EXPECT_EQ(m.host_slices.duration_ns[0], 800);
}

TEST(Perfetto, any_cut_keeps_what_came_before) {
  const std::string whole = small_trace();
  for (size_t size = 1; size < whole.size(); ++size) {
    const Result<Model> loaded = load_trace_bytes(whole.substr(0, size), "cut.pftrace");
    if (!loaded.ok()) {
      EXPECT_EQ(loaded.error().message.find('\n'), std::string::npos) << size;
    } else {
      EXPECT_LE(loaded.value().host_slices.size(), 2u);
    }
  }
}

TEST(Perfetto, texts_and_xplanes_are_not_taken_for_it) {
  EXPECT_FALSE(is_perfetto("\n{\"traceEvents\": []}                "));
  EXPECT_FALSE(is_perfetto("\n\n\n\n\n\n"));
  EXPECT_TRUE(is_perfetto(small_trace()));
}

}  // namespace
}  // namespace firelane::importer::pftrace
