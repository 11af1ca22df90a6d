// Device activity from CUPTI's buffers to the file, through a fake CUPTI: what is kept, what is counted, what is left
// on.
#include "record/cupti/activity.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "record/core/testing.h"
#include "record/cupti/testing.h"

namespace firelane::cupti {
namespace {

using namespace test;
using record::test::records_of;
using record::test::start;
using record::test::TemporaryFolder;

constexpr CUpti_ActivityKind kRuntime = CUPTI_ACTIVITY_KIND_RUNTIME;
constexpr CUpti_ActivityKind kDriver = CUPTI_ACTIVITY_KIND_DRIVER;

class Activity : public ::testing::Test {
 protected:
  void begin(const CuptiApi& api) {
    activity.reset();  // before its session, and both before the file is used again
    session.reset();
    session = start(
        {.cuda = true, .cuda_sync = true, .cuda_detach = false, .output = folder / "run.lane", .drain_interval_ms = 5});
    std::string reason;
    activity = DeviceActivity::start(api, *session, reason);
    ASSERT_NE(activity, nullptr) << reason;
    activity->open_window();
  }
  std::string finish(bool notes = false) {
    activity->stop();
    session->stop();
    return records_of(session->path(), {.times = true, .notes = notes, .chunks = false});
  }
  uint64_t losses(std::string_view about) const {
    uint64_t count = 0;
    for (const record::Loss& loss : session->status().losses) {
      if (loss.reason.find(about) != std::string::npos) count += loss.count;
    }
    return count;
  }

