// A recording from end to end, read back as text; and what may go wrong around it.
#include "record/core/session.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <iterator>
#include <thread>

#include "format/dump.h"
#include "record/core/testing.h"
#include "record/core/thread_buffer.h"

namespace firelane::record {
namespace {

namespace fs = std::filesystem;
using test::op;
using test::read_file;
using test::records_of;
using test::start;
using test::TemporaryFolder;

TEST(Session, what_is_pushed_is_in_the_file) {
  TemporaryFolder folder;
  auto session = start({.output = folder / "run.lane"});
  ThreadBuffer* b = recording_thread_for_begin();
  ASSERT_NE(b, nullptr);
  b->begin(now_ticks(), b->stable_name("aten::mm"), format::Scope::kFunction, 3);
  InputBlob inputs;
  inputs.scalar("1");
  b->attribute(format::Attribute::kInputs, b->inputs(inputs));
  b->attribute(format::Attribute::kFlops, int64_t{1024});
  b->begin(now_ticks(), b->text("inner"), format::Scope::kUser);
  b->memory(now_ticks(), {.address = 4096, .bytes = 512, .total_allocated_bytes = 512});
  b->end(now_ticks(), format::ScopeGroup::kOp);
  b->end(now_ticks(), format::ScopeGroup::kOp);
  b->instant(now_ticks(), b->text("mark"));
  b->counter(now_ticks(), b->text("power"), 312.5);
  b->slice(now_ticks() - 10, now_ticks(), b->text("call"), format::Scope::kRuntime);
  b->async_begin(now_ticks(), b->text("later"), format::Scope::kUser, 77);
  b->async_end(now_ticks(), 77);
  b->thread_name(b->text("trainer"));
  session->stop();
  EXPECT_EQ(session->status().event_count, 7u);
  const std::string text = records_of(session->path(), {.times = false, .notes = false, .chunks = false});
  EXPECT_EQ(text.substr(0, text.find("thread 0 slice")),
            R"(thread 0 begin "aten::mm" scope 0 sequence 3
thread 0 attribute 1 = "\u0004\u0000\u0000\u0000\u0001\u0000\u0000\u00001\u0000\u0000\u0000\u0000\u0000\u0000\u0000"
thread 0 attribute 2 = 1024
thread 0 begin "inner" scope 7
thread 0 memory 0 address 4096 bytes 512 allocated 512 reserved -1 device 0:-1
thread 0 end op
thread 0 end op
thread 0 instant "mark"
thread 0 counter "power" = 312.5
)");
  EXPECT_TRUE(text.ends_with(R"(thread 0 async begin "later" id 77
thread 0 async end id 77
thread 0 thread name "trainer"
clean end
)")) << text;
}

TEST(Session, overloads_of_one_name_are_texts_of_their_own) {
  TemporaryFolder folder;
  auto session = start({.output = folder / "run.lane"});
  ThreadBuffer* b = recording_thread_for_begin();
  ASSERT_NE(b, nullptr);
  for (int i = 0; i < 2; ++i) {
    const TextSlot known = b->find(0x10);
    b->begin(now_ticks(), known != kNoSlot ? known : b->define_op(0x10, "aten::add", "Tensor"),
             format::Scope::kFunction);
    b->end(now_ticks(), format::ScopeGroup::kOp);
  }
  b->begin(now_ticks(), b->define_op(0x20, "aten::add", "out"), format::Scope::kFunction);
  b->end(now_ticks(), format::ScopeGroup::kOp);
  b->begin(now_ticks(), b->define_op(0x30, "aten::mm", ""), format::Scope::kFunction);
  b->end(now_ticks(), format::ScopeGroup::kOp);
  session->stop();
  const std::string text = records_of(session->path(), {.times = false, .chunks = false});
  const auto count = [&](std::string_view wanted) {
    int found = 0;
    for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("begin \"aten::add\" scope 0"), 3) << text;
  EXPECT_EQ(count("begin \"aten::mm\" scope 0"), 1);
  EXPECT_EQ(count("note overload of text 1 Tensor\n"), 1);
  EXPECT_EQ(count("note overload of text 2 out\n"), 1);
  EXPECT_EQ(count("note overload"), 2);
  EXPECT_LT(text.find("note overload"), text.find("aten::add"));
}

TEST(Session, notes_are_in_the_file) {
  TemporaryFolder folder;
  auto session = start({.shapes = true, .output = folder / "run.lane"});
  session->add_metadata("model", R"("gpt")");
  session->add_cost("op", 12.5);
  session->add_loss("a hook was not there", 3);
  session->add_loss("a hook was not there", 4);
  session->add_steps({{.number = 4,
                       .phase = format::StepPhase::kUnrecorded,
                       .start_ticks = session->start_ticks() + 5,
                       .duration_ticks = 100}});
  session->pause();
  session->resume();
  session->stop();
  const std::string text = records_of(session->path(), {.times = false, .chunks = false});
  for (const char* line :
       {"note option record_shapes = 1", "note option profile_memory = 0", "note metadata model = \"gpt\"",
        "note cost op 12.5 ns", "note loss 7 a hook was not there", "note step 4 phase 0 start 5 ticks 100",
        "note paused", "note resumed", "note clocks 0", "note clocks 2"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << " in\n" << text;
  }
  ASSERT_EQ(session->status().losses.size(), 1u);
  EXPECT_EQ(session->status().losses[0].count, 7u);
}

TEST(Session, the_level_of_recording_is_noted_from_its_beginning_on) {
  TemporaryFolder folder;
  auto session = start({.start_light = true, .output = folder / "run.lane"});
  session->note_level(format::RecordLevel::kFull);
  session->stop();
  const std::string text = records_of(session->path(), {.times = false, .notes = true, .chunks = false});
  const size_t light = text.find("note level light");
  EXPECT_NE(light, std::string::npos) << text;
  EXPECT_GT(text.find("note level full"), light);
  EXPECT_NE(text.find("note level full"), std::string::npos) << text;
}

TEST(Session, metadata_beyond_reason_is_a_loss_not_a_broken_file) {
  TemporaryFolder folder;
  auto session = start({.output = folder / "run.lane"});
  session->add_metadata("huge", std::string(80 << 20, 'x'));
  session->add_metadata("small", "1");
  session->stop();
  ASSERT_EQ(session->status().losses.size(), 1u);
  EXPECT_EQ(session->status().losses[0].reason, "metadata too large: huge");
  EXPECT_NE(records_of(session->path(), {}).find("note metadata small = 1"), std::string::npos);
}

TEST(Session, the_file_goes_with_the_session_unless_it_is_saved_or_kept) {
  TemporaryFolder folder;
  {
    auto session = start({.output = folder / "gone.lane"});
    EXPECT_TRUE(fs::exists(folder / "gone.lane"));
  }
  EXPECT_FALSE(fs::exists(folder / "gone.lane"));
  {
    auto session = start({.output = folder / "kept.lane", .keep = true});
  }
  EXPECT_TRUE(fs::exists(folder / "kept.lane"));
  {
    auto session = start({.output = folder / "stream.lane"});
    EXPECT_FALSE(session->save(folder / "early.lane").ok());  // still running
    session->stop();
    ASSERT_TRUE(session->save(folder / "saved.lane").ok());
    ASSERT_TRUE(session->save(folder / "again.lane").ok());
  }
  EXPECT_FALSE(fs::exists(folder / "stream.lane"));
  EXPECT_TRUE(fs::exists(folder / "saved.lane"));
  EXPECT_EQ(read_file(folder / "saved.lane"), read_file(folder / "again.lane"));
}

TEST(Session, a_folder_as_output_gets_a_name_of_our_own) {
  TemporaryFolder folder;
  auto session = start({.output = folder.path()});
  session->stop();
  EXPECT_EQ(session->path().parent_path(), folder.path());
  EXPECT_EQ(session->path().extension(), ".lane");
}

TEST(Session, firelane_dir_says_where_the_stream_lies) {
  TemporaryFolder folder;
  ::setenv("FIRELANE_DIR", folder.path().c_str(), 1);
  auto session = start({});
  ::unsetenv("FIRELANE_DIR");
  EXPECT_EQ(session->path().parent_path(), folder.path());
}

TEST(Session, a_second_recording_is_refused_with_a_reason_and_harms_nothing) {
  TemporaryFolder folder;
  auto session = start({.output = folder / "a.lane"});
  const auto second = Session::start({.output = folder / "b.lane"});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message, "cannot record: another recording is running in this process; stop it first");
  op("still recorded");
  session->stop();
  EXPECT_EQ(session->status().event_count, 1u);
}

TEST(Session, an_unusable_folder_stops_the_recording_not_the_program) {
  TemporaryFolder folder;
  for (const fs::path& path : {folder / "missing" / "run.lane", fs::path("/proc/run.lane")}) {
    auto session = start({.output = path});
    EXPECT_EQ(session->status().state, SessionState::kFailed);
    EXPECT_EQ(recording_thread(), nullptr);
    op("ignored");
    session->stop();
    session->stop();
    ASSERT_EQ(session->status().losses.size(), 1u);
    EXPECT_TRUE(session->status().losses[0].reason.starts_with("recording stopped: " + path.string() + ": "))
        << session->status().losses[0].reason;
    const auto saved = session->save(folder / "x.lane");
    ASSERT_FALSE(saved.ok());
    EXPECT_NE(saved.error().message.find("nothing was recorded"), std::string::npos);
  }
}

TEST(Session, a_read_only_folder_is_a_reason_too) {
  TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0555);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(2);  // root may write everywhere
    auto session = start({.output = folder / "run.lane"});
    const SessionStatus status = session->status();
    const bool told = status.losses.size() == 1 && status.losses[0].reason.ends_with(": Permission denied");
    ::_exit(status.state == SessionState::kFailed && told ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ::chmod(folder.path().c_str(), 0700);
}

TEST(Session, nothing_is_recorded_before_start_while_paused_and_after_stop) {
  TemporaryFolder folder;
  op("before");
  auto session = start({.start_paused = true, .output = folder / "run.lane"});
  op("paused");
  session->resume();
  op("one");
  session->pause();
  op("paused again");
  session->resume();
  op("two");
  session->stop();
  op("after");
  EXPECT_EQ(records_of(session->path(), {.times = false, .notes = false, .chunks = false}),
            R"(thread 0 begin "one" scope 0
thread 0 end op
thread 0 begin "two" scope 0
thread 0 end op
clean end
)");
}

TEST(Session, a_slice_open_across_a_pause_gets_its_own_end) {
  TemporaryFolder folder;
  auto session = start({.output = folder / "run.lane"});
  test::begin("outer");
  test::begin("ends while paused");
  session->pause();
  op("not recorded");
  test::end();  // of "ends while paused"
  test::begin("begins while paused");
  session->resume();
  op("inside");
  test::end();  // of "begins while paused": skipped
  op("inside outer");
  test::end();
  session->stop();
  EXPECT_EQ(records_of(session->path(), {.times = false, .notes = false, .chunks = false}),
            R"(thread 0 begin "outer" scope 0
thread 0 begin "ends while paused" scope 0
thread 0 end op
thread 0 begin "inside" scope 0
thread 0 end op
thread 0 begin "inside outer" scope 0
thread 0 end op
thread 0 end op
clean end
)");
}

TEST(Session, an_end_without_its_begin_is_ignored) {
  TemporaryFolder folder;
  test::begin("before the start");
  auto session = start({.output = folder / "run.lane"});
  test::end();
  op("whole");
  test::end();
  session->stop();
  EXPECT_EQ(records_of(session->path(), {.times = false, .notes = false, .chunks = false}),
            "thread 0 begin \"whole\" scope 0\nthread 0 end op\nclean end\n");
}

TEST(Session, more_texts_than_slots_still_come_out_right) {
  TemporaryFolder folder;
  auto session = start({.output = folder / "run.lane"});
  std::string expected;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 5000; ++i) {
      const std::string name = "name " + std::to_string(i);
      op(name);
      expected += "thread 0 begin \"" + name + "\" scope 0\nthread 0 end op\n";
    }
  }
  session->stop();
  EXPECT_EQ(session->status().dropped_count, 0u);
  EXPECT_EQ(records_of(session->path(), {.times = false, .notes = false, .chunks = false}), expected + "clean end\n");
}

TEST(Session, steps_are_timed_whether_recorded_or_not) {
  StepTimer timer;
  timer.step(0, format::StepPhase::kUnrecorded);
  timer.step(1, format::StepPhase::kUnrecorded);
  timer.raise_phase(format::StepPhase::kRecorded);
  timer.finish();
  const std::vector<StepSample> steps = timer.take();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].phase, format::StepPhase::kUnrecorded);
  EXPECT_EQ(steps[1].phase, format::StepPhase::kRecorded);
  EXPECT_EQ(steps[0].start_ticks + steps[0].duration_ticks, steps[1].start_ticks);
  EXPECT_TRUE(timer.samples().empty());
}

