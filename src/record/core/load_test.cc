// Many threads, many sessions, many events: no loss, no growth, few bytes.
#include <dirent.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <latch>
#include <thread>

#include "record/core/testing.h"

namespace firelane::record {
namespace {

using test::count;
using test::op;
using test::records_of;
using test::start;
using test::TemporaryFolder;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

size_t resident_bytes() {
  long pages = 0;
  long resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<size_t>(resident) * 4096;
}

size_t open_files() {
  size_t n = 0;
  if (DIR* dir = ::opendir("/proc/self/fd")) {
    while (::readdir(dir) != nullptr) ++n;
    ::closedir(dir);
  }
  return n;
}

TEST(Load, every_event_of_many_threads_arrives_in_its_thread_s_order) {
  TemporaryFolder folder;
  auto session = start({.output = folder / "run.lane", .drain_interval_ms = 1});
  constexpr int kThreads = 12;
  constexpr int kOps = 3000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < kOps; ++i) op("t" + std::to_string(t) + " op " + std::to_string(i) + ".");
    });
  }
  for (std::thread& thread : threads) thread.join();
  session->stop();
  EXPECT_EQ(session->status().dropped_count, 0u);
  EXPECT_EQ(session->status().event_count, uint64_t{kThreads * kOps});
  EXPECT_EQ(session->status().thread_count, uint32_t{kThreads});
  const std::string text = records_of(session->path(), {.times = false, .notes = false, .chunks = false});
  for (int t = 0; t < kThreads; ++t) {
    size_t at = 0;
    for (int i = 0; i < kOps; ++i) {
      at = text.find("\"t" + std::to_string(t) + " op " + std::to_string(i) + ".\"", at);
      ASSERT_NE(at, std::string::npos) << "thread " << t << " op " << i;
    }
  }
}

TEST(Load, threads_that_push_while_sessions_come_and_go_lose_nothing_but_the_edges) {
  TemporaryFolder folder;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  std::latch ready(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      ready.count_down();
      int n = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        test::begin("outer");
        op("inner");
        if (ThreadBuffer* b = recording_thread()) b->memory(now_ticks(), {.address = 8, .bytes = 8});
        test::end();
        if (++n % 64 == 0) std::this_thread::yield();
      }
    });
  }
  ready.wait();
  for (int i = 0; i < 16; ++i) {
    auto session = start({.output = folder / "run.lane", .drain_interval_ms = 1});
    if (i % 4 == 1) {
      session->pause();
      session->resume();
    }
    std::this_thread::yield();
    session->stop();
    EXPECT_EQ(records_of(session->path(), {}).find("damaged"), std::string::npos);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Load, a_thousand_sessions_leave_nothing_behind) {
  TemporaryFolder folder;
  const auto cycle = [&] {
    auto session = start({.output = folder / "run.lane"});
    op("one");
    std::thread([] { op("two"); }).join();
    session->stop();
    ASSERT_EQ(session->status().event_count, 2u);
  };
  for (int i = 0; i < 50; ++i) cycle();
  const size_t before = resident_bytes();
  const size_t files = open_files();
  for (int i = 0; i < 1000; ++i) cycle();
  EXPECT_EQ(open_files(), files);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  if (!kSanitized) EXPECT_LT(resident_bytes(), before + (4u << 20));
}

TEST(Load, threads_that_come_and_go_do_not_use_up_the_buffers) {
  TemporaryFolder folder;
  auto session =
      start({.output = folder / "run.lane", .max_in_flight_bytes = 64 * kBlockBytes, .drain_interval_ms = 1});
  for (int i = 0; i < 400; ++i) {
    std::thread([] { op("short life"); }).join();
    while (session->status().in_flight_bytes > 48 * kBlockBytes) std::this_thread::yield();
  }
  session->stop();
  EXPECT_EQ(session->status().dropped_count, 0u);
  EXPECT_EQ(session->status().event_count, 400u);
}

// A stream like a transformer's: nested ops, 100 names, jitter in the times.
TEST(Load, a_plain_op_takes_at_most_eight_bytes_on_disk_and_memory_stays_bounded) {
  TemporaryFolder folder;
  const size_t before = resident_bytes();
  auto session = start({.output = folder / "run.lane"});
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("aten::operator_" + std::to_string(i));
  constexpr size_t kOps = kSanitized ? 60'000 : 1'500'000;
  uint64_t ticks = now_ticks();
  uint64_t random = 1;
  const auto jitter = [&] {
    return ticks += 150 + ((random = random * 6364136223846793005u + 1442695040888963407u) >> 52);
  };
  int64_t sequence = 0;
  size_t peak = 0;
  for (size_t i = 0; i < kOps; i += 3) {
    while (session->status().in_flight_bytes > (32u << 20)) std::this_thread::yield();
    ThreadBuffer* b = recording_thread_for_begin();
    ASSERT_NE(b, nullptr);
    b->begin(jitter(), b->stable_name(names[i % 97].c_str()), format::Scope::kFunction, sequence++);
    b->begin(jitter(), b->stable_name(names[i % 89].c_str()), format::Scope::kFunction, sequence);
    b->begin(jitter(), b->stable_name(names[i % 83].c_str()), format::Scope::kFunction, sequence);
    for (int n = 0; n < 3; ++n) b->end(jitter(), format::ScopeGroup::kOp);
    if (i % 30000 == 0) peak = std::max(peak, resident_bytes());
  }
  session->stop();
  EXPECT_EQ(session->status().dropped_count, 0u);
  EXPECT_EQ(session->status().event_count, uint64_t{kOps});
  const double bytes = static_cast<double>(session->status().file_bytes) / double{kOps};
  RecordProperty("bytes_per_op", std::to_string(bytes));
  std::printf("bytes per op on disk: %.2f\n", bytes);
  EXPECT_LE(bytes, 8.0);
  if (!kSanitized) EXPECT_LT(peak, before + (64u << 20));
}

TEST(Load, names_without_end_stay_within_the_memory_bound) {
  TemporaryFolder folder;
  const size_t before = resident_bytes();
  auto session = start({.output = folder / "run.lane"});
  constexpr int kOps = kSanitized ? 20'000 : 400'000;
  for (int i = 0; i < kOps; ++i) {
    op("a name that is used only once, " + std::to_string(i));
    while (i % 64 == 0 && session->status().in_flight_bytes > (16u << 20)) std::this_thread::yield();
  }
  if (!kSanitized) EXPECT_LT(resident_bytes(), before + (64u << 20));
  session->stop();
  const std::string text = records_of(session->path(), {.times = false, .notes = false, .chunks = false});
  EXPECT_EQ(count(text, "begin \"a name"), size_t{kOps});
  EXPECT_NE(text.find("once, " + std::to_string(kOps - 1) + "\""), std::string::npos);
  EXPECT_EQ(text.find("?"), std::string::npos) << "a text without its definition";
}

}  // namespace
}  // namespace firelane::record
