#include "import/gzip_source.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "import/load.h"
#include "import/testing.h"

namespace firelane::importer {
namespace {

std::unique_ptr<ByteSource> unzip(std::string bytes) { return open_gzip(open_memory(std::move(bytes)), UINT64_MAX); }

TEST(GzipSource, two_members_are_one_stream_wherever_they_meet) {
  const std::string text = random_text(300);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const auto source = unzip(gzip(text.substr(0, cut)) + gzip(text.substr(cut)));
    ASSERT_EQ(read_all(*source, 1 + cut % 50), text) << cut;
    ASSERT_EQ(source->losses(), LossCounts{}) << cut;
  }
}

TEST(GzipSource, a_cut_anywhere_keeps_what_came_before_and_is_said) {
  const std::string text = random_text(5000);
  const std::string packed = gzip(text);
  for (size_t size = 0; size < packed.size(); ++size) {
    const auto source = unzip(packed.substr(0, size));
    const std::string got = read_all(*source);
    ASSERT_EQ(got, text.substr(0, got.size())) << size;
    ASSERT_EQ(source->losses()[Stat::kTruncated], 1u) << size;
  }
}

TEST(GzipSource, a_flipped_byte_is_noticed_or_harmless) {
  const std::string text = random_text(5000);
  const std::string packed = gzip(text);
  for (size_t at = 10; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    const auto source = unzip(damaged);
    const std::string got = read_all(*source);
    const bool said = source->losses()[Stat::kCompressionDamaged] + source->losses()[Stat::kTruncated] > 0;
    ASSERT_TRUE(said || got == text) << at;
  }
}

TEST(GzipSource, a_wrong_checksum_is_damage_not_a_tear) {
  std::string packed = gzip(random_text(5000));
  packed[packed.size() - 6] = static_cast<char>(packed[packed.size() - 6] ^ 1);  // in the CRC
  const auto source = unzip(packed);
  read_all(*source);
  EXPECT_EQ(source->losses()[Stat::kCompressionDamaged], 1u);
  EXPECT_EQ(source->losses()[Stat::kTruncated], 0u);
}

TEST(GzipSource, bytes_behind_the_end_are_ignored_and_said) {
  const auto source = unzip(gzip("hello") + "junk");
  EXPECT_EQ(read_all(*source), "hello");
  EXPECT_EQ(source->losses()[Stat::kCompressionTrailingBytes], 1u);
}

TEST(GzipSource, reads_at_any_place_of_a_long_stream_in_any_order) {
  const std::string piece = random_text(1'000'003);
  std::string text;  // three checkpoints
  for (int i = 0; i < 55; ++i) text += piece.substr(static_cast<size_t>(i) * 1000);
  const auto source = unzip(gzip(text.substr(0, 20 << 20)) + gzip(text.substr(20 << 20)));
  std::string buffer(1 << 20, '\0');
  while (source->read(buffer.data(), buffer.size()) > 0) {
  }
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

// ISA-L goes on after damage when it is asked to, with whatever its state then holds, and copied bytes from beyond
// its input.
TEST(GzipSource, asking_again_behind_damage_gives_nothing) {
  const std::string packed = gzip(random_text(3000));
  for (size_t at = 10; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    const auto source = unzip(damaged);
    std::string got(4000, '\0');
    const Result<size_t> first = source->read_at(0, got.data(), got.size());
    ASSERT_TRUE(first.ok());
    for (int again = 0; again < 20; ++again) {
      const Result<size_t> behind = source->read_at(first.value(), got.data(), got.size());
      ASSERT_TRUE(behind.ok());
      ASSERT_EQ(behind.value(), 0u) << at;
    }
  }
}

TEST(GzipSource, a_bomb_is_refused) {
  const Result<Model> limited = load_trace_bytes(gzip(std::string(64 << 20, '[')), "bomb.json.gz",
                                                 {.threads = 1, .progress = {}, .max_content_bytes = 1 << 20});
  ASSERT_FALSE(limited.ok());
  EXPECT_NE(limited.error().message.find("decompresses to more than"), std::string::npos);
}

TEST(GzipSource, a_gzip_of_something_else_is_refused) {
  const Result<Model> loaded = load_trace_bytes(gzip("#!/bin/sh\necho"), "script.gz");
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message.find("not a trace"), std::string::npos);
}

TEST(Load, gzip_and_plain_give_the_same_model) {
  const std::string path = FIRELANE_TEST_DATA "/gpt_plain.json.gz";
  std::ifstream file(path, std::ios::binary);
  const std::string packed((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto source = unzip(packed);
  const Result<Model> plain = load_trace_bytes(read_all(*source, 1 << 20), "plain", {.threads = 2});
  const Result<Model> zipped = load_trace(path, {.threads = 3});
  ASSERT_TRUE(plain.ok() && zipped.ok());
  EXPECT_EQ(describe(plain.value()), describe(zipped.value()));
}

TEST(Load, directories_and_missing_files_are_refused_in_one_line) {
  EXPECT_EQ(load_trace("/nonexistent.json").error().message, "/nonexistent.json: No such file or directory");
  EXPECT_EQ(load_trace("/").error().message, "/: a directory; name one trace file in it");
}

}  // namespace
}  // namespace firelane::importer