  TemporaryFolder folder;
  FakeCupti fake;
  std::unique_ptr<record::Session> session;
  std::unique_ptr<DeviceActivity> activity;
};

TEST_F(Activity, every_kind_of_record_is_in_the_file) {
  begin(fake.api());
  CUpti_ActivityMemcpy5 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.start = 2'000'100;
  copy.end = 2'000'200;
  copy.bytes = 4096;
  copy.correlationId = 3;
  CUpti_ActivityMemcpyPtoP4 peer{};
  peer.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  peer.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  peer.start = 2'000'300;
  peer.end = 2'000'301;
  peer.bytes = 8;
  peer.srcDeviceId = 0;
  peer.dstDeviceId = 1;
  CUpti_ActivityMemset4 set{};
  set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  set.start = 2'000'400;
  set.end = 2'000'410;
  set.bytes = 64;
  set.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  CUpti_ActivitySynchronization2 sync{};
  sync.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  sync.start = 2'000'500;
  sync.end = 2'000'600;
  sync.streamId = static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE);
  sync.cudaEventId = static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE);
  CUpti_ActivityCudaEvent2 event{};
  event.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  event.correlationId = 8;
  event.streamId = 13;
  event.eventId = 5;
  event.cudaEventSyncId = 77;
  CUpti_ActivityOverhead3 overhead{};
  overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
  overhead.start = 2'000'700;
  overhead.end = 2'000'720;
  // Out of order, over two buffers.
  fake.feed({kernel(2'000'050, 2'000'090, 2), call(kRuntime, 211, 2'000'000, 2'000'010, 2), bytes_of(overhead)});
  fake.feed({bytes_of(event), bytes_of(sync), bytes_of(set), bytes_of(peer), bytes_of(copy),
             call(kDriver, 307, 1'999'990, 1'999'999, 1)});
  const std::string text = finish();
  EXPECT_NE(text.find("kernel 2000050 40 0 1 7 2 \"gemm\" 132 1 1 256 1 1 32 1024 0 0 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("copy 2000100 100 0 0 0 3 4096 1 2 3 0 0 0 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("copy 2000300 1 0 0 0 0 8 10 0 0 0 0 0 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("set 2000400 10 0 0 0 0 64 3 0 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("sync 2000500 100 0 -1 0 4 -1 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("event 0 13 8 5 77\n"), std::string::npos) << text;
  EXPECT_NE(text.find("call 2000000 10 42 2 \"cudaLaunchKernel\" 0 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("call 1999990 9 42 1 \"cuLaunchKernel\" 1 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("overhead 2000700 20 65536 0\n"), std::string::npos) << text;
  EXPECT_TRUE(session->status().losses.empty());
  EXPECT_TRUE(text.ends_with("clean end\n"));
}

TEST_F(Activity, only_calls_that_somebody_needs_are_hooked_and_all_is_off_after_stop) {
  begin(fake.api());
  EXPECT_EQ(fake.runtime_callbacks, (std::set<CUpti_CallbackId>{31, 211}));
  EXPECT_EQ(fake.driver_callbacks, (std::set<CUpti_CallbackId>{307}));
  EXPECT_FALSE(fake.kinds.contains(kRuntime));
  EXPECT_FALSE(fake.kinds.contains(kDriver));
  EXPECT_FALSE(fake.kinds.contains(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION));
  EXPECT_EQ(fake.thread_id_type, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  finish();
  EXPECT_TRUE(fake.is_quiet());
  EXPECT_EQ(fake.forced_flushes, 0);
  EXPECT_EQ(fake.finalized, 0);
  EXPECT_EQ(fake.thread_id_type, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
  fake.feed({kernel(1, 2, 3)});  // comes late: goes nowhere
}

TEST_F(Activity, waits_cost_much_and_are_recorded_only_when_asked_for) {
  session = start({.cuda = true, .output = folder / "run.lane"});
  std::string reason;
  activity = DeviceActivity::start(fake.api(), *session, reason);
  EXPECT_FALSE(fake.kinds.contains(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION));
  EXPECT_FALSE(fake.kinds.contains(CUPTI_ACTIVITY_KIND_CUDA_EVENT));
  EXPECT_TRUE(fake.kinds.contains(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  finish();
}

TEST_F(Activity, cupti_leaves_the_process_at_the_end_of_a_call_of_ours) {
  session = start({.cuda = true, .output = folder / "run.lane"});
  std::string reason;
  activity = DeviceActivity::start(fake.api(), *session, reason);
  finish();
  EXPECT_EQ(fake.finalized, 1);
  EXPECT_TRUE(fake.finalized_inside_a_call) << "elsewhere it crashes threads that are inside of a call";
}

TEST_F(Activity, what_ran_while_cupti_left_is_no_loss_of_the_next_recording) {
  session = start({.cuda = true, .output = folder / "first.lane"});
  std::string reason;
  activity = DeviceActivity::start(fake.api(), *session, reason);
  activity->stop();
  session->stop();
  activity.reset();
  begin(fake.api());
  fake.dropped = 500;
  fake.feed({kernel(2'000'000, 2'000'010, 1)});
  while (fake.dropped > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  fake.dropped = 7;
  fake.feed({kernel(2'000'020, 2'000'030, 2)});
  finish();
  EXPECT_EQ(losses("dropped"), 7u);
}

TEST_F(Activity, a_buffer_that_cupti_held_when_it_left_does_not_stay_allocated) {
  for (size_t i = 0; i < BufferQueue::kMaxBuffers + 2; ++i) {
    session = start({.cuda = true, .output = folder / ("run" + std::to_string(i) + ".lane")});
    std::string reason;
    activity = DeviceActivity::start(fake.api(), *session, reason);
    activity->open_window();
    uint8_t* kept = fake.keep_buffer();
    ASSERT_NE(kept, nullptr);
    finish();
    activity.reset();
    EXPECT_EQ(DeviceActivity::buffer_count(), 0u);
    fake.complete(nullptr, 0, kept, BufferQueue::kBufferBytes, 8);  // a word from the one that left
    EXPECT_EQ(DeviceActivity::buffer_count(), 0u);
  }
}

TEST(Buffers, a_launch_finds_buffers_that_are_there_already) {
  BufferQueue queue;
  queue.prepare(3);
  EXPECT_EQ(queue.count(), 3u);
  BufferQueue::Full lost;
  uint8_t* first = queue.take(lost);
  uint8_t* second = queue.take(lost);
  EXPECT_EQ(queue.count(), 3u) << "a launch had to allocate one";
  queue.prepare(3);
  EXPECT_EQ(queue.count(), 5u);
  queue.prepare(BufferQueue::kMaxBuffers + 1);
  EXPECT_EQ(queue.count(), BufferQueue::kMaxBuffers);
  queue.complete({.data = first});
  queue.complete({.data = second});
}

TEST_F(Activity, a_buffer_that_a_cupti_which_stays_holds_is_left_to_it) {
  begin(fake.api());
  uint8_t* kept = fake.keep_buffer();
  finish();
  activity.reset();
  EXPECT_EQ(DeviceActivity::buffer_count(), 1u);
  fake.complete(nullptr, 0, kept, BufferQueue::kBufferBytes, 0);
  begin(fake.api());
  finish();
  activity.reset();
  EXPECT_EQ(DeviceActivity::buffer_count(), 0u);
}

TEST_F(Activity, cupti_stays_when_another_tool_uses_it) {
  fake.has_other_subscriber = true;
  session = start({.cuda = true, .output = folder / "run.lane"});
  std::string reason;
  activity = DeviceActivity::start(fake.api(), *session, reason);
  finish();
  EXPECT_EQ(fake.finalized, 0);
}

TEST_F(Activity, where_another_tool_has_the_callbacks_calls_come_as_records) {
  fake.has_other_subscriber = true;
  begin(fake.api());
  EXPECT_EQ(fake.runtime, (std::set<CUpti_CallbackId>{31, 211}));
  EXPECT_EQ(fake.driver, (std::set<CUpti_CallbackId>{307}));
  activity->pause();
  fake.has_other_subscriber = false;
  activity->resume();
  EXPECT_TRUE(fake.runtime_callbacks.empty()) << "one recording, one way";
  const std::string text = finish(true);
  EXPECT_NE(text.find("cuda_calls_by"), std::string::npos) << text;
  EXPECT_NE(text.find("activity records"), std::string::npos) << text;
  EXPECT_TRUE(session->status().losses.empty());
  EXPECT_TRUE(fake.is_quiet());
}

TEST_F(Activity, an_older_cupti_records_all_calls_and_the_decoder_filters) {
  CuptiApi api = fake.api();
  api.enable_runtime_call = nullptr;
  api.enable_driver_call = nullptr;
  fake.has_other_subscriber = true;
  begin(api);
  EXPECT_TRUE(fake.kinds.contains(kRuntime));
  fake.feed({call(kRuntime, 3, 2'000'000, 2'000'001, 1), call(kRuntime, 31, 2'000'002, 2'000'003, 2)});
  const std::string text = finish();
  EXPECT_EQ(text.find("cudaGetDevice\""), std::string::npos) << text;
  EXPECT_NE(text.find("cudaMemcpy\""), std::string::npos) << text;
  EXPECT_TRUE(fake.is_quiet());
}

// Before CUDA 12.8 an event's record ended before cudaEventSyncId; what stands there belongs to the next record.
TEST_F(Activity, an_older_cupti_does_not_read_an_events_last_field_from_the_next_record) {
  CuptiApi api = fake.api();
  api.get_version = [](uint32_t* v) { return *v = 22, CUPTI_SUCCESS; };
  begin(api);
  CUpti_ActivityCudaEvent2 event{};
  event.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  event.correlationId = 8;
  event.streamId = 13;
  event.eventId = 5;
  event.cudaEventSyncId = 77;
  fake.feed({bytes_of(event)});
  const std::string text = finish();
  EXPECT_NE(text.find("event 0 13 8 5 0\n"), std::string::npos) << text;
}

TEST_F(Activity, warm_up_is_left_out_and_work_across_the_windows_start_is_kept) {
  session = start({.cuda = true, .output = folder / "run.lane"});
  std::string reason;
  activity = DeviceActivity::start(fake.api(), *session, reason);
  fake.feed({kernel(10, 20, 1, "warmup")});
  fake.now_ns = 5'000'000;
  activity->open_window();
  fake.feed({kernel(4'000'000, 4'900'000, 2, "before"), kernel(4'999'000, 5'100'000, 3, "across")});
  const std::string text = finish();
  EXPECT_EQ(text.find("warmup"), std::string::npos) << text;
  EXPECT_EQ(text.find("before"), std::string::npos) << text;
  EXPECT_NE(text.find("across"), std::string::npos) << text;
}

TEST_F(Activity, the_window_opens_and_closes_once_and_is_in_the_file) {
  begin(fake.api());
  activity->open_window();  // again, after a pause
  fake.now_ns = 5'000'000;
  activity->close_window();
  fake.now_ns = 7'000'000;
  fake.hold({kernel(4'999'000, 6'000'000, 1, "across"), kernel(6'000'000, 6'000'100, 2, "late")});
  const std::string text = finish(true);
  const size_t opened = text.find("note device window opened at device ns ");
  ASSERT_NE(opened, std::string::npos) << text;
  EXPECT_EQ(text.find("note device window opened", opened + 1), std::string::npos) << text;
  EXPECT_NE(text.find("note device window closed at device ns 5001000\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("closed at device ns", text.find("closed at device ns") + 1), std::string::npos) << text;
  EXPECT_NE(text.find("\"across\""), std::string::npos) << "kept";
  EXPECT_NE(text.find("\"late\""), std::string::npos) << "kept";
}

TEST_F(Activity, what_a_flush_brings_is_kept_and_work_without_an_end_is_counted) {
  begin(fake.api());
  fake.hold({kernel(2'000'000, 2'000'010, 1), kernel(0, 0, 2, "running"), kernel(2'000'020, 0, 3, "running")});
  const std::string text = finish();
  EXPECT_NE(text.find("kernel 2000000"), std::string::npos) << text;
  EXPECT_EQ(text.find("running"), std::string::npos) << text;
  EXPECT_EQ(losses("work without timestamps"), 2u);
}

TEST_F(Activity, dropped_cut_off_and_unknown_records_are_counted) {
  begin(fake.api());
  finish();  // whatever test ran before this one: no recording of this process has just detached CUPTI
  begin(fake.api());
  fake.dropped = 11;
  fake.feed({kernel(2'000'000, 2'000'010, 1), kernel(2'000'020, 2'000'030, 2)}, 64);
  CUpti_Activity unknown{};
  unknown.kind = CUPTI_ACTIVITY_KIND_MARKER;
  fake.feed({bytes_of(unknown), kernel(2'000'040, 2'000'050, 3)});
  for (size_t cut = 0; cut < sizeof(CUpti_ActivityKernel9); cut += 24)
    fake.feed({kernel(2'000'060, 2'000'070, 4)}, cut);
  const std::string text = finish();
  EXPECT_NE(text.find("kernel 2000000"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel 2000040"), std::string::npos) << text;
  EXPECT_EQ(losses("dropped"), 11u);
  EXPECT_GT(losses("malformed"), 5u);
}

TEST_F(Activity, full_buffers_that_nobody_reads_are_taken_back_and_their_records_counted) {
  session = start({.cuda = true, .output = folder / "run.lane", .drain_interval_ms = 60'000});
  std::string reason;
  activity = DeviceActivity::start(fake.api(), *session, reason);
  activity->open_window();
  session->set_device_source(nullptr);  // a drain that does not come
  for (size_t i = 0; i < BufferQueue::kMaxBuffers + 5; ++i) {
    fake.feed({kernel(2'000'000 + i, 2'000'001 + i, 1), kernel(2'000'000 + i, 2'000'001 + i, 2)});
  }
  session->set_device_source(activity.get());
  finish();
  EXPECT_EQ(losses("buffers were full"), 10u);
}

TEST_F(Activity, a_refusal_names_the_reason_and_the_remedy_and_leaves_nothing_on) {
  session = start({.cuda = true, .output = folder / "run.lane"});
  fake.refused_kind = CUPTI_ACTIVITY_KIND_MEMSET;
  fake.refusal = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  std::string reason;
  EXPECT_EQ(DeviceActivity::start(fake.api(), *session, reason), nullptr);
  EXPECT_NE(reason.find("NVreg_RestrictProfilingToAdminUsers"), std::string::npos) << reason;
  EXPECT_TRUE(fake.is_quiet());
  fake.refusal = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  EXPECT_EQ(DeviceActivity::start(fake.api(), *session, reason), nullptr);
  EXPECT_NE(reason.find("another profiler"), std::string::npos) << reason;
  fake.refused_kind = CUPTI_ACTIVITY_KIND_INVALID;
  activity = DeviceActivity::start(fake.api(), *session, reason);
  EXPECT_NE(activity, nullptr) << "a refusal must not hold the place";
  EXPECT_EQ(DeviceActivity::start(fake.api(), *session, reason), nullptr) << "one at a time";
  activity.reset();
}

TEST_F(Activity, a_pause_keeps_what_ran_before_it) {
  begin(fake.api());
  fake.hold({kernel(2'000'000, 2'000'010, 1)});
  activity->pause();
  activity->resume();
  EXPECT_NE(finish().find("kernel 2000000"), std::string::npos);
}

TEST_F(Activity, paused_nothing_is_enabled_and_resumed_all_is) {
  begin(fake.api());
  const auto kinds = fake.kinds;
  activity->pause();
  EXPECT_TRUE(fake.is_quiet());
  activity->resume();
  EXPECT_EQ(fake.kinds, kinds);
  EXPECT_EQ(fake.runtime_callbacks.size(), 2u);
  finish();
}

TEST_F(Activity, versions_of_cupti_and_the_driver_are_in_the_file) {
  begin(fake.api());
  const std::string text = finish(true);
  EXPECT_NE(text.find("note metadata cupti_version = 130001"), std::string::npos) << text;
  EXPECT_NE(text.find("note metadata cuda_driver_version = 13000"), std::string::npos);
}

TEST_F(Activity, clocks_are_paired_at_start_and_stop) {
  begin(fake.api());
  const std::string text = finish(true);
  EXPECT_NE(text.find("note device clock 0 ticks "), std::string::npos) << text;
  EXPECT_NE(text.find("note device clock 2 ticks "), std::string::npos) << text;
}

TEST_F(Activity, a_forked_child_leaves_cupti_alone) {
  begin(fake.api());
  const ::pid_t child = ::fork();
  if (child == 0) {
    const auto before = fake.kinds.size();
    activity.reset();
    ::_exit(fake.kinds.size() == before ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  finish();
}

}  // namespace
}  // namespace firelane::cupti
