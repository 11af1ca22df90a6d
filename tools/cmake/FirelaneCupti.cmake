# CUPTI's and CUDA's headers, as the target firelane_cupti_headers; FIRELANE_CUPTI says whether there are any. Only headers:
# the libraries are found at run time, so what is built here runs without a GPU, too.
#
# PyPI's nvidia-cuda-cupti and nvidia-cuda-runtime bring them (torch depends on both), and the CUDA toolkit does. Both
# packages lack crt/host_defines.h, which the toolkit, nvidia-cuda-crt and triton have.
file(GLOB cupti_hints
  ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu*/include
  ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cuda_cupti/include
  ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cuda_runtime/include
  ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/triton/backends/nvidia/include)
if(Python_EXECUTABLE)
  execute_process(COMMAND ${Python_EXECUTABLE} -c "import nvidia; print(*nvidia.__path__, sep=';')"
                  OUTPUT_VARIABLE nvidia_folders OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  foreach(folder ${nvidia_folders})
    file(GLOB more ${folder}/cu*/include ${folder}/cuda_cupti/include ${folder}/cuda_runtime/include
         ${folder}/../triton/backends/nvidia/include)
    list(APPEND cupti_hints ${more})
  endforeach()
endif()
list(APPEND cupti_hints /usr/local/cuda/include /usr/local/cuda/extras/CUPTI/include)
find_path(FIRELANE_CUPTI_INCLUDE cupti_activity.h HINTS ${cupti_hints})
find_path(FIRELANE_CUDA_INCLUDE cuda_runtime_api.h HINTS ${FIRELANE_CUPTI_INCLUDE} ${cupti_hints})
find_path(FIRELANE_CUDA_CRT_INCLUDE crt/host_defines.h HINTS ${FIRELANE_CUDA_INCLUDE} ${cupti_hints})
set(FIRELANE_CUPTI OFF)
if(FIRELANE_CUPTI_INCLUDE AND FIRELANE_CUDA_INCLUDE AND FIRELANE_CUDA_CRT_INCLUDE)
  set(FIRELANE_CUPTI ON)
  add_library(firelane_cupti_headers INTERFACE)
  target_include_directories(firelane_cupti_headers SYSTEM INTERFACE
    ${FIRELANE_CUPTI_INCLUDE} ${FIRELANE_CUDA_INCLUDE} ${FIRELANE_CUDA_CRT_INCLUDE})
  target_compile_definitions(firelane_cupti_headers INTERFACE FIRELANE_CUPTI=1)
else()
  message(STATUS "firelane: no CUPTI headers (PyPI: nvidia-cuda-cupti, or the CUDA toolkit); GPU recording is not built")
endif()
