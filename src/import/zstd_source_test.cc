#include "import/zstd_source.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <random>

#include "import/load.h"
#include "import/testing.h"

namespace firelane::importer {
namespace {

std::string zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 1));
  return out;
}

std::unique_ptr<ByteSource> unpack(std::string bytes) { return open_zstd(open_memory(std::move(bytes)), UINT64_MAX); }

TEST(ZstdSource, two_frames_are_one_stream_wherever_they_meet) {
  const std::string text = random_text(300);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const auto source = unpack(zstd(text.substr(0, cut)) + zstd(text.substr(cut)));
    ASSERT_EQ(read_all(*source, 1 + cut % 50), text) << cut;
    ASSERT_EQ(source->losses(), LossCounts{}) << cut;
  }
}

TEST(ZstdSource, a_cut_anywhere_keeps_what_came_before_and_is_said) {
  const std::string text = random_text(5000);
  const std::string packed = zstd(text);
  for (size_t size = 4; size < packed.size(); ++size) {
    const auto source = unpack(packed.substr(0, size));
    const std::string got = read_all(*source);
    ASSERT_EQ(got, text.substr(0, got.size())) << size;
    ASSERT_EQ(source->losses()[Stat::kTruncated], 1u) << size;
  }
}

TEST(ZstdSource, bytes_behind_the_end_are_ignored_and_said) {
  const auto source = unpack(zstd("hello") + "junk");
  EXPECT_EQ(read_all(*source), "hello");
  EXPECT_EQ(source->losses()[Stat::kCompressionTrailingBytes], 1u);
}

TEST(ZstdSource, reads_at_any_place_in_any_order) {
  const std::string text = random_text(3 << 20);
  const auto source = unpack(zstd(text.substr(0, 1 << 20)) + zstd(text.substr(1 << 20)));
  ASSERT_EQ(read_all(*source, 1 << 16).size(), text.size());
  std::mt19937 random(1);
  for (int i = 0; i < 30; ++i) {
    const size_t at = random() % (text.size() + 100);
    std::string got(777, '\0');
    const Result<size_t> size = source->read_at(at, got.data(), got.size());
    ASSERT_TRUE(size.ok());
    got.resize(size.value());
    ASSERT_EQ(got, at < text.size() ? text.substr(at, 777) : "") << at;
  }
}

TEST(ZstdSource, what_grows_beyond_the_limit_is_not_opened) {
  const auto source = open_zstd(open_memory(zstd(std::string(5000, 'x'))), 1000);
  read_all(*source);
  EXPECT_EQ(source->fatal(), "decompresses to more than 1000 bytes; not opened");
}

TEST(ZstdSource, a_trace_compressed_with_zstd_opens_with_its_args) {
  const std::string json = R"([{"ph": "X", "name": "work", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": {"a": 7}}])";
  const Result<Model> loaded = load_trace_bytes(zstd(json), "run.json.zst");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Model& m = loaded.value();
  ASSERT_EQ(m.host_slices.size(), 1u);
  EXPECT_EQ(m.info.compression, "zstd");
  const Result<std::string> event = m.args->event_json(m.host_slices.source[0]);
  ASSERT_TRUE(event.ok());
  EXPECT_NE(event.value().find("\"a\": 7"), std::string::npos);
}

}  // namespace
}  // namespace firelane::importer
