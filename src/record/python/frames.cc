#include "record/python/frames.h"

#include <frameobject.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <unordered_set>

#include "record/core/thread_buffer.h"
#include "record/python/fixed_text.h"
#include "record/python/module_frames.h"
#include "record/python/source_paths.h"

namespace firelane::python_hooks {
namespace {

enum class Kind : uint8_t { kPython, kC, kGc };

// The lines of calls that were made before: a line table has to be read from its begin.
class KnownLines {
 public:
  // 0: not known. REQUIRES: the code lives until clear().
  int64_t line_of(CallSite site) noexcept {
    if (site.code == nullptr || site.offset < 0) return 0;
    const auto address = reinterpret_cast<uintptr_t>(site.code);
    Known& known = known_[mix_hash(address, static_cast<uint64_t>(site.offset)) % known_.size()];
    if (known.code != site.code || known.offset != site.offset)
      known = {.code = site.code, .offset = site.offset, .line = PyCode_Addr2Line(site.code, site.offset)};
    return known.line;
  }
  void clear() noexcept { known_.fill({}); }

 private:
  struct Known {
    const PyCodeObject* code = nullptr;
    int offset = 0;
    int line = 0;
  };
  std::array<Known, 1024> known_{};
};

// What this thread has opened and not closed. Beyond the array's depth, kinds are unknown and only counted.
struct OpenFrames {
  uint64_t run = 0;
  size_t depth = 0;
  std::array<Kind, 2048> kinds{};
  KnownLines lines;

