#include "live/thread_samples.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace firelane::live {

namespace {

constexpr size_t kRingBytes = 16 * kPageSize;  // a power of two pages; one sample lies in it
constexpr size_t kMappedBytes = kRingBytes + kPageSize;
constexpr uint32_t kStackBytes = 32 << 10;
#if defined(__x86_64__)
constexpr bool kKnowsRegisters = true;
#else
constexpr bool kKnowsRegisters = false;  // the table below is x86-64's
#endif

// In the kernel's order (asm/perf_regs.h of x86), each with DWARF's number.
struct Register {
  unsigned kernel;
  uint8_t dwarf;
};
constexpr std::array<Register, 17> kRegisters = {{{0, 0},
                                                  {1, 3},
                                                  {2, 2},
                                                  {3, 1},
                                                  {4, 4},
                                                  {5, 5},
                                                  {6, 6},
                                                  {7, 7},
                                                  {8, 16},
                                                  {16, 8},
                                                  {17, 9},
                                                  {18, 10},
                                                  {19, 11},
                                                  {20, 12},
                                                  {21, 13},
                                                  {22, 14},
                                                  {23, 15}}};

uint64_t register_mask() {
  uint64_t mask = 0;
  for (const Register& each : kRegisters) mask |= uint64_t{1} << each.kernel;
  return mask;
}

int open_event(pid_t thread, int64_t interval_ns, bool with_kernel) {
  struct perf_event_attr wanted{};
  wanted.size = sizeof(wanted);
  wanted.type = PERF_TYPE_SOFTWARE;
  wanted.config = PERF_COUNT_SW_TASK_CLOCK;
  wanted.sample_period = static_cast<uint64_t>(interval_ns);
  wanted.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  wanted.sample_regs_user = register_mask();
  wanted.sample_stack_user = kStackBytes;
  wanted.exclude_kernel = with_kernel ? 0 : 1;
  wanted.exclude_callchain_kernel = 1;
  wanted.wakeup_events = 1;
  return static_cast<int>(::syscall(SYS_perf_event_open, &wanted, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

SamplesRefused kind_of(int why) {
  switch (why) {
    case ESRCH: return SamplesRefused::kEnded;
    case EMFILE:
    case ENFILE:
    case ENOMEM: return SamplesRefused::kNoRoom;
    default: return SamplesRefused::kForbidden;
  }
}

}  // namespace

Result<ThreadSamples> ThreadSamples::open(pid_t thread, int64_t interval_ns, SamplesRefused& refused) {
  if (!kKnowsRegisters) {
    refused = SamplesRefused::kForbidden;
    return Error{"stacks of running threads are read on x86-64 only"};
  }
  // Samples in the kernel count, too, where that is allowed: they show the call that led there.
  int file = open_event(thread, interval_ns, /*with_kernel=*/true);
  if (file < 0 && (errno == EACCES || errno == EPERM)) file = open_event(thread, interval_ns, /*with_kernel=*/false);
  if (file < 0) {
    const int why = errno;
    refused = kind_of(why);
    if (refused == SamplesRefused::kEnded) return Error{"the thread has ended"};
    if (why == EACCES || why == EPERM)
      return Error{"perf_event_open is not permitted (sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON)"};
    return Error{std::string("perf_event_open: ") + std::strerror(why)};
  }
  void* ring = ::mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (ring == MAP_FAILED) {
    const int why = errno;
    refused = SamplesRefused::kNoRoom;
    ::close(file);
    return Error{std::string("no memory for perf_event_open (ulimit -l): ") + std::strerror(why)};
  }
  return ThreadSamples(file, static_cast<uint8_t*>(ring));
}

ThreadSamples::ThreadSamples(ThreadSamples&& other) noexcept
    : file_(std::exchange(other.file_, -1)), ring_(std::exchange(other.ring_, nullptr)) {}

ThreadSamples::~ThreadSamples() {
  if (ring_ != nullptr) ::munmap(ring_, kMappedBytes);
  if (file_ >= 0) ::close(file_);
}

bool ThreadSamples::take(Registers& registers, StackCopy& stack) {
  auto* control = reinterpret_cast<struct perf_event_mmap_page*>(ring_);
  const std::atomic_ref<__u64> head_in_ring(control->data_head);
  const std::atomic_ref<__u64> tail_in_ring(control->data_tail);
  const uint64_t head = head_in_ring.load(std::memory_order_acquire);
  uint64_t tail = tail_in_ring.load(std::memory_order_relaxed);
  const uint8_t* data = ring_ + kPageSize;
  const auto copy = [&](uint64_t at, void* into, size_t size) {
    const size_t offset = at % kRingBytes;
    const size_t first = std::min(size, kRingBytes - offset);
    std::memcpy(into, data + offset, first);
    std::memcpy(static_cast<uint8_t*>(into) + first, data, size - first);
  };
  bool found = false;
  std::vector<uint8_t> record;
  while (head - tail >= sizeof(struct perf_event_header) && head - tail <= kRingBytes) {
    struct perf_event_header header{};
    copy(tail, &header, sizeof(header));
    if (header.size < sizeof(header) || header.size > head - tail) break;
    if (header.type == PERF_RECORD_SAMPLE) {
      record.resize(header.size - sizeof(header));
      copy(tail + sizeof(header), record.data(), record.size());
      found = parse_sample(record.data(), record.size(), registers, stack);
    }
    tail += header.size;
  }
  tail_in_ring.store(head, std::memory_order_release);
  return found;
}

bool parse_sample(const uint8_t* bytes, size_t size, Registers& registers, StackCopy& stack) {
  const auto word = [&](size_t index) { return value_at<uint64_t>(bytes, index * sizeof(uint64_t)); };
  constexpr size_t kWords = 1 + kRegisters.size();
  if (size < (kWords + 1) * sizeof(uint64_t) || word(0) != PERF_SAMPLE_REGS_ABI_64) return false;
  registers = {};
  for (size_t i = 0; i < kRegisters.size(); ++i) registers.set(kRegisters[i].dwarf, word(1 + i));
  const uint64_t asked = word(kWords);
  const size_t begin = (kWords + 1) * sizeof(uint64_t);
  if (asked > size - begin || size - begin - asked < sizeof(uint64_t)) return false;
  const auto copied = value_at<uint64_t>(bytes, begin + asked);  // of what was asked for
  if (copied > asked) return false;
  stack = {.start = registers.values[Registers::kStackPointer], .bytes = {bytes + begin, bytes + begin + copied}};
  return true;
}

}  // namespace firelane::live
