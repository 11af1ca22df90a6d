# The built files of viewer/ as a C++ source, FIRELANE_PAGES, so that an installed firelane needs no Node and no files.
set(FIRELANE_PAGES ${CMAKE_CURRENT_BINARY_DIR}/pages.cc)
set(viewer_dist ${PROJECT_SOURCE_DIR}/viewer/dist)
add_custom_command(
  OUTPUT ${FIRELANE_PAGES}
  COMMAND ${CMAKE_COMMAND} -DDIST=${viewer_dist} -DOUT=${FIRELANE_PAGES} -P ${CMAKE_CURRENT_LIST_DIR}/EmbedPages.cmake
  DEPENDS ${CMAKE_CURRENT_LIST_DIR}/EmbedPages.cmake
  VERBATIM)
