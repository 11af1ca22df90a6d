#include "live/native_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace firelane::live {

namespace {

constexpr std::chrono::seconds kRefreshEvery{1};
constexpr uint64_t kSearchedBytes = 4096;  // of a stack, for a frame pointer
constexpr uint64_t kLargestFrame = 256 << 10;
constexpr int kMostAttempts = 16;

bool is_same(const std::vector<Mapping>& a, const std::vector<Mapping>& b) {
  return std::ranges::equal(a, b, [](const Mapping& x, const Mapping& y) {
    return x.start == y.start && x.end == y.end && x.path == y.path;
  });
}

}  // namespace

// "202 0x... 0x... 0x... 0x... 0x... 0x... SP PC", or "-1 SP PC", or "running".
bool parse_wait_place(std::string_view text, WaitPlace& out) {
  std::array<std::string_view, 9> words;
  size_t count = 0;
  while (count < words.size() && !text.empty()) {
    const size_t end = std::min(text.find_first_of(" \n"), text.size());
    if (end > 0) words[count++] = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (count != words.size() && count != 3) return false;
  const auto number = [](std::string_view word, auto& into) {
    const bool is_hex = word.starts_with("0x");
    if (is_hex) word.remove_prefix(2);
    return std::from_chars(word.data(), word.data() + word.size(), into, is_hex ? 16 : 10).ec == std::errc{};
  };
  return number(words[0], out.call) && number(words[count - 2], out.stack_pointer) &&
         number(words[count - 1], out.instruction) && (out.call == -1 || count == words.size()) &&
         out.stack_pointer != 0;
}

NativeReader::NativeReader(const Process& process, std::string python_image, Unwinder unwinder)
    : process_(process),
      python_image_(std::move(python_image)),
      memory_(process.pid),
      unwinder_(std::move(unwinder)),
      symbols_(process, python_image_),
      program_name_(process.program.substr(process.program.rfind('/') + 1)) {}

Result<NativeReader> NativeReader::open(const Process& process, std::string python_image) {
  FL_TRY(Unwinder unwinder, Unwinder::open(process));
  return NativeReader(process, std::move(python_image), std::move(unwinder));
}

std::vector<pid_t> NativeReader::threads() const {
  std::vector<pid_t> out;
  std::error_code error;
  const std::string folder = "/proc/" + std::to_string(process_.pid) + "/task";
  for (auto at = std::filesystem::directory_iterator(folder, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    pid_t id = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), id).ec == std::errc{}) out.push_back(id);
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool NativeReader::where_waits(pid_t thread, WaitPlace& out) const {
  return parse_wait_place(read_proc(process_.pid, "task/" + std::to_string(thread) + "/syscall"), out);
}

NamedStack NativeReader::stack_at(const WaitPlace& place) {
  Registers registers;
  registers.set(Registers::kStackPointer, place.stack_pointer);
  registers.set(Registers::kInstruction, place.instruction);
  StackCopy stack = StackCopy::of(memory_, place.stack_pointer);
  NamedStack found = named(unwinder_.unwind(registers, stack));
  if (!found.is_whole) find_frame_pointer(registers, stack, found);
  return found;
}

// Code that keeps frame pointers (Ubuntu's and Fedora's libraries do) needs the one that is not known. It points to the
// caller's, with a return address above it: of the places on the stack that look so, the first from which the walk
// reaches the thread's first function is taken. A wrong one does not lead there.
void NativeReader::find_frame_pointer(Registers& registers, StackCopy& stack, NamedStack& found) {
  int attempts = 0;
  for (uint64_t at = stack.start; at < stack.start + kSearchedBytes && attempts < kMostAttempts; at += 8) {
    uint64_t caller = 0;
    uint64_t return_address = 0;
    if (!stack.read_word(at, caller) || !stack.read_word(at + 8, return_address)) return;
    const bool may_be_caller = caller == 0 || (caller > at && caller - at < kLargestFrame && caller % 8 == 0);
    if (!may_be_caller || !symbols_.has(return_address)) continue;
    ++attempts;
    registers.set(Registers::kFramePointer, at);
    NamedStack other = named(unwinder_.unwind(registers, stack));
    if (!other.is_whole) continue;
    found = std::move(other);
    return;
  }
}

NamedStack NativeReader::stack_of(const Registers& registers, StackCopy& stack) {
  return named(unwinder_.unwind(registers, stack));
}

NamedStack NativeReader::named(const NativeStack& walked) {
  NamedStack out;
  bool has_others = false;  // than the C library's
  bool is_at_start = false;
  for (const uint64_t address : walked.addresses) {
    const uint32_t id = function_at(address);
    const NativeFunction& function = functions_[id];
    const bool is_c_library = function.library.starts_with("libc.so");
    out.frames.push_back({.function = id,
                          .is_python = function.is_python,
                          .is_interpreter = function.is_interpreter,
                          .is_start = is_c_library || function.library == program_name_});
    has_others |= !is_c_library;
    is_at_start = is_c_library || function.name == "_start";
  }
  // A walk also ends, without an error, at a frame whose place is not known: threads begin in the C library or in
  // _start.
  out.is_whole = walked.is_whole && has_others && is_at_start;
  return out;
}

uint32_t NativeReader::function_at(uint64_t address) {
  const auto [known, is_new] = by_address_.try_emplace(address, 0);
  if (!is_new) return known->second;
  has_strange_ |= !symbols_.has(address);
  NativeFunction function = symbols_.function_at(address);
  const auto [found, is_new_name] =
      ids_.try_emplace({function.name, function.library}, static_cast<uint32_t>(functions_.size()));
  if (is_new_name) functions_.push_back(std::move(function));
  return known->second = found->second;
}

void NativeReader::refresh() {
  const auto now = std::chrono::steady_clock::now();
  if (!has_strange_ || now - refreshed_ < kRefreshEvery) return;
  has_strange_ = false;
  refreshed_ = now;
  std::vector<Mapping> mappings = mappings_of(process_.pid);
  if (mappings.empty() || is_same(mappings, process_.mappings)) return;
  process_.mappings = std::move(mappings);
  auto unwinder = Unwinder::open(process_);
  if (!unwinder.ok()) return;  // it ends
  unwinder_ = std::move(unwinder).value();
  symbols_ = Symbols(process_, python_image_);
  by_address_.clear();
}

}  // namespace firelane::live
