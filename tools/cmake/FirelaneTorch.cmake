# The torch that is installed beside the build's Python, as the target firelane_torch; FIRELANE_TORCH says whether
# there is one, FIRELANE_TORCH_VERSION which.
#
# Not find_package(Torch): for a torch with CUDA that asks for the whole CUDA toolkit, and the recorder's CPU side needs
# two libraries. The libraries are found at run time by whoever imported torch, or by the run path of a C++ program.
execute_process(
  COMMAND ${Python_EXECUTABLE} -c
          "import torch, os; print(os.path.dirname(torch.__file__), torch.__version__.split('+')[0], int(torch.compiled_with_cxx11_abi()), sep=';')"
  OUTPUT_VARIABLE torch_answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE torch_result)
set(FIRELANE_TORCH OFF)
if(NOT torch_result EQUAL 0)
  message(STATUS "firelane: no torch for ${Python_EXECUTABLE}; the recorder is not built")
  return()
endif()
list(GET torch_answer 0 FIRELANE_TORCH_DIR)
list(GET torch_answer 1 FIRELANE_TORCH_VERSION)
list(GET torch_answer 2 torch_new_abi)
if(FIRELANE_TORCH_VERSION VERSION_LESS 2.6)
  message(STATUS "firelane: torch ${FIRELANE_TORCH_VERSION} is older than 2.6; the recorder is not built")
  return()
endif()
set(FIRELANE_TORCH ON)
add_library(firelane_torch INTERFACE)
target_include_directories(firelane_torch SYSTEM INTERFACE
  ${FIRELANE_TORCH_DIR}/include ${FIRELANE_TORCH_DIR}/include/torch/csrc/api/include)
target_link_libraries(firelane_torch INTERFACE ${FIRELANE_TORCH_DIR}/lib/libtorch_cpu.so ${FIRELANE_TORCH_DIR}/lib/libc10.so)
if(NOT torch_new_abi)
  # Wheels before 2.7 use the old strings: everything that is linked with them has to, and Debian's libraries do not.
  message(STATUS "firelane: this torch uses the old C++ strings; configure with FIRELANE_CLI=OFF and "
                 "CMAKE_CXX_FLAGS=-D_GLIBCXX_USE_CXX11_ABI=0 to build the recorder for it")
endif()
