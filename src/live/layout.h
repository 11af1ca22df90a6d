// Where CPython keeps what a stack is made of: offsets in bytes, one set for each version.
//
// They are internal to Python and fixed from a version's first release on. Each set was printed by a program that was
// compiled with the headers of that version (offsetof, x86-64 and aarch64 alike), and tests/python/test_sample.py
// compares what is read with what each installed Python says of itself.
#pragma once

#include <cstdint>
#include <optional>

#include "live/python.h"

namespace firelane::live {

struct Layout {
  // _PyRuntimeState
  uint32_t main_interpreter;
  // PyInterpreterState
  uint32_t first_thread;
  // PyThreadState
  uint32_t thread_bytes;  // how much of it is read
  uint32_t next_thread;
  uint32_t pthread;    // pthread_self()
  uint32_t native_id;  // the system's thread id; 0: not there
  uint32_t frame;      // the innermost frame, or the _PyCFrame that has it
  bool has_cframe;
  uint32_t cframe_frame;  // in a _PyCFrame
  // a frame: _PyInterpreterFrame, before 3.11 PyFrameObject
  uint32_t frame_bytes;
  uint32_t code;
  uint32_t previous;
  uint32_t instruction;  // a pointer into the code; before 3.11 an index
  bool is_index;
  uint32_t is_entry;   // whether it is the outermost of a call of the evaluation loop (3.11); 0: not there
  uint32_t owner;      // 0: not there
  uint8_t owned_by_c;  // and above: of frames that are no Python function's
  // PyCodeObject
  uint32_t code_bytes;
  uint32_t flags;
  uint32_t file_name;
  uint32_t name;
  uint32_t first_line;
  uint32_t line_table;
  uint32_t instructions;
  bool has_location_table;  // PEP 657's; else PEP 626's
  // PyASCIIObject and PyCompactUnicodeObject
  uint32_t ascii_bytes;
  uint32_t compact_bytes;
  // The GIL: in _PyRuntimeState, from 3.12 on in what PyInterpreterState points to
  uint32_t gil;
  bool gil_is_pointer;
  uint32_t gil_holder;  // from its beginning; whether it is held follows 8 bytes later
};

// Common to all of them.
inline constexpr uint32_t kObjectType = 8;
inline constexpr uint32_t kBytesSize = 16;
inline constexpr uint32_t kBytesData = 32;
inline constexpr uint32_t kTextLength = 16;
inline constexpr uint32_t kTextState = 32;
inline constexpr uint64_t kTagBits = 7;  // of a reference to an object in a frame (3.14); objects are aligned to more

// Null for a version that is not known, and for free-threaded builds.
const Layout* layout_of(const PythonVersion& version);

}  // namespace firelane::live