  bool is_top(Kind kind) const noexcept { return depth > 0 && (depth > kinds.size() || kinds[depth - 1] == kind); }
};

constexpr size_t kNameSize = 1024;
constexpr size_t kMaxOldFrames = 512;  // frames that were open before tracing began
constexpr uint64_t kFunctionKey = uint64_t{1} << 60;
constexpr uint64_t kModuleFrameKey = uint64_t{5} << 60;  // apart from those of module_hook.cc and from addresses

// Guarded by the GIL.
uint64_t g_frames_run = 0;
bool g_is_on = false;
std::unordered_set<PyObject*>* g_kept = nullptr;

constinit thread_local OpenFrames* t_frames __attribute__((tls_model("initial-exec"))) = nullptr;

OpenFrames* new_frames() noexcept {
  thread_local std::unique_ptr<OpenFrames> owner;
  try {
    owner = std::make_unique<OpenFrames>();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  t_frames = owner.get();
  return t_frames;
}

std::string_view utf8(PyObject* text) noexcept {
  Py_ssize_t size = 0;
  const char* bytes = text != nullptr && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
  if (bytes == nullptr) {
    PyErr_Clear();
    return "?";
  }
  return {bytes, static_cast<size_t>(size)};
}

// Keys must not change their meaning while they are in use.
bool keep(PyObject* object) noexcept {
  try {
    if (g_kept->insert(object).second) Py_INCREF(object);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

[[gnu::noinline]] record::TextSlot define_code(record::ThreadBuffer* b, PyCodeObject* code) noexcept {
  if (!keep(reinterpret_cast<PyObject*>(code))) return record::kNoSlot;
  std::array<char, kNameSize> place;
  FixedText name(place);
  name << SourcePaths::current()->shortened(utf8(code->co_filename)) << "(" << code->co_firstlineno
       << "): " << utf8(code->co_name);
  return b->define_key(reinterpret_cast<uintptr_t>(code), name.view());
}

record::TextSlot slot_of(record::ThreadBuffer* b, PyCodeObject* code) noexcept {
  const record::TextSlot slot = b->find(reinterpret_cast<uintptr_t>(code));
  return slot != record::kNoSlot ? slot : define_code(b, code);
}

record::TextSlot slot_of_module(record::ThreadBuffer* b, const ModuleFrame& module) noexcept {
  const record::TextSlot slot = b->find(kModuleFrameKey | module.id);
  return slot != record::kNoSlot ? slot : b->define_key(kModuleFrameKey | module.id, module.name);
}

void begin_frame(PyCodeObject* code, const ModuleFrame* module, int64_t call_line) noexcept {
  if (record::ThreadBuffer* b = record::recording_thread_for_begin()) {
    const record::TextSlot name = module != nullptr ? slot_of_module(b, *module) : slot_of(b, code);
    b->begin(now_ticks(), name, format::Scope::kPythonFunction);
    if (call_line > 0) b->attribute(format::Attribute::kCallLine, call_line);
  }
}

// A C function is known by its definition and by the type it is called on: "<built-in method add_ of Tensor object>".
[[gnu::noinline]] record::TextSlot define_function(record::ThreadBuffer* b, uint64_t key, const char* method,
                                                   PyTypeObject* type, PyObject* module) noexcept {
  if (type != nullptr && !keep(reinterpret_cast<PyObject*>(type))) return record::kNoSlot;
  std::array<char, kNameSize> place;
  FixedText name(place);
  if (type != nullptr) {
    std::string_view type_name = type->tp_name;
    name << "<built-in method " << method << " of " << type_name.substr(type_name.rfind('.') + 1) << " object>";
  } else if (module != nullptr && PyUnicode_Check(module) && utf8(module) != "builtins") {
    name << "<built-in function " << utf8(module) << "." << method << ">";
  } else {
    name << "<built-in function " << method << ">";
  }
  return b->define_key(key, name.view());
}

record::TextSlot slot_of_function(record::ThreadBuffer* b, PyObject* function, PyObject* first_argument) noexcept {
  const char* method = nullptr;
  const void* definition = nullptr;
  PyTypeObject* type = nullptr;
  PyObject* module = nullptr;
  if (PyCFunction_Check(function)) {
    const auto* f = reinterpret_cast<PyCFunctionObject*>(function);
    definition = f->m_ml;
    method = f->m_ml->ml_name;
    module = f->m_module;
    if (f->m_self != nullptr && !PyModule_Check(f->m_self)) type = Py_TYPE(f->m_self);
  } else {
    const auto* f = reinterpret_cast<PyMethodDescrObject*>(function);
    definition = f->d_method;
    method = f->d_method->ml_name;
    type = first_argument != nullptr ? Py_TYPE(first_argument) : f->d_common.d_type;
  }
  const uint64_t key =
      (mix_hash(reinterpret_cast<uintptr_t>(definition), reinterpret_cast<uintptr_t>(type)) & (kFunctionKey - 1)) |
      kFunctionKey;
  const record::TextSlot slot = b->find(key);
  return slot != record::kNoSlot ? slot : define_function(b, key, method, type, module);
}

void open(OpenFrames& frames, Kind kind) noexcept {
  if (frames.depth < frames.kinds.size()) frames.kinds[frames.depth] = kind;
  ++frames.depth;
}

void close(OpenFrames& frames) noexcept {
  --frames.depth;
  if (record::ThreadBuffer* b = record::recording_thread_for_end()) b->end(now_ticks(), format::ScopeGroup::kPython);
}

// The thread's first event: the frames from `frame` outwards are open already. `frame` is borrowed or null.
[[gnu::noinline]] void write_open_frames(OpenFrames& frames, PyFrameObject* frame, bool with_innermost) noexcept {
  std::array<PyCodeObject*, kMaxOldFrames> codes;
  std::array<const ModuleFrame*, kMaxOldFrames> modules;
  std::array<int64_t, kMaxOldFrames> lines;  // that run now
  size_t count = 0;
  Py_XINCREF(frame);
  if (frame == nullptr) frame = PyThreadState_GetFrame(PyThreadState_Get());
  bool skip = !with_innermost;
  while (frame != nullptr && count < codes.size()) {
    if (!skip) {
      codes[count] = PyFrame_GetCode(frame);
      modules[count] = is_module_call(codes[count]) ? module_of_frame(frame) : nullptr;
      lines[count] = frames.lines.line_of(site_of(frame));
      ++count;
    }
    skip = false;
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  int64_t call_line = 0;
  while (count > 0) {
    PyCodeObject* code = codes[--count];
    begin_frame(code, modules[count], call_line);
    call_line = lines[count];
    open(frames, Kind::kPython);
    Py_DECREF(code);
  }
}

// This thread's stack, brought up to the current run; null when nothing is recorded.
inline OpenFrames* current(PyFrameObject* frame, bool with_innermost) noexcept {
  OpenFrames* frames = t_frames;
  if (frames != nullptr && frames->run == g_frames_run) [[likely]]
    return frames;
  if (!g_is_on || !record::is_recording()) return nullptr;
  if (frames == nullptr) frames = new_frames();
  if (frames == nullptr) return nullptr;
  frames->run = g_frames_run;
  frames->depth = 0;
  frames->lines.clear();
  write_open_frames(*frames, frame, with_innermost);
  return frames;
}

}  // namespace

void begin_frames_run() {
  ++g_frames_run;
  if (g_kept == nullptr) g_kept = new std::unordered_set<PyObject*>();
  SourcePaths::refresh();
  begin_module_frames();
  prepare_call_sites();
  g_is_on = true;
}

void end_frames_run() {
  g_is_on = false;
  ++g_frames_run;
  end_module_frames();
  if (g_kept == nullptr) return;
  // Dropping the last reference may run Python code, which must not find a set in the middle of a change.
  std::unordered_set<PyObject*> kept;
  kept.swap(*g_kept);
  for (PyObject* object : kept) Py_DECREF(object);
}

void enter_python(PyCodeObject* code, PyFrameObject* frame) noexcept {
  OpenFrames* frames = current(frame, /*with_innermost=*/false);
  if (frames == nullptr) return;
  if (is_optimizer_step(code) && record::is_recording()) [[unlikely]]
    note_optimizer(frame);
  const int64_t call_line = frames->lines.line_of(site_of_caller(frame));
  begin_frame(code, is_module_call(code) ? module_of_frame(frame) : nullptr, call_line);
  open(*frames, Kind::kPython);
}

void leave_python(PyFrameObject* frame) noexcept {
  OpenFrames* frames = current(frame, /*with_innermost=*/true);
  if (frames == nullptr) return;
  while (frames->is_top(Kind::kC) && frames->depth <= frames->kinds.size()) close(*frames);
  if (frames->depth > 0) close(*frames);
}

void enter_c(PyObject* function, PyObject* first_argument, PyFrameObject* frame, CallSite site) noexcept {
  OpenFrames* frames = current(frame, /*with_innermost=*/true);
  if (frames == nullptr) return;
  if (record::ThreadBuffer* b = record::recording_thread_for_begin()) {
    const record::TextSlot name = slot_of_function(b, function, first_argument);
    b->begin(now_ticks(), name, format::Scope::kPythonBuiltin);
    if (const int64_t line = frames->lines.line_of(site); line > 0) b->attribute(format::Attribute::kCallLine, line);
  }
  open(*frames, Kind::kC);
}

void leave_c() noexcept {
  OpenFrames* frames = t_frames;
  if (frames != nullptr && frames->run == g_frames_run && frames->is_top(Kind::kC)) close(*frames);
}

void enter_gc(int generation) noexcept {
  OpenFrames* frames = current(nullptr, /*with_innermost=*/true);
  if (frames == nullptr) return;
  static constexpr std::array kNames = {"gc: generation 0", "gc: generation 1", "gc: generation 2"};
  if (record::ThreadBuffer* b = record::recording_thread_for_begin()) {
    const record::TextSlot name = b->stable_name(kNames[static_cast<size_t>(std::clamp(generation, 0, 2))]);
    b->begin(now_ticks(), name, format::Scope::kPythonGc);
  }
  open(*frames, Kind::kGc);
}

void leave_gc() noexcept {
  OpenFrames* frames = t_frames;
  if (frames != nullptr && frames->run == g_frames_run && frames->is_top(Kind::kGc)) close(*frames);
}

}  // namespace firelane::python_hooks