TEST(Session, a_step_says_how_long_its_thread_ran_unless_the_thread_changed_meanwhile) {
  if (ThreadTimesReader().read().ran_ns < 0) GTEST_SKIP() << "this system does not say";
  const auto ran_ns = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  StepTimer timer;
  timer.step(0, format::StepPhase::kUnrecorded);
  constexpr int64_t kRanNs = 60'000'000;  // several ticks of any scheduler
  for (const int64_t until = ran_ns() + kRanNs; ran_ns() < until;) {
  }
  std::thread([&] { timer.step(1, format::StepPhase::kUnrecorded); }).join();
  timer.step(2, format::StepPhase::kUnrecorded);
  for (const int64_t until = ran_ns() + kRanNs; ran_ns() < until;) {
  }
  timer.finish();
  const std::vector<StepSample> steps = timer.take();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_LT(steps[0].thread.ran_ns, 0);
  EXPECT_LT(steps[1].thread.ran_ns, 0);
  EXPECT_GT(steps[2].thread.ran_ns, kRanNs / 2);
  EXPECT_GE(steps[2].thread.waited_ns, 0);
}

TEST(Session, the_cost_of_each_kind_of_event_is_measured) {
  const std::vector<CoreCost> costs = core_costs();
  ASSERT_EQ(costs.size(), 4u);
  for (const CoreCost& cost : costs) EXPECT_GT(cost.ns_per_event, 0) << cost.kind;
}

}  // namespace
}  // namespace firelane::record
