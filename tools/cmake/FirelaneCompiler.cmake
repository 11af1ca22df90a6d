# The C++ compiler, where nobody names one and CMake would find none: Debian's clang packages, which `make setup` installs, bring it
# under a name with its version only. Before project(), which looks for the usual names.
if(CMAKE_CXX_COMPILER OR DEFINED ENV{CXX} OR CMAKE_TOOLCHAIN_FILE)
  return()
endif()
find_program(usual_compiler NAMES c++ g++ clang++ NO_CACHE)
if(usual_compiler)
  return()
endif()
set(names "")
foreach(version RANGE 24 12 -1)
  list(APPEND names clang++-${version} g++-${version})
endforeach()
find_program(CMAKE_CXX_COMPILER NAMES ${names} NAMES_PER_DIR)
if(NOT CMAKE_CXX_COMPILER)
  message(FATAL_ERROR " firelane: no C++ compiler (g++ 12 or newer, clang 16 or newer). Debian, Ubuntu: `make setup` installs one, or: "
                      "apt install g++; another place: CXX=/path/to/g++")
endif()
