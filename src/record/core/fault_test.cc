// The recorder when things go wrong: slow disks, full disks, kills, forks, exits.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "record/core/abandoned.h"
#include "record/core/recorder.h"
#include "record/core/testing.h"

namespace firelane::record {
namespace {

namespace fs = std::filesystem;
using test::begin;
using test::count;
using test::end;
using test::op;
using test::records_of;
using test::start;
using test::TemporaryFolder;

constexpr format::DumpOptions kRecordsOnly = {.times = false, .notes = false, .chunks = false};

// A disk that the test controls.
struct Disk {
  std::mutex mutex;
  std::condition_variable changed;
  bool blocked = false;
  bool writer_waits = false;
  size_t room = SIZE_MAX;
  size_t reserved = 0;  // by the writer; other programs take all the rest as soon as they can
  std::string content;

  void block(bool on) {
    const std::lock_guard lock(mutex);
    blocked = on;
    changed.notify_all();
  }
  void wait_for_writer() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return writer_waits; });
  }
};

class DiskSink final : public format::ByteSink {
 public:
  explicit DiskSink(Disk& disk) : disk_(disk) {}
  std::string reserve(size_t bytes) override {
    const std::lock_guard lock(disk_.mutex);
    const size_t end = disk_.content.size() + bytes;
    if (end > std::max(disk_.room, disk_.reserved)) return "No space left on device";
    disk_.reserved = std::max(disk_.reserved, end);
    return {};
  }
  std::string write(std::string_view bytes) override {
    std::unique_lock lock(disk_.mutex);
    disk_.writer_waits = disk_.blocked;
    disk_.changed.notify_all();
    disk_.changed.wait(lock, [&] { return !disk_.blocked; });
    disk_.writer_waits = false;
    if (disk_.content.size() + bytes.size() > disk_.reserved) return "No space left on device";
    disk_.content += bytes;
    return {};
  }
  std::string name() const override { return "test disk"; }

 private:
  Disk& disk_;
};

RecordOptions on(Disk& disk) {
  return {.drain_interval_ms = 5, .make_sink = [&disk] { return std::make_unique<DiskSink>(disk); }};
}

std::string text_of(const Disk& disk, const format::DumpOptions& options = kRecordsOnly) {
  auto text = format::dump_lane(disk.content, "test disk", options);
  return text.ok() ? text.value() : text.error().message;
}

// A hundred ops that certainly reach the disk in a chunk of their own.
void write_hundred(const Session& session) {
  for (int i = 0; i < 100; ++i) op("early");
  while (session.status().event_count < 100 || session.status().file_bytes < 500) std::this_thread::yield();
}

