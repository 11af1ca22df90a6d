// A Perfetto export read again: the same slices, times, kinds and links.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "export/gzip_sink.h"
#include "export/perfetto.h"
#include "import/load.h"

namespace firelane::exporter {
namespace {

// Every slice with what it is linked to, as text, and how often it comes.
std::map<std::string, int> slices_of(const Model& m) {
  std::map<std::string, int> out;
  const int64_t start = m.info.start_ns;
  const auto host_name = [&](Row row) {
    return row == kNoRow ? std::string("-") : std::string(m.text(m.host_slices.name[row]));
  };
  // c10d's own range (nccl:all_gather) lies in the operator that it serves, and has the same id in an export.
  const auto operator_of = [&](Row row) {
    while (row != kNoRow && m.text(m.host_slices.name[row]).starts_with("nccl:")) row = m.host_slices.parent[row];
    return row;
  };
  for (Row row = 0; row < m.host_slices.size(); ++row) {
    ++out["host " + std::string(m.text(m.host_slices.name[row])) + " " + std::string(name_of(m.host_slices.kind[row])) +
          " " + std::to_string(start + m.host_slices.start_ns[row]) + " " +
          std::to_string(m.host_slices.duration_ns[row])];
  }
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    const DeviceSlices& d = m.device_slices;
    ++out["device " + std::string(m.text(d.name[row])) + " " + std::string(name_of(d.kind[row])) + " " +
          std::to_string(start + d.start_ns[row]) + " " + std::to_string(d.duration_ns[row]) + " stream " +
          std::to_string(d.stream[row]) + " of " + std::to_string(d.device[row]) + " by " + host_name(d.launch[row]) +
          " in " + host_name(operator_of(d.op[row]))];
  }
  return out;
}

TEST(PerfettoRoundTrip, of_every_trace_of_the_tests) {
  size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FIRELANE_TEST_DATA)) {
    const std::string path = entry.path().string();
    const bool is_trace = path.ends_with(".json.gz") || path.ends_with(".lane");
    if (!is_trace || entry.file_size() > 400'000) continue;
    SCOPED_TRACE(path);
    Result<Model> before = importer::load_trace(path);
    ASSERT_TRUE(before.ok()) << before.error().message;
    StringSink sink;
    export_perfetto(before.value(), sink);
    Result<Model> after = importer::load_trace_bytes(sink.text, "again.pftrace");
    ASSERT_TRUE(after.ok()) << after.error().message;
    EXPECT_EQ(slices_of(before.value()), slices_of(after.value()));
    EXPECT_EQ(before.value().steps.number, after.value().steps.number);
    const auto shapes = [](const Model& m) {
      return std::count_if(m.op_details.input_dims.begin(), m.op_details.input_dims.end(),
                           [](StringId id) { return id != kNoString; });
    };
    EXPECT_EQ(shapes(before.value()), shapes(after.value()));
    ++seen;
  }
  EXPECT_GT(seen, 5u);
}

}  // namespace
}  // namespace firelane::exporter
