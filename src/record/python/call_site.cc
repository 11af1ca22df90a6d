#include "record/python/call_site.h"

#include <frameobject.h>

#include "record/python/frame_layout.h"

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

#if PY_VERSION_HEX >= 0x030C0000 && FL_KNOWS_FRAMES
bool g_is_layout_known = false;  // guarded by the GIL
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

bool is_layout_known() noexcept {
#if FL_KNOWS_FRAMES
  Frame* frame = running_frame(PyThreadState_Get());
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
    if (is_known) frame = caller_of(frame);
  }
  Py_XDECREF(object);
  return is_known && frame == nullptr;
#else
  return false;
#endif
}

#if PY_VERSION_HEX >= 0x030C0000 && FL_KNOWS_FRAMES

void prepare_call_sites() noexcept { g_is_layout_known = is_layout_known(); }

CallSite site_of_caller(PyFrameObject* frame) noexcept {
  if (frame != nullptr || !g_is_layout_known) [[unlikely]]
    return caller_by_frame_objects(frame);
  const Frame* entered = running_frame(PyThreadState_Get());
  return entered == nullptr ? CallSite{} : site_in(caller_of(entered));
}

#else

void prepare_call_sites() noexcept {}

CallSite site_of_caller(PyFrameObject* frame) noexcept { return caller_by_frame_objects(frame); }

#endif

}  // namespace firelane::python_hooks
