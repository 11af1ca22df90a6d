// Native frames: walked in this process, merged with Python's as made here.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "live/merged_stack.h"
#include "live/native_reader.h"
#include "live/symbols.h"
#include "live/thread_samples.h"
#include "live/unwinder.h"

// Global, so that their names are theirs.
extern "C" [[gnu::noinline]] void firelane_test_waits(std::atomic<int>* until_zero) {
  while (until_zero->load() != 0) until_zero->wait(1);
  asm volatile("" ::: "memory");  // no tail call: this function stays on the stack
}

extern "C" [[gnu::noinline]] uint64_t firelane_test_spins(const std::atomic<int>* until_zero) {
  uint64_t count = 0;
  while (until_zero->load() != 0) asm volatile("" : "+r"(count));
  return count + 1;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FIRELANE_TEST_SANITIZED 1
#endif
#endif
#if defined(FIRELANE_TEST_SANITIZED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;  // what begins threads then has no tables, so that no walk reaches its end
#else
constexpr bool kIsSanitized = false;
#endif

namespace firelane::live {
namespace {

// Python's frames are 1, 2, ...; native ones 101, 102, ...
Frame python(uint32_t function, bool is_entry) { return {.function = function, .line = 7, .is_entry = is_entry}; }
NativeFrame native(uint32_t function) { return {.function = function}; }
NativeFrame of_python(uint32_t function) { return {.function = function, .is_python = true}; }
NativeFrame loop() { return {.function = 100, .is_python = true, .is_interpreter = true}; }
NativeFrame start() { return {.function = 199, .is_start = true}; }

std::vector<uint32_t> functions_in(const MergedStack& stack) {
  std::vector<uint32_t> out;
  for (const Frame& frame : stack.frames) out.push_back(frame.function);
  return out;
}

TEST(Merge, EachCallOfTheLoopIsReplacedByThePythonFramesThatItRuns) {
  const std::array frames = {python(1, false), python(2, true), python(3, true)};
  const std::array stack = {native(101), of_python(102), loop(), of_python(103), native(104), loop(), start()};
  const MergedStack merged = merge(frames, stack, /*is_whole=*/true);
  EXPECT_TRUE(merged.fits);
  // The interpreter's own code stays where it is innermost, and goes between Python frames; so do the thread's
  // beginnings.
  EXPECT_EQ(functions_in(merged), (std::vector<uint32_t>{101, 102, 1, 2, 104, 3}));
  EXPECT_EQ(merged.frames[2].line, 7);
}

TEST(Merge, WhatCalledTheFirstPythonFrameStays) {
  const std::array frames = {python(1, true)};
  const std::array stack = {loop(), of_python(101), native(102), start()};
  EXPECT_EQ(functions_in(merge(frames, stack, true)), (std::vector<uint32_t>{1, 102}));
}

TEST(Merge, WithoutAFitTheInnermostNativeFramesStandInsideOfPythons) {
  const std::array frames = {python(1, true), python(2, true)};
  const std::array stack = {native(101), loop(), native(102)};
  for (const bool is_whole : {false, true}) {
    const MergedStack merged = merge(frames, stack, is_whole);
    EXPECT_FALSE(merged.fits);
    EXPECT_EQ(functions_in(merged), (std::vector<uint32_t>{101, 1, 2}));
  }
  EXPECT_EQ(functions_in(merge(frames, {}, false)), (std::vector<uint32_t>{1, 2}));
}

TEST(Merge, AThreadWithoutPythonKeepsAll) {
  const std::array stack = {native(101), start()};
  EXPECT_EQ(functions_in(merge({}, stack, false)), (std::vector<uint32_t>{101, 199}));
}

TEST(ReadableName, HasNoParameters) {
  EXPECT_EQ(readable_name("main"), "main");
  EXPECT_EQ(readable_name("_ZN2at6native4copyERKNS_6TensorE"), "at::native::copy");
  EXPECT_EQ(readable_name("_ZNK1AclEi"), "A::operator()");
  EXPECT_EQ(readable_name("_ZN12_GLOBAL__N_11fEv"), "(anonymous namespace)::f");
  EXPECT_EQ(readable_name("_ZZ4mainENKUlifE_clEif"), "main::{lambda(int, float)#1}::operator()");
  EXPECT_EQ(readable_name("_Z"), "_Z");
}

TEST(WaitPlace, IsReadFromWhatTheKernelWrites) {
  WaitPlace place;
  EXPECT_TRUE(parse_wait_place("202 0x1 0x89 0x0 0x0 0x0 0xffffffff 0x7ffc10 0x7f33\n", place));
  EXPECT_EQ(place, (WaitPlace{.call = 202, .stack_pointer = 0x7ffc10, .instruction = 0x7f33}));
  EXPECT_TRUE(parse_wait_place("-1 0x7ffc10 0x7f33\n", place));
  EXPECT_EQ(place.call, -1);
  for (const char* text : {"running\n", "", "202", "202 0x1 0x2", "a b c d e f g h i", "0 0 0"})
    EXPECT_FALSE(parse_wait_place(text, place)) << text;
}

TEST(ParseSample, ReadsRegistersAndStackAndRefusesWhatIsCut) {
  std::vector<uint64_t> words = {2};  // 64 bit
  for (uint64_t i = 0; i < 17; ++i) words.push_back(1000 + i);
  words.insert(words.end(), {16, 11, 12, 8});  // asked for 16 bytes, two words, got 8 of them
  const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
  Registers registers;
  StackCopy stack;
  ASSERT_TRUE(parse_sample(bytes, words.size() * 8, registers, stack));
  EXPECT_EQ(registers.values[Registers::kStackPointer], 1007u);
  EXPECT_EQ(registers.values[Registers::kInstruction], 1008u);
  EXPECT_EQ(registers.values[3], 1001u);  // rbx comes second in the kernel's order
  EXPECT_EQ(stack.bytes.size(), 8u);
  for (size_t size = 0; size < words.size() * 8; ++size) EXPECT_FALSE(parse_sample(bytes, size, registers, stack));
  words[18] = ~uint64_t{0};
  EXPECT_FALSE(parse_sample(bytes, words.size() * 8, registers, stack));
}

TEST(StackCopy, GrowsAsFarAsThereIsMemory) {
  std::vector<uint64_t> numbers(100'000, 5);
  const Memory memory(::getpid());
  StackCopy stack = StackCopy::of(memory, reinterpret_cast<uint64_t>(numbers.data()));
  uint64_t word = 0;
  EXPECT_TRUE(stack.read_word(reinterpret_cast<uint64_t>(&numbers[90'000]), word));
  EXPECT_EQ(word, 5u);
  EXPECT_FALSE(stack.read_word(8, word));
  StackCopy nothing = StackCopy::of(memory, 8);
  EXPECT_FALSE(nothing.read_word(8, word));
}

std::string text_of(const NativeReader& reader, const NamedStack& stack) {
  std::string out;
  for (const NativeFrame& frame : stack.frames) out += reader.functions()[frame.function].name + "\n";
  return out;
}

Result<NativeReader> open_self() {
  auto process = look_at(::getpid());
  if (!process.ok()) return process.error();
  return NativeReader::open(process.value(), "");
}

class OtherThread {
 public:
  explicit OtherThread(void (*body)(std::atomic<int>*))
      : thread_([this, body] {
          id_ = static_cast<pid_t>(::syscall(SYS_gettid));
          id_.notify_all();
          body(&goes_on_);
        }) {
    id_.wait(0);
  }
  ~OtherThread() {
    goes_on_ = 0;
    goes_on_.notify_all();
    thread_.join();
  }
  pid_t id() const { return id_; }

 private:
  std::atomic<int> goes_on_ = 1;
  std::atomic<pid_t> id_ = 0;
  std::thread thread_;
};

TEST(NativeReader, WalksAThreadThatWaitsFromItsStackAlone) {
  if (kIsSanitized) GTEST_SKIP() << "a frame pointer is only believed if the walk reaches its end";
  auto reader = open_self();
  if (!reader.ok()) GTEST_SKIP() << reader.error().message;
  const OtherThread other([](std::atomic<int>* until_zero) { firelane_test_waits(until_zero); });
  // Until it waits: it is on its way there, and goes on only when we end it.
  std::string text;
  NamedStack stack;
  while (text.find("firelane_test_waits") == std::string::npos) {
    WaitPlace place;
    if (!reader.value().where_waits(other.id(), place)) {
      if (read_proc(::getpid(), "task/" + std::to_string(other.id()) + "/syscall").empty())
        GTEST_SKIP() << "this system does not say where threads wait";
      continue;
    }
    NamedStack walked = reader.value().stack_at(place);
    WaitPlace after;
    if (!reader.value().where_waits(other.id(), after) || !(after == place)) continue;  // it ran meanwhile
    stack = std::move(walked);
    text = text_of(reader.value(), stack);
  }
  EXPECT_TRUE(stack.is_whole) << text;  // its callers, too
}

TEST(ThreadSamples, HaveTheStackOfAThreadThatRuns) {
  auto reader = open_self();
  if (!reader.ok()) GTEST_SKIP() << reader.error().message;
  const OtherThread other([](std::atomic<int>* until_zero) { (void)firelane_test_spins(until_zero); });
  SamplesRefused refused{};
  auto samples = ThreadSamples::open(other.id(), 1'000'000, refused);
  if (!samples.ok()) GTEST_SKIP() << samples.error().message;
  std::string text;
  NamedStack found;
  while (text.find("firelane_test_spins") == std::string::npos) {
    Registers registers;
    StackCopy stack;
    if (!samples.value().take(registers, stack)) continue;
    found = reader.value().stack_of(registers, stack);
    text = text_of(reader.value(), found);
  }
  EXPECT_TRUE(found.is_whole || kIsSanitized) << text;
}

TEST(ThreadSamples, TellAThreadThatHasNoRoomFromASystemThatForbidsThem) {
  const auto own = static_cast<pid_t>(::syscall(SYS_gettid));
  SamplesRefused refused{};
  if (const auto samples = ThreadSamples::open(own, 1'000'000, refused); !samples.ok()) {
    EXPECT_EQ(refused, SamplesRefused::kForbidden) << samples.error().message;
    GTEST_SKIP() << samples.error().message;
  }
  EXPECT_FALSE(ThreadSamples::open(1 << 30, 1'000'000, refused).ok());
  EXPECT_EQ(refused, SamplesRefused::kEnded);
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const struct rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool is_opened = ThreadSamples::open(own, 1'000'000, refused).ok();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(is_opened);
  EXPECT_EQ(refused, SamplesRefused::kNoRoom);
}

}  // namespace
}  // namespace firelane::live
