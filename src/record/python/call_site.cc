#include "record/python/call_site.h"

#include <frameobject.h>

#include <cstdint>
#include <cstring>

namespace firelane::python_hooks {

namespace {

// The API's way.
CallSite caller_by_frame_objects(PyFrameObject* frame) noexcept {
  if (frame == nullptr) frame = PyEval_GetFrame();  // borrowed
  PyFrameObject* caller = frame != nullptr ? PyFrame_GetBack(frame) : nullptr;
  if (caller == nullptr) return {};
  const CallSite site = site_of(caller);
  Py_DECREF(caller);  // its code stays: the frame itself runs
  return site;
}

#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030F0000

// _PyInterpreterFrame, of which only a pointer is known to others.
constexpr size_t kCode = 0;
constexpr size_t kPrevious = 8;
constexpr size_t kOwner = PY_VERSION_HEX >= 0x030E0000 ? 74 : 70;
constexpr uint8_t kOwnedByInterpreter = 3;  // and above: between two calls of the evaluation loop, no Python function's
constexpr uintptr_t kTagBits = 7;           // of a reference in a frame, from 3.14 on; objects are aligned to more

using Frame = struct _PyInterpreterFrame;

bool g_is_layout_known = false;  // guarded by the GIL

template <typename T>
T field(const Frame* frame, size_t offset) noexcept {
  T value;
  std::memcpy(&value, reinterpret_cast<const char*>(frame) + offset, sizeof(value));
  return value;
}

Frame* python_frame(Frame* frame) noexcept {
  while (frame != nullptr && field<uint8_t>(frame, kOwner) >= kOwnedByInterpreter)
    frame = field<Frame*>(frame, kPrevious);
  return frame;
}

Frame* current_frame() noexcept {
  const PyThreadState* thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030D0000
  return python_frame(thread->current_frame);
#else
  return python_frame(thread->cframe->current_frame);
#endif
}

CallSite site_in(Frame* frame) noexcept {
  if (frame == nullptr) return {};
  auto* code = reinterpret_cast<PyCodeObject*>(field<uintptr_t>(frame, kCode) & ~kTagBits);
  return {.code = code, .offset = PyUnstable_InterpreterFrame_GetLasti(frame)};
}

// Whether every frame of the running stack is where it was looked for.
bool is_layout_known() noexcept {
  Frame* frame = current_frame();
  PyFrameObject* object = PyEval_GetFrame();
  Py_XINCREF(object);
  bool is_known = true;
  while (is_known && object != nullptr) {
    const CallSite expected = site_of(object);
    const CallSite found = site_in(frame);
    is_known = found.code == expected.code && found.offset == expected.offset;
    PyFrameObject* back = PyFrame_GetBack(object);
    Py_DECREF(object);
    object = back;
    if (is_known) frame = python_frame(field<Frame*>(frame, kPrevious));
  }
  Py_XDECREF(object);
  return is_known && frame == nullptr;
}

#endif

}  // namespace

CallSite site_of(PyFrameObject* frame) noexcept {
  PyCodeObject* code = PyFrame_GetCode(frame);
  Py_DECREF(code);  // the frame has it
#if PY_VERSION_HEX >= 0x030B0000
  return {.code = code, .offset = PyFrame_GetLasti(frame)};
#else
  return {.code = code, .offset = frame->f_lasti * 2};  // counted in instructions, of two bytes each
#endif
}

#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030F0000

void prepare_call_sites() noexcept { g_is_layout_known = is_layout_known(); }

CallSite site_of_caller(PyFrameObject* frame) noexcept {
  if (frame != nullptr || !g_is_layout_known) [[unlikely]]
    return caller_by_frame_objects(frame);
  const Frame* entered = current_frame();
  return entered == nullptr ? CallSite{} : site_in(python_frame(field<Frame*>(entered, kPrevious)));
}

#else

void prepare_call_sites() noexcept {}

CallSite site_of_caller(PyFrameObject* frame) noexcept { return caller_by_frame_objects(frame); }

#endif

}  // namespace firelane::python_hooks
