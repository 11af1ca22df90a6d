// What torch's CUDA allocator says, fed by hand and read back as text: no GPU is needed.
#include "record/torch/cuda_memory_events.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "record/core/testing.h"

namespace firelane::torch_hooks {
namespace {

using Entry = c10::cuda::CUDACachingAllocator::TraceEntry;
using Segment = c10::cuda::CUDACachingAllocator::SegmentInfo;
using PoolId = decltype(Segment::owner_private_pool_id);
using record::test::records_of;
using record::test::start;
using record::test::TemporaryFolder;

Entry entry(Entry::Action action, size_t address, size_t bytes, uintptr_t stream = 0, PoolId pool = {0, 0},
            c10::DeviceIndex device = 0) {
  return {action, device, address, bytes, reinterpret_cast<void*>(stream), pool, c10::approx_time_t{}};
}

// One segment of 2 MiB with an allocated, a waiting and a free block.
Segment segment(c10::DeviceIndex device = 0) {
  Segment s;
  s.device = device;
  s.address = 4096;
  s.total_size = 2 << 20;
  s.allocated_size = 512;
  s.blocks.resize(3);
  s.blocks[0].size = 512;
  s.blocks[0].allocated = s.blocks[0].active = true;
  s.blocks[1].size = 1024;
  s.blocks[1].active = true;
  s.blocks[2].size = (2 << 20) - 1536;
  return s;
}

class CudaMemory : public ::testing::Test {
 protected:
  void begin(const std::vector<Segment>& segments) {
    session = start({.memory = true, .output = folder / "run.lane"});
    take_snapshot(segments);
  }
  void take_snapshot(const std::vector<Segment>& segments) {
    cuda_memory::open();
    cuda_memory::on_event(entry(Entry::SNAPSHOT, 0, 0));
    cuda_memory::snapshot_taken(segments, *session);
  }
  std::string finish() {
    cuda_memory::close();
    session->stop();
    return records_of(session->path(), {.times = false, .notes = true, .chunks = false});
  }
  static bool has(const std::string& text, std::string_view line) { return text.find(line) != std::string::npos; }

