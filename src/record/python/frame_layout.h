// Python's running frames, read where they lie.
//
// From 3.11 on Python makes a frame object only on request, which takes longer than everything else that is done for
// a call, and needs the GIL. What is needed of a frame lies at the same place in all releases of a minor version, so it
// is read there. is_layout_known() compares what is read so with what Python's API says of the running stack.
//
// A thread's own frames do not change while it is in C: there they may be read without the GIL.
#pragma once

#include <Python.h>
#include <frameobject.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "record/python/call_site.h"

// Not in free-threaded builds, whose frames have one more field from 3.14 on, and whose code has a copy for each
// thread.
#if PY_VERSION_HEX >= 0x030A0000 && PY_VERSION_HEX < 0x030F0000 && !defined(Py_GIL_DISABLED)
#define FL_KNOWS_FRAMES 1
#else
#define FL_KNOWS_FRAMES 0
#endif

namespace firelane::python_hooks {

#if FL_KNOWS_FRAMES

#if PY_VERSION_HEX >= 0x030B0000
using Frame = struct _PyInterpreterFrame;  // of which only a pointer is known to others
#else
using Frame = PyFrameObject;
#endif

namespace layout {

template <typename T>
T field(const Frame* frame, size_t offset) noexcept {
  T value;
  std::memcpy(&value, reinterpret_cast<const char*>(frame) + offset, sizeof(value));
  return value;
}

#if PY_VERSION_HEX >= 0x030C0000
inline constexpr size_t kCode = 0;
inline constexpr size_t kPrevious = 8;
inline constexpr size_t kOwner = PY_VERSION_HEX >= 0x030E0000 ? 74 : 70;
inline constexpr uint8_t kOwnedByGenerator = 1;
inline constexpr uint8_t kOwnedByInterpreter = 3;  // and above
inline constexpr uintptr_t kTagBits = 7;  // of a reference in a frame, from 3.14 on; objects are aligned to more
#elif PY_VERSION_HEX >= 0x030B0000
inline constexpr size_t kCode = 32;
inline constexpr size_t kPrevious = 48;
inline constexpr uintptr_t kTagBits = 0;
#endif

#if PY_VERSION_HEX >= 0x030B0000
inline constexpr size_t kInstruction = 56;

inline PyCodeObject* code_of(const Frame* frame) noexcept {
  return reinterpret_cast<PyCodeObject*>(field<uintptr_t>(frame, kCode) & ~kTagBits);
}

// Frames of no function: between two calls of the evaluation loop; and from 3.13 on, between an __init__ and who called
// the class. That one never comes to its code's first instruction, by which Python's API knows what to pass over.
inline bool is_passed_over([[maybe_unused]] const Frame* frame) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  const auto owner = field<uint8_t>(frame, kOwner);
  if (owner >= kOwnedByInterpreter) return true;
#endif
#if PY_VERSION_HEX >= 0x030D0000
  const PyCodeObject* code = code_of(frame);
  constexpr ptrdiff_t kInstructionSize = 2;
  const char* first = code->co_code_adaptive + kInstructionSize * code->_co_firsttraceable;
  if (owner != kOwnedByGenerator && field<uintptr_t>(frame, kInstruction) < reinterpret_cast<uintptr_t>(first))
    return true;
#endif
  return false;
}

inline Frame* python_frame(Frame* frame) noexcept {
  while (frame != nullptr && is_passed_over(frame)) frame = field<Frame*>(frame, kPrevious);
  return frame;
}
#endif

}  // namespace layout

// Null: the thread runs no Python function.
inline Frame* running_frame(const PyThreadState* thread) noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return layout::python_frame(thread->current_frame);
#elif PY_VERSION_HEX >= 0x030B0000
  return layout::python_frame(thread->cframe->current_frame);
#else
  return thread->frame;
#endif
}

inline Frame* caller_of(const Frame* frame) noexcept {
#if PY_VERSION_HEX >= 0x030B0000
  return layout::python_frame(layout::field<Frame*>(frame, layout::kPrevious));
#else
  return frame->f_back;
#endif
}

inline PyCodeObject* code_of(const Frame* frame) noexcept {
#if PY_VERSION_HEX >= 0x030B0000
  return layout::code_of(frame);
#else
  return frame->f_code;
#endif
}

// Where the frame is in its code, as a number that says nothing else.
inline uintptr_t instruction_of(const Frame* frame) noexcept {
#if PY_VERSION_HEX >= 0x030B0000
  return layout::field<uintptr_t>(frame, layout::kInstruction);
#else
  return static_cast<uintptr_t>(frame->f_lasti);
#endif
}

inline CallSite site_in(Frame* frame) noexcept {
  if (frame == nullptr) return {};
#if PY_VERSION_HEX >= 0x030C0000
  return {.code = code_of(frame), .offset = PyUnstable_InterpreterFrame_GetLasti(frame)};
#elif PY_VERSION_HEX >= 0x030B0000
  PyCodeObject* code = code_of(frame);
  const auto offset =
      static_cast<intptr_t>(instruction_of(frame) - reinterpret_cast<uintptr_t>(code->co_code_adaptive));
  return {.code = code, .offset = offset < 0 ? -1 : static_cast<int>(offset)};
#else
  return {.code = frame->f_code, .offset = frame->f_lasti * 2};  // counted in instructions, of two bytes each
#endif
}

#endif

// Whether every frame of the running stack is where it is looked for. With the GIL.
bool is_layout_known() noexcept;

}  // namespace firelane::python_hooks
