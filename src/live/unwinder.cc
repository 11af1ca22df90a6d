#include "live/unwinder.h"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

namespace firelane::live {

namespace {

constexpr size_t kMostNativeFrames = 512;
constexpr size_t kFirstPiece = 16 << 10;
constexpr size_t kLongestStack = 1 << 20;

// elfutils' libdwfl, as far as it is used here: its types are opaque, and the layouts below are part of its stable
// binary interface (ELFUTILS_0.158).
namespace dw {

struct Session;
struct Module;
struct Thread;
struct Frame;

struct Callbacks {
  int (*find_elf)(Module*, void**, const char*, uint64_t, char**, void**);
  int (*find_debuginfo)(Module*, void**, const char*, uint64_t, const char*, const char*, uint32_t, char**);
  int (*section_address)(Module*, void**, const char*, uint64_t, const char*, uint32_t, const void*, uint64_t*);
  char** debuginfo_path;
};

struct ThreadCallbacks {
  pid_t (*next_thread)(Session*, void*, void**);
  bool (*get_thread)(Session*, pid_t, void*, void**);
  bool (*memory_read)(Session*, uint64_t, uint64_t*, void*);
  bool (*set_initial_registers)(Thread*, void*);
  void (*detach)(Session*, void*);
  void (*thread_detach)(Thread*, void*);
};

struct Libdw {
  Session* (*begin)(const Callbacks*) = nullptr;
  void (*end)(Session*) = nullptr;
  void (*report_begin)(Session*) = nullptr;
  Module* (*report_elf)(Session*, const char*, const char*, int, uint64_t, bool) = nullptr;
  int (*report_end)(Session*, void*, void*) = nullptr;
  bool (*attach_state)(Session*, void*, pid_t, const ThreadCallbacks*, void*) = nullptr;
  int (*getthread_frames)(Session*, pid_t, int (*)(Frame*, void*), void*) = nullptr;
  bool (*thread_state_registers)(Thread*, int, unsigned, const uint64_t*) = nullptr;
  void (*thread_state_register_pc)(Thread*, uint64_t) = nullptr;
  bool (*frame_pc)(Frame*, uint64_t*, bool*) = nullptr;
};

}  // namespace dw

template <typename Function>
bool find_in(void* library, const char* name, Function& out) {
  void* found = ::dlsym(library, name);
  std::memcpy(&out, &found, sizeof(out));
  return found != nullptr;
}

// Whether there is no dynamic loader: such a program cannot load libraries of a C library that may be another.
bool is_static() { return ::getauxval(AT_BASE) == 0; }

// Null where it is not installed, or lacks something. Loaded once, and kept.
const dw::Libdw* libdw() {
  static const dw::Libdw* const loaded = []() -> const dw::Libdw* {
    void* library = is_static() ? nullptr : ::dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    static dw::Libdw out;
    const bool has_all = find_in(library, "dwfl_begin", out.begin) && find_in(library, "dwfl_end", out.end) &&
                         find_in(library, "dwfl_report_begin", out.report_begin) &&
                         find_in(library, "dwfl_report_elf", out.report_elf) &&
                         find_in(library, "dwfl_report_end", out.report_end) &&
                         find_in(library, "dwfl_attach_state", out.attach_state) &&
                         find_in(library, "dwfl_getthread_frames", out.getthread_frames) &&
                         find_in(library, "dwfl_thread_state_registers", out.thread_state_registers) &&
                         find_in(library, "dwfl_thread_state_register_pc", out.thread_state_register_pc) &&
                         find_in(library, "dwfl_frame_pc", out.frame_pc);
    return has_all ? &out : nullptr;
  }();
  return loaded;
}

// Files are given by path. Separate files of debug information are not looked for: that may ask servers of the network.
constexpr dw::Callbacks kNoFiles = {
    .find_elf = [](dw::Module*, void**, const char*, uint64_t, char**, void**) { return -1; },
    .find_debuginfo = [](dw::Module*, void**, const char*, uint64_t, const char*, const char*, uint32_t,
                         char**) { return -1; },
    .section_address = [](dw::Module*, void**, const char*, uint64_t, const char*, uint32_t, const void*,
                          uint64_t*) { return -1; },
    .debuginfo_path = nullptr};

}  // namespace

bool load_libdw() { return libdw() != nullptr; }

StackCopy StackCopy::of(const Memory& memory, uint64_t start) {
  StackCopy out{.start = start, .more = &memory};
  out.bytes.resize(kFirstPiece);
  out.bytes.resize(memory.read_some(start, out.bytes.data(), out.bytes.size()));
  if (out.bytes.size() < kFirstPiece) out.more = nullptr;  // its end
  return out;
}

bool StackCopy::read_word(uint64_t address, uint64_t& out) {
  const uint64_t at = address - start;  // of one below it, a very large one
  if (at > kLongestStack) return false;
  while (more != nullptr && at + sizeof(out) > bytes.size()) {
    const size_t before = bytes.size();
    bytes.resize(2 * before);
    const size_t got = more->read_some(start + before, bytes.data() + before, before);
    bytes.resize(before + got);
    if (got < before) more = nullptr;
  }
  if (at + sizeof(out) > bytes.size()) return false;
  std::memcpy(&out, bytes.data() + at, sizeof(out));
  return true;
}

struct Unwinder::State {
  const dw::Libdw* api = nullptr;
  dw::Session* session = nullptr;
  pid_t pid = 0;
  // For the walk in progress.
  const Registers* registers = nullptr;
  StackCopy* stack = nullptr;
  NativeStack* out = nullptr;

