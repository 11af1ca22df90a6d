#include "live/merged_stack.h"

#include <algorithm>

namespace firelane::live {

MergedStack merge(std::span<const Frame> python, std::span<const NativeFrame> native, bool is_whole) {
  MergedStack out;
  const auto native_frame = [](const NativeFrame& frame) { return Frame{.function = frame.function}; };
  if (python.empty()) {
    for (const NativeFrame& frame : native) out.frames.push_back(native_frame(frame));
    return out;
  }
  const auto loop_count = std::ranges::count_if(native, &NativeFrame::is_interpreter);
  const auto entry_count = std::ranges::count_if(python, &Frame::is_entry);
  out.fits = is_whole && loop_count == entry_count;
  size_t next = 0;  // of Python's
  bool is_innermost = true;
  for (const NativeFrame& frame : native) {
    if (frame.is_interpreter) {
      if (!out.fits) break;
      is_innermost = false;
      while (next < python.size()) {
        out.frames.push_back(python[next]);
        if (python[next++].is_entry) break;
      }
      continue;
    }
    const bool is_outside = next == python.size();
    if (is_innermost || (!frame.is_python && !(is_outside && frame.is_start)))
      out.frames.push_back(native_frame(frame));
  }
  out.frames.insert(out.frames.end(), python.begin() + static_cast<ptrdiff_t>(next), python.end());
  return out;
}

}  // namespace firelane::live
