// Which steps times are taken from, if a recording has light and full ones.
#pragma once

#include <string>

#include "traces/studied_trace.h"

namespace firelane::advise {

// The light steps, unless there are none, or they do not tell what limits the program, or they cannot be corrected to
// the steps that were only timed: then the trace itself.
const StudiedTrace& timed_trace(const StudiedTrace& trace);

// "times are those of 5 light steps (1.08x as long as untouched ones), operators and findings those of 5 full steps
// (1.25x)"; "" for a trace whose times are its own.
std::string light_note(const StudiedTrace& trace);

}  // namespace firelane::advise