  TemporaryFolder folder;
  std::unique_ptr<record::Session> session;
};

TEST_F(CudaMemory, every_event_has_its_stream_and_pool_and_the_totals_behind_it) {
  begin({segment()});
  cuda_memory::on_event(entry(Entry::SEGMENT_ALLOC, 1 << 24, 20 << 20, 77));
  cuda_memory::on_event(entry(Entry::ALLOC, 1 << 24, 1000, 77));
  cuda_memory::on_event(entry(Entry::ALLOC, 6144, 512, 0, {3, 0}));
  cuda_memory::on_event(entry(Entry::FREE_REQUESTED, 1 << 24, 1000, 77, {0, 5}));
  cuda_memory::on_event(entry(Entry::FREE_COMPLETED, 1 << 24, 1000, 77, {0, 5}));
  cuda_memory::on_event(entry(Entry::SEGMENT_UNMAP, 1 << 24, 2 << 20, 77));
  cuda_memory::on_event(entry(Entry::OOM, 12345, 1 << 30, 77));
  const std::string text = finish();
  const auto memory = [](const std::string& rest) { return "memory " + rest + "\n"; };
  EXPECT_TRUE(has(
      text, memory("4 address 16777216 bytes 20971520 allocated 512 reserved 23068672 device 1:0 stream 77 pool 0")))
      << text;
  EXPECT_TRUE(
      has(text, memory("0 address 16777216 bytes 1024 allocated 1536 reserved 23068672 device 1:0 stream 77 pool 0")));
  EXPECT_TRUE(has(
      text, memory("0 address 6144 bytes 512 allocated 2048 reserved 23068672 device 1:0 stream 0 pool 12884901888")));
  EXPECT_TRUE(
      has(text, memory("1 address 16777216 bytes -1024 allocated 1024 reserved 23068672 device 1:0 stream 77 pool 5")));
  EXPECT_TRUE(
      has(text, memory("3 address 16777216 bytes -1024 allocated 1024 reserved 23068672 device 1:0 stream 77 pool 5")));
  EXPECT_TRUE(has(
      text,
      memory("4 address 16777216 bytes -2097152 allocated 1024 reserved 20971520 device 1:0 stream 77 pool 0 mapped")));
  EXPECT_TRUE(
      has(text, memory("2 address 0 bytes 1073741824 allocated 1024 reserved 20971520 device 1:0 stream 77 pool 0")));
}

TEST_F(CudaMemory, what_was_live_at_the_start_is_in_the_trace) {
  Segment other = segment();
  other.address = 1 << 24;
  other.stream = reinterpret_cast<void*>(uintptr_t{77});
  other.is_expandable = other.is_large = true;
  other.owner_private_pool_id = {0, 2};
  begin({segment(), other});
  const std::string text = finish();
  EXPECT_TRUE(has(text, "of 1:0 address 4096 bytes 2097152 stream 0 pool 0 blocks 512:2 1024:1 2095616:0\n")) << text;
  EXPECT_TRUE(has(text, "of 1:0 address 16777216 bytes 2097152 stream 77 pool 2 expandable large blocks 512:2"))
      << text;
}

TEST_F(CudaMemory, a_device_that_holds_nothing_says_so) {
  begin({});
  cuda_memory::on_event(entry(Entry::SEGMENT_ALLOC, 4096, 2 << 20));
  const std::string text = finish();
  EXPECT_TRUE(has(text, "of 1:0 address 0 bytes 0 stream 0 pool 0 blocks\n")) << text;
  EXPECT_TRUE(has(text, "bytes 2097152 allocated 0 reserved 2097152 device 1:0")) << text;
}

TEST_F(CudaMemory, events_count_from_the_moment_of_the_snapshot_and_wait_for_no_total) {
  session = start({.memory = true, .output = folder / "run.lane"});
  cuda_memory::open();
  cuda_memory::on_event(entry(Entry::ALLOC, 4096, 512));  // the snapshot has it
  cuda_memory::on_event(entry(Entry::SNAPSHOT, 0, 0));
  cuda_memory::on_event(entry(Entry::ALLOC, 8192, 1024));  // another thread, before the snapshot is back
  cuda_memory::snapshot_taken({segment()}, *session);
  cuda_memory::on_event(entry(Entry::ALLOC, 16384, 2048));
  const std::string text = finish();
  EXPECT_FALSE(has(text, "memory 0 address 4096")) << text;
  EXPECT_TRUE(has(text, "memory 0 address 8192 bytes 1024 allocated -1 reserved -1")) << text;
  EXPECT_TRUE(has(text, "memory 0 address 16384 bytes 2048 allocated 3584 reserved 2097152")) << text;
}

TEST_F(CudaMemory, somebody_elses_snapshot_is_not_ours) {
  session = start({.memory = true, .output = folder / "run.lane"});
  cuda_memory::open();
  std::thread([] { cuda_memory::on_event(entry(Entry::SNAPSHOT, 0, 0)); }).join();
  cuda_memory::on_event(entry(Entry::ALLOC, 4096, 512));
  cuda_memory::snapshot_taken({}, *session);
  EXPECT_FALSE(has(finish(), "memory 0")) << "recorded before its snapshot";
}

TEST_F(CudaMemory, after_a_pause_the_state_is_written_again_and_totals_begin_there) {
  begin({segment()});
  session->pause();
  cuda_memory::on_event(entry(Entry::ALLOC, 4096, 1 << 20));
  session->resume();
  take_snapshot({segment()});
  cuda_memory::on_event(entry(Entry::ALLOC, 16384, 2048));
  const std::string text = finish();
  EXPECT_FALSE(has(text, "bytes 1048576")) << text;
  EXPECT_TRUE(has(text, "memory 0 address 16384 bytes 2048 allocated 2560 reserved 2097152")) << text;
  const size_t first = text.find("note segment");
  EXPECT_NE(text.find("note segment", first + 1), std::string::npos) << text;
}

TEST_F(CudaMemory, devices_are_kept_apart_and_nothing_is_recorded_once_closed) {
  session = start({.memory = true, .output = folder / "run.lane"});
  cuda_memory::open();
  cuda_memory::on_event(entry(Entry::SNAPSHOT, 0, 0, 0, {0, 0}, 0));
  cuda_memory::on_event(entry(Entry::SNAPSHOT, 0, 0, 0, {0, 0}, 1));
  cuda_memory::snapshot_taken({segment(1)}, *session);
  EXPECT_EQ(cuda_memory::device_count(), 2u);
  cuda_memory::on_event(entry(Entry::ALLOC, 4096, 512, 0, {0, 0}, 0));
  cuda_memory::on_event(entry(Entry::ALLOC, 8192, 512, 0, {0, 0}, 1));
  cuda_memory::close();
  cuda_memory::on_event(entry(Entry::ALLOC, 12288, 512));
  const std::string text = finish();
  EXPECT_TRUE(has(text, "address 4096 bytes 512 allocated 512 reserved 0 device 1:0")) << text;
  EXPECT_TRUE(has(text, "address 8192 bytes 512 allocated 1024 reserved 2097152 device 1:1")) << text;
  EXPECT_FALSE(has(text, "address 12288")) << text;
}

}  // namespace
}  // namespace firelane::torch_hooks
