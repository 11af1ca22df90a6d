# The recorder in a Python package: finished libraries (FIRELANE_RECORDERS), and the sources and the zstd that
# `firelane build-recorder` compiles another one from (python/firelane/_build_recorder.py).
if(FIRELANE_RECORDERS)
  install(DIRECTORY ${FIRELANE_RECORDERS}/ DESTINATION firelane/recorders COMPONENT python FILES_MATCHING PATTERN "*.so")
endif()
set(source firelane/recorder_source)
foreach(room base format record/core record/cupti record/torch record/library)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/${room}/ DESTINATION ${source}/src/${room} COMPONENT python
          FILES_MATCHING REGEX "\\.(cc|h|map)$" PATTERN "*_test.cc" EXCLUDE PATTERN "testing.h" EXCLUDE)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/include/firelane/profiler.h DESTINATION ${source}/include/firelane COMPONENT python)
get_filename_component(zstd_folder ${FIRELANE_ZSTD_LIBRARY} DIRECTORY)
find_file(FIRELANE_STATIC_ZSTD libzstd.a HINTS ${zstd_folder})
if(FIRELANE_STATIC_ZSTD)  # else the user's -lzstd
  install(FILES ${FIRELANE_ZSTD_INCLUDE}/zstd.h ${FIRELANE_ZSTD_INCLUDE}/zstd_errors.h ${FIRELANE_STATIC_ZSTD}
          DESTINATION ${source}/third_party COMPONENT python)
endif()

if(FIRELANE_LICENSES)  # of what is linked in
  install(FILES ${FIRELANE_LICENSES} DESTINATION firelane COMPONENT python)
endif()
