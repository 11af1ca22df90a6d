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
set(FIRELANE_CUPTI OFF)
if(NOT FIRELANE_GPU)
  return()
endif()
if(FIRELANE_TORCH_DIR)  # what torch depends on lies beside it, also where pip's build isolation hides it
  file(GLOB more ${FIRELANE_TORCH_DIR}/../nvidia/cu*/include ${FIRELANE_TORCH_DIR}/../nvidia/cuda_*/include
       ${FIRELANE_TORCH_DIR}/../triton/backends/nvidia/include)
  list(APPEND cupti_hints ${more})
endif()
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
if(FIRELANE_CUPTI_INCLUDE AND FIRELANE_CUDA_INCLUDE AND FIRELANE_CUDA_CRT_INCLUDE)
  set(FIRELANE_CUPTI ON)
  add_library(firelane_cupti_headers INTERFACE)
  target_include_directories(firelane_cupti_headers SYSTEM INTERFACE
    ${FIRELANE_CUPTI_INCLUDE} ${FIRELANE_CUDA_INCLUDE} ${FIRELANE_CUDA_CRT_INCLUDE})
  target_compile_definitions(firelane_cupti_headers INTERFACE FIRELANE_CUPTI=1)
elseif(SKBUILD AND FIRELANE_TORCH AND EXISTS ${FIRELANE_TORCH_DIR}/include/c10/cuda/impl/cuda_cmake_macros.h)
  firelane_refuse("recording GPUs: no CUPTI headers (cupti_activity.h, cuda_runtime_api.h, crt/host_defines.h) "
                  "beside torch or in /usr/local/cuda. A torch with CUDA brings them, and so do PyPI's nvidia-cuda-cupti, "
                  "nvidia-cuda-runtime and nvidia-cuda-crt, and the CUDA toolkit; to leave GPUs out: "
                  "pip install . -C cmake.define.FIRELANE_GPU=OFF")
elseif(SKBUILD AND FIRELANE_TORCH)  # `firelane --parts` says so, too: pip shows this line with -v only
  message(NOTICE "firelane: recording GPUs is left out: torch ${FIRELANE_TORCH_FULL_VERSION} is a CPU build, which has none. After "
                 "installing a torch with CUDA: pip install . again, or firelane build-recorder")
else()
  message(STATUS "firelane: no CUPTI headers (PyPI: nvidia-cuda-cupti, or the CUDA toolkit); GPU recording is not built")
endif()