// Until the recording stops itself: on a busy machine the drain may take its time to find the disk full.
void flood(const Session& session) {
  for (int i = 0; is_recording(); ++i) {
    op("op " + std::to_string(i));
    if (i % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(session.status().state, SessionState::kFailed);
}

// Stack samples come as much metadata at once, right before the steps and the stop.
TEST(SlowDisk, steps_and_losses_were_lost_behind_too_much_metadata) {
  Disk disk;
  auto session = start(on(disk));
  disk.block(true);
  op("first");
  disk.wait_for_writer();
  const std::string piece(1 << 20, '1');
  for (int i = 0; i < 50; ++i) session->add_metadata("stack_samples", piece);
  session->add_steps({{.number = 4, .start_ticks = session->start_ticks(), .duration_ticks = 100}});
  session->add_loss("a hook was not there", 3);
  disk.block(false);
  session->stop();
  const std::string text = text_of(disk, {.times = false, .chunks = false});
  EXPECT_EQ(count(text, "note metadata stack_samples"), 47u);
  for (const char* line :
       {"note step 4", "note loss 3 a hook", "note loss 0 metadata too large: stack_samples", "note clocks 2"})
    EXPECT_GE(count(text, line), 1u) << line;
}

TEST(SlowDisk, while_metadata_was_written_as_much_again_could_wait) {
  Disk disk;
  RecordOptions options = on(disk);
  options.drain_interval_ms = 600'000;  // only when it is woken
  auto session = start(options);
  const std::string half(25 << 20, '1');
  disk.block(true);
  session->add_metadata("first", half);
  Recorder::get().wake();
  disk.wait_for_writer();
  session->add_metadata("second", half);
  session->add_metadata("small", "1");
  disk.block(false);
  session->stop();
  const std::string text = text_of(disk, {.times = false, .chunks = false});
  EXPECT_EQ(count(text, "note metadata first"), 1u);
  EXPECT_EQ(count(text, "note metadata second"), 0u);
  EXPECT_EQ(count(text, "note metadata small"), 1u);
  EXPECT_EQ(count(text, "note loss 0 metadata too large: second"), 1u);
}

TEST(SlowDisk, events_are_dropped_and_counted_and_nesting_survives) {
  Disk disk;
  RecordOptions options = on(disk);
  options.max_in_flight_bytes = 8 * kBlockBytes;
  auto session = start(options);
  op("first");
  disk.block(true);
  disk.wait_for_writer();
  begin("outer");
  constexpr int kOps = 20000;  // 480 KB into 6 free blocks of 32 KiB
  for (int i = 0; i < kOps; ++i) op("inner");
  disk.block(false);
  end();  // of "outer"; or, when no block is free yet, noted as lost with the next record
  while (session->status().in_flight_bytes > 4 * kBlockBytes) std::this_thread::yield();
  op("last");
  session->stop();

  const SessionStatus status = session->status();
  const std::string text = text_of(disk);
  const size_t inner = count(text, "begin \"inner\"");
  EXPECT_GT(inner, 5000u);
  EXPECT_LT(inner, size_t{kOps});
  EXPECT_EQ(count(text, "begin \"outer\""), 1u);
  EXPECT_EQ(count(text, "begin \"last\""), 1u);
  EXPECT_EQ(count(text, "lost "), 1u) << "one gap";
  // All events are there or counted: each dropped op counts once, a lost end too.
  const size_t lost_ends = text.find(" ends 1 ") != std::string::npos ? 1 : 0;
  EXPECT_EQ(status.dropped_count, kOps - inner + lost_ends);
  EXPECT_EQ(count(text, "begin "), count(text, "end op") + lost_ends);
  ASSERT_EQ(status.losses.size(), 1u);
  EXPECT_EQ(status.losses[0].reason, "events dropped: the buffers were full");
  EXPECT_NE(text_of(disk, {}).find("note loss " + std::to_string(status.dropped_count)), std::string::npos);
}

TEST(SlowDisk, ends_lost_with_the_room_are_told_to_the_reader) {
  Disk disk;
  RecordOptions options = on(disk);
  options.max_in_flight_bytes = 4 * kBlockBytes;
  auto session = start(options);
  op("first");
  disk.block(true);
  disk.wait_for_writer();
  for (int i = 0; i < 40; ++i) begin("deep");
  while (session->status().in_flight_bytes < 4 * kBlockBytes) op("fill");
  for (int i = 0; i < 5000; ++i) op("fill");  // now certainly full
  for (int i = 0; i < 40; ++i) end();
  disk.block(false);
  while (session->status().in_flight_bytes > 2 * kBlockBytes) std::this_thread::yield();
  op("last");
  session->stop();
  const std::string text = text_of(disk);
  const size_t at = text.find(" ends ");
  ASSERT_NE(at, std::string::npos) << text.substr(text.size() - 400);
  const size_t lost_ends = std::stoul(text.substr(at + 6));
  EXPECT_GE(lost_ends, 40u);
  EXPECT_EQ(count(text, "begin "), count(text, "end op") + lost_ends);
}

TEST(FullDisk, recording_stops_with_a_reason_and_what_was_written_reads) {
  Disk disk;
  disk.room = 60000;
  auto session = start(on(disk));
  write_hundred(*session);
  flood(*session);
  EXPECT_EQ(session->status().state, SessionState::kFailed);
  EXPECT_EQ(recording_thread(), nullptr);
  op("ignored");
  session->stop();
  ASSERT_GE(session->status().losses.size(), 1u);
  EXPECT_EQ(session->status().losses[0].reason, "recording stopped: test disk: No space left on device");
  const std::string text = text_of(disk, {});
  EXPECT_NE(text.find("note stopped recording stopped: test disk: No space"), std::string::npos);
  EXPECT_GE(count(text, "begin "), 100u);
  EXPECT_TRUE(text.ends_with("clean end\n"));
}

void limit_file_size(rlim_t bytes) {
  const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

TEST(FullDisk, a_file_size_limit_does_not_kill_the_program) {
  TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    limit_file_size(20000);
    auto session = start({.output = folder / "run.lane", .keep = true, .drain_interval_ms = 5});
    write_hundred(*session);
    flood(*session);
    session->stop();
    const bool told = session->status().losses[0].reason.find("File too large") != std::string::npos;
    ::_exit(told ? 7 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  const std::string text = records_of(folder / "run.lane", {});
  EXPECT_GE(count(text, "begin "), 100u);
  EXPECT_EQ(count(text, "note stopped recording stopped: "), 1u);
  EXPECT_TRUE(text.ends_with("clean end\n"));
  EXPECT_LE(fs::file_size(folder / "run.lane"), 20000u);
}

TEST(FullDisk, a_disk_that_is_full_at_the_start_leaves_no_empty_file) {
  TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    limit_file_size(10);
    auto session = start({.output = folder / "run.lane", .keep = true});
    op("ignored");
    session->stop();
    const bool failed = session->status().state == SessionState::kFailed && session->path().empty();
    ::_exit(failed && !fs::exists(folder / "run.lane") ? 7 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Kill, a_killed_program_leaves_all_but_the_last_moments) {
  TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto session = start({.output = folder / "run.lane"});
    for (int i = 0; i < 1000; ++i) op("early");
    while (session->status().event_count < 1000) std::this_thread::yield();
    op("late");
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  const std::string text = records_of(folder / "run.lane", kRecordsOnly);
  EXPECT_EQ(count(text, "begin \"early\""), 1000u);
  EXPECT_TRUE(text.ends_with("no end: the recording was cut off\n"));
}

TEST(Fork, the_child_is_quiet_and_the_parent_goes_on) {
  TemporaryFolder folder;
  auto session = start({.output = folder / "run.lane"});
  op("before");
  const pid_t child = ::fork();
  if (child == 0) {
    const bool quiet = recording_thread() == nullptr && session->status().state == SessionState::kForked;
    op("in the child");
    session->pause();
    session->resume();
    session->add_metadata("k", "1");
    session->stop();
    const bool no_file = session->path().empty() && !session->save(folder / "child.lane").ok();
    session.reset();
    ::_exit(quiet && no_file && fs::exists(folder / "run.lane") ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  op("after");
  session->stop();
  EXPECT_EQ(records_of(session->path(), kRecordsOnly),
            R"(thread 0 begin "before" scope 0
thread 0 end op
thread 0 begin "after" scope 0
thread 0 end op
clean end
)");
}

TEST(Fork, the_child_may_record_on_its_own) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the thread sanitizer does not allow threads in a forked child";
#endif
#endif
  TemporaryFolder folder;
  auto session = start({.output = folder / "parent.lane"});
  op("parent");
  const pid_t child = ::fork();
  if (child == 0) {
    auto own = start({.output = folder / "child.lane", .keep = true});
    op("child");
    std::thread([] { op("child's thread"); }).join();
    own->stop();
    ::_exit(own->status().event_count == 2 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_NE(records_of(folder / "child.lane", kRecordsOnly).find("begin \"child\""), std::string::npos);
}

TEST(Exit, without_stop_completes_the_file_and_keeps_the_status) {
  TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    static Session* never_stopped = start({.output = folder / "run.lane"}).release();
    op("last words");
    (void)never_stopped;
    std::exit(42);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_EQ(records_of(folder / "run.lane", kRecordsOnly),
            "thread 0 begin \"last words\" scope 0\nthread 0 end op\nclean end\n");
}

TEST(Exit, exec_leaves_a_readable_file) {
  TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    auto session = start({.output = folder / "run.lane", .drain_interval_ms = 5});
    op("before exec");
    while (session->status().event_count == 0) std::this_thread::yield();
    ::execl("/bin/sh", "sh", "-c", "exit 9", nullptr);
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 9);
  EXPECT_NE(records_of(folder / "run.lane", kRecordsOnly).find("begin \"before exec\""), std::string::npos);
}

TEST(Abandoned, files_of_processes_that_are_gone_are_removed_after_a_day) {
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  const TemporaryFolder folder;
  const std::string of_gone = "firelane-" + std::to_string(gone), of_this = "firelane-" + std::to_string(::getpid());
  const auto two_days_ago = fs::file_time_type::clock::now() - std::chrono::hours(48);
  for (const std::string& name :
       {of_gone + "-1.lane", of_this + "-1.lane", of_gone + "-1.json", std::string("run.lane"),
        std::string("firelane-x-1.lane"), std::string("firelane-7.lane")}) {
    std::ofstream(folder / name) << "x";
    fs::last_write_time(folder / name, two_days_ago);
  }
  std::ofstream(folder / (of_gone + "-2.lane")) << "x";  // from just now: somebody may want to read it

  remove_abandoned(folder.path());
  remove_abandoned(folder / "no such folder");

  std::set<std::string> left;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path())) left.insert(entry.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{of_this + "-1.lane", of_gone + "-2.lane", of_gone + "-1.json", "run.lane",
                                         "firelane-x-1.lane", "firelane-7.lane"}));
}

}  // namespace
}  // namespace firelane::record
