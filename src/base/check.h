// FL_CHECK: our own mistakes end the program with the place and what must hold.
// Never used in record/*, which runs inside somebody's training job.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace firelane {

[[noreturn, gnu::cold, gnu::noinline]] inline void check_failed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "firelane: internal error at %s:%d: %s\n", file, line, what);
  std::abort();
}

}  // namespace firelane

#define FL_CHECK(condition, what)                                         \
  do {                                                                    \
    if (!(condition)) ::firelane::check_failed(__FILE__, __LINE__, what); \
  } while (false)
