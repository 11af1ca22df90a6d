#include "record/python/call_lines.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "base/clock.h"
#include "base/hash.h"
#include "record/python/fixed_text.h"
#include "record/python/frame_layout.h"
#include "record/python/source_paths.h"

namespace firelane::python_hooks {

#if FL_KNOWS_FRAMES
namespace {

constexpr int kMostFrames = 64;    // that are looked at
constexpr int kMostToCaller = 12;  // of them, beyond the first one of the program
constexpr size_t kPathSize = 512;

// The nearest frame of an installed package, if it comes before the program's; the program's nearest, and its caller in
// the program.
struct Found {
  std::array<Frame*, 3> frames{};
  size_t count = 0;
};

constinit thread_local Found t_found __attribute__((tls_model("initial-exec")));

// Text of a Python string, which never changes. Python's own functions would keep a copy with the string, for which
// they need the GIL.
void append_text(FixedText& out, PyObject* text) noexcept {
  if (text == nullptr || !PyUnicode_Check(text)) {
    out << "?";
    return;
  }
  const auto length = static_cast<size_t>(PyUnicode_GET_LENGTH(text));
  if (PyUnicode_IS_COMPACT_ASCII(text)) {
    out << std::string_view(static_cast<const char*>(PyUnicode_DATA(text)), length);
    return;
  }
  const auto kind = PyUnicode_KIND(text);
  const void* data = PyUnicode_DATA(text);
  for (size_t i = 0; i < length; ++i) {
    const Py_UCS4 c = PyUnicode_READ(kind, data, static_cast<Py_ssize_t>(i));
    const auto tail = [&](unsigned shift) { return static_cast<char>(0x80 | (c >> shift & 0x3F)); };
    std::array<char, 4> bytes{};
    size_t size = 0;
    if (c < 0x80) {
      bytes = {static_cast<char>(c)};
      size = 1;
    } else if (c < 0x800) {
      bytes = {static_cast<char>(0xC0 | c >> 6), tail(0)};
      size = 2;
    } else if (c >= 0xD800 && c < 0xE000) {  // a byte of a path that is no UTF-8
      bytes = {'?'};
      size = 1;
    } else if (c < 0x10000) {
      bytes = {static_cast<char>(0xE0 | c >> 12), tail(6), tail(0)};
      size = 3;
    } else {
      bytes = {static_cast<char>(0xF0 | c >> 18), tail(12), tail(6), tail(0)};
      size = 4;
    }
    out << std::string_view(bytes.data(), size);
  }
}

// Whose code it is. That two keys are the same by chance is as likely as two equal random numbers of 62 bits.
constexpr size_t kKnownCodes = 4096;
std::array<std::atomic<uint64_t>, kKnownCodes> g_code_owners{};

// Code may go away and leave its address to other code. From 3.12 on code objects are numbered; before, the line of its
// begin and the file's name tell it apart.
uint64_t key_of(const PyCodeObject* code) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  const uint64_t number = code->co_version;
#else
  const auto number = static_cast<uint64_t>(code->co_firstlineno);
#endif
  return mix_hash(reinterpret_cast<uintptr_t>(code) ^ number << 48 ^ number,
                  reinterpret_cast<uintptr_t>(code->co_filename));
}

#if PY_VERSION_HEX < 0x030C0000
// Of the begin, the end and the size: enough to tell what was compiled from other lines.
uint64_t hash_of_table(const char* table, size_t size) noexcept {
  std::array<uint64_t, 3> words{};
  if (size < sizeof(words)) return hash_text({table, size});
  std::memcpy(words.data(), table, 2 * sizeof(uint64_t));
  std::memcpy(&words[2], table + size - sizeof(uint64_t), sizeof(uint64_t));
  return mix_hash(words[0] ^ size, words[1] ^ std::rotl(words[2], 32));
}
#endif

// For the few that are told, also by what stands in the name, whose address may have been another file's, and in the
// table of lines: code may be compiled again under the same name.
uint64_t exact_key_of([[maybe_unused]] const PyCodeObject* code, uint64_t key) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  return key;
#else
  PyObject* name = code->co_filename;
  constexpr Py_ssize_t kTail = 24;
  const Py_ssize_t size = PyUnicode_GET_LENGTH(name) * static_cast<Py_ssize_t>(PyUnicode_KIND(name));
  const char* end = static_cast<const char*>(PyUnicode_DATA(name)) + size;
  const Py_ssize_t tail = std::min(size, kTail);
  PyObject* table = code->co_linetable;
  return mix_hash(key ^ static_cast<uint64_t>(size) ^ hash_text({end - tail, static_cast<size_t>(tail)}),
                  hash_of_table(PyBytes_AS_STRING(table), static_cast<size_t>(PyBytes_GET_SIZE(table))));
#endif
}

