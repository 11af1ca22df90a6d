# The torch to build the recorder for, as the target firelane_torch; FIRELANE_TORCH says whether there is one,
# FIRELANE_TORCH_VERSION which. It is the one that the project around this one found (find_package(Torch)), else the
# one that is installed beside the build's Python.
#
# No find_package(Torch) here: for a torch with CUDA that asks for the whole CUDA toolkit, and the recorder's CPU side
# needs two libraries. The libraries are found at run time by whoever imported torch, or by the run path of a C++ program.
if(TORCH_FOUND AND (NOT PROJECT_IS_TOP_LEVEL OR CMAKE_FIND_PACKAGE_NAME STREQUAL "firelane"))
  set(FIRELANE_TORCH ON)
  set(FIRELANE_TORCH_VERSION ${Torch_VERSION})
  set(FIRELANE_TORCH_DIR ${TORCH_INSTALL_PREFIX})
  add_library(firelane_torch INTERFACE)
  target_include_directories(firelane_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(firelane_torch INTERFACE ${TORCH_LIBRARIES})
  return()
endif()

if(NOT Python_EXECUTABLE)
  find_package(Python COMPONENTS Interpreter)
endif()
set(ask_torch
    "import torch, os; print(os.path.dirname(torch.__file__), torch.__version__, int(torch.compiled_with_cxx11_abi()), sep=';')")
execute_process(COMMAND ${Python_EXECUTABLE} -c "${ask_torch}" OUTPUT_VARIABLE torch_answer
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE torch_result)
if(NOT torch_result EQUAL 0 AND SKBUILD)
  # pip's build isolation hides the environment's packages by a PYTHONPATH; the torch to record lies there nevertheless.
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=PYTHONPATH ${Python_EXECUTABLE} -c "${ask_torch}"
                  OUTPUT_VARIABLE torch_answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE torch_result)
endif()

set(torch_missing "")
if(NOT torch_result EQUAL 0)
  set(torch_missing "no torch for Python ${Python_EXECUTABLE}")
else()
  list(GET torch_answer 0 FIRELANE_TORCH_DIR)
  list(GET torch_answer 1 FIRELANE_TORCH_FULL_VERSION)
  string(REGEX REPLACE "\\+.*" "" FIRELANE_TORCH_VERSION ${FIRELANE_TORCH_FULL_VERSION})
  list(GET torch_answer 2 torch_new_abi)
  if(FIRELANE_TORCH_VERSION VERSION_LESS 2.6)
    set(torch_missing "torch ${FIRELANE_TORCH_VERSION} is older than 2.6")
  endif()
endif()
if(torch_missing AND FIRELANE_PROFILER)
  firelane_refuse("${torch_missing}. Call find_package(Torch) before add_subdirectory(firelane), or "
                  "configure with -DPython_EXECUTABLE=<a Python that can import torch>")
elseif(torch_missing AND SKBUILD)
  firelane_refuse("the recorder: ${torch_missing}. Install torch first; to leave the recorder out: "
                  "pip install . -C cmake.define.FIRELANE_RECORDER=OFF (`firelane build-recorder` can compile it later)")
elseif(torch_missing)
  message(STATUS "firelane: ${torch_missing}; the recorder is not built")
  return()
endif()

set(FIRELANE_TORCH ON)
add_library(firelane_torch INTERFACE)
target_include_directories(firelane_torch SYSTEM INTERFACE
  ${FIRELANE_TORCH_DIR}/include ${FIRELANE_TORCH_DIR}/include/torch/csrc/api/include)
target_link_libraries(firelane_torch INTERFACE ${FIRELANE_TORCH_DIR}/lib/libtorch_cpu.so ${FIRELANE_TORCH_DIR}/lib/libc10.so)
# Wheels before 2.7 use the old C++ strings. Everything that is linked with such a torch has to, and Debian's
# libraries do not: bind/record then compiles the recorder's rooms once more, for itself.
set(FIRELANE_TORCH_OLD_STRINGS OFF)
if(NOT torch_new_abi)
  set(FIRELANE_TORCH_OLD_STRINGS ON)
  if(FIRELANE_PROFILER)
    firelane_refuse("this torch uses the old C++ strings; C++ programs need a libtorch with the new ones")
  endif()
endif()
