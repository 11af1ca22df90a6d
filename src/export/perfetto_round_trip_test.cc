// A Perfetto export read again: the same slices, times, kinds and links.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/test_depth.h"
#include "export/gzip_sink.h"
#include "export/perfetto.h"
#include "export/testing.h"
#include "import/load.h"

namespace firelane::exporter {
namespace {

TEST(PerfettoRoundTrip, of_traces_of_the_tests) {
  size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FIRELANE_TEST_DATA)) {
    const std::string path = entry.path().string();
    const bool is_trace = path.ends_with(".json.gz") || path.ends_with(".lane");
    if (!is_trace || entry.file_size() > (is_deep_test() ? 400'000 : 100'000)) continue;
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