[[gnu::noinline]] SourceOwner look_up_owner(const PyCodeObject* code) noexcept {
  std::array<char, kPathSize> place;
  FixedText path(place);
  append_text(path, code->co_filename);
  const SourcePaths* paths = SourcePaths::current();
  return paths == nullptr ? SourceOwner::kProgram : paths->owner_of(path.view());
}

SourceOwner owner_of(const PyCodeObject* code, uint64_t key) noexcept {
  std::atomic<uint64_t>& known = g_code_owners[key >> 32 & (kKnownCodes - 1)];
  const uint64_t entry = known.load(std::memory_order_relaxed);
  if ((entry & ~uint64_t{3}) == (key & ~uint64_t{3}) && entry != 0) [[likely]]
    return static_cast<SourceOwner>(entry & 3);
  const SourceOwner owner = look_up_owner(code);
  known.store((key & ~uint64_t{3}) | static_cast<uint64_t>(owner), std::memory_order_relaxed);
  return owner;
}

uint64_t find_line(uint64_t& position) noexcept {
  const PyThreadState* thread = PyGILState_GetThisThreadState();
  Frame* frame = thread == nullptr ? nullptr : running_frame(thread);
  if (frame == nullptr) {
    position = 0;
    return 0;
  }
  const uint64_t around = position;
  position = mix_hash(reinterpret_cast<uintptr_t>(frame), instruction_of(frame));
  if (position == around) return 0;
  Found found;
  uint64_t line = 0;
  bool in_program = false;
  for (int left = kMostFrames; left > 0 && frame != nullptr; --left, frame = caller_of(frame)) {
    const PyCodeObject* code = code_of(frame);
    const uint64_t key = key_of(code);
    const SourceOwner owner = owner_of(code, key);
    if (owner == SourceOwner::kInternal || (owner == SourceOwner::kLibrary && found.count > 0)) continue;
    found.frames[found.count++] = frame;
    line = mix_hash(line ^ exact_key_of(code, key), instruction_of(frame));
    if (owner == SourceOwner::kLibrary) continue;
    if (in_program) break;
    in_program = true;
    left = std::min(left, kMostToCaller);
  }
  t_found = found;
  return line;
}

// Files of packages keep the folder that tells them from the program's: "site-packages/einops/einops.py".
std::string_view shown_path(const SourcePaths& paths, std::string_view path) noexcept {
  if (paths.owner_of(path) != SourceOwner::kLibrary) return paths.shortened(path);
  const size_t packages = path.rfind("-packages/");
  return packages == std::string_view::npos ? path : path.substr(path.rfind('/', packages) + 1);
}

// Not by PyCode_Addr2Line, which also reads what a debugger in another thread has added to the code.
int line_at(const CallSite& site) noexcept {
  int line = site.code->co_firstlineno;
  if (site.offset < 0) return line;
#if PY_VERSION_HEX >= 0x030B0000
  int column = 0, end_line = 0, end_column = 0;
  PyCode_Addr2Location(site.code, site.offset, &line, &column, &end_line, &end_column);
#else
  line = PyCode_Addr2Line(site.code, site.offset);
#endif
  return line > 0 ? line : site.code->co_firstlineno;
}

void append_line(FixedText& out, Frame* frame) noexcept {
  const CallSite site = site_in(frame);
  std::array<char, kPathSize> place;
  FixedText path(place);
  append_text(path, site.code->co_filename);
  const SourcePaths* paths = SourcePaths::current();
  out << (paths == nullptr ? path.view() : shown_path(*paths, path.view())) << "(" << line_at(site) << "): ";
#if PY_VERSION_HEX >= 0x030B0000
  append_text(out, site.code->co_qualname);  // "Attention.forward"
#else
  append_text(out, site.code->co_name);
#endif
}

size_t describe_line(char* text, size_t size) noexcept {
  FixedText out({text, size});
  for (size_t i = 0; i < t_found.count; ++i) {
    if (i > 0) out << ";";
    append_line(out, t_found.frames[i]);
  }
  return out.size();
}

}  // namespace

record::CallLines call_lines() noexcept {
  if (!is_layout_known()) return {};
  SourcePaths::refresh();
  for (std::atomic<uint64_t>& known : g_code_owners) known.store(0, std::memory_order_relaxed);
  return {.find = find_line, .describe = describe_line};
}

double measure_line_cost() noexcept {
  constexpr int kCalls = 512;
  constexpr int kRounds = 5;
  double best = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    const uint64_t start = now_ticks();
    for (int call = 0; call < kCalls; ++call) {
      uint64_t position = 0;
      find_line(position);
    }
    best = std::min(best, static_cast<double>(now_ticks() - start) * 1e9 / ticks_per_second() / kCalls);
  }
  return best;
}

#else

record::CallLines call_lines() noexcept { return {}; }
double measure_line_cost() noexcept { return 0; }

#endif

}  // namespace firelane::python_hooks
