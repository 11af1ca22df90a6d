// A function of a library that was opened at run time, by its name.
#pragma once

#include <dlfcn.h>

namespace firelane::cupti {

// False, and a null function, when the library does not have it.
template <typename Function>
bool find_symbol(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace firelane::cupti
