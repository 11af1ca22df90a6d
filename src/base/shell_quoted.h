// Names of files in the commands that we print: what is pasted into a shell has to arrive there as one word.
//
//   "next: firelane view " + shell_quoted("my run.lane")        next: firelane view 'my run.lane'
#pragma once

#include <string>
#include <string_view>

namespace firelane {

// The text as one word of a POSIX shell: itself where every character stands for itself there, else in single quotes.
// As Python's shlex.quote does it, which python/firelane uses.
std::string shell_quoted(std::string_view text);

}  // namespace firelane