  ~State() {
    if (session != nullptr) api->end(session);
  }

  static int add_frame(dw::Frame* frame, void* argument) {
    auto* state = static_cast<State*>(argument);
    uint64_t address = 0;
    bool is_activation = false;
    if (!state->api->frame_pc(frame, &address, &is_activation)) return 1;
    if (address == 0 || state->out->addresses.size() == kMostNativeFrames) return 1;
    state->out->addresses.push_back(address - (is_activation ? 0 : 1));
    return 0;
  }

  static bool set_registers(dw::Thread* thread, void* argument) {
    const auto* state = static_cast<State*>(argument);
    const Registers& registers = *state->registers;
    for (size_t i = 0; i < Registers::kCount; ++i) {
      if (registers.knows(i) &&
          !state->api->thread_state_registers(thread, static_cast<int>(i), 1, &registers.values[i]))
        return false;
    }
    state->api->thread_state_register_pc(thread, registers.values[Registers::kInstruction]);
    return true;
  }

  static const dw::ThreadCallbacks* thread_callbacks() {
    static constexpr dw::ThreadCallbacks kCallbacks = {
        .next_thread = [](dw::Session*, void*, void**) -> pid_t { return 0; },
        .get_thread =
            [](dw::Session*, pid_t, void* state, void** argument) {
              *argument = state;
              return true;
            },
        .memory_read = [](dw::Session*, uint64_t address, uint64_t* out,
                          void* state) { return static_cast<State*>(state)->stack->read_word(address, *out); },
        .set_initial_registers = set_registers,
        .detach = nullptr,
        .thread_detach = nullptr};
    return &kCallbacks;
  }
};

Unwinder::Unwinder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Unwinder::Unwinder(Unwinder&&) noexcept = default;
Unwinder& Unwinder::operator=(Unwinder&&) noexcept = default;
Unwinder::~Unwinder() = default;

Result<Unwinder> Unwinder::open(const Process& process) {
#if !defined(__x86_64__)
  (void)process;
  return Error{"native frames are read on x86-64 only"};
#else
  auto state = std::make_unique<State>();
  state->api = libdw();
  if (state->api == nullptr) {
    return Error{is_static() ? "native frames: this firelane is linked statically and cannot load libdw; use the one "
                               "of the Python package"
                             : "native frames need elfutils' libdw (apt install libdw1)"};
  }
  state->pid = process.pid;
  state->session = state->api->begin(&kNoFiles);
  if (state->session == nullptr) return Error{"libdw does not start"};
  state->api->report_begin(state->session);
  std::unordered_set<std::string_view> with_code;
  for (const Mapping& mapping : process.mappings) {
    if (mapping.is_code) with_code.insert(mapping.path);
  }
  std::string_view last;
  for (const Mapping& mapping : process.mappings) {
    if (mapping.file_offset != 0 || mapping.path == last) continue;
    last = mapping.path;
    if (!with_code.contains(mapping.path)) continue;
    const std::string path = process.readable_path(mapping.path);
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) continue;  // libdw would wait for who writes to a pipe
    state->api->report_elf(state->session, mapping.path.c_str(), path.c_str(), -1, mapping.start, false);
  }
  state->api->report_end(state->session, nullptr, nullptr);
  if (!state->api->attach_state(state->session, nullptr, process.pid, State::thread_callbacks(), state.get()))
    return Error{std::to_string(process.pid) + ": its libraries cannot be read for native frames"};
  return Unwinder(std::move(state));
#endif
}

NativeStack Unwinder::unwind(const Registers& registers, StackCopy& stack) {
  NativeStack out;
  state_->registers = &registers;
  state_->stack = &stack;
  state_->out = &out;
  const int ended = state_->api->getthread_frames(state_->session, state_->pid, State::add_frame, state_.get());
  out.is_whole = ended == 0 && !out.addresses.empty();
  return out;
}

}  // namespace firelane::live
