# The built page of viewer/ inside of the program, as the object FIRELANE_PAGES, so that an installed firelane needs
# neither Node nor files beside it. Without viewer/dist (`make viewer` builds it) the program says how to get the page.
#
# `pip install .` of a checkout builds the page itself, with npm; a source distribution brings it along.
set(viewer_dist ${PROJECT_SOURCE_DIR}/viewer/dist)
if(SKBUILD AND FIRELANE_VIEWER AND NOT EXISTS ${viewer_dist}/report.html)
  set(without "; to leave the viewer out: pip install . -C cmake.define.FIRELANE_VIEWER=OFF")
  set(remedy "Install Node.js 18 or newer with npm (Debian, Ubuntu: apt install nodejs npm), or use a source archive, which has the page")
  find_program(NPM npm)
  find_program(NODE NAMES node nodejs)
  if(NOT NPM OR NOT NODE)
    firelane_refuse("the viewer: viewer/dist is not built, and there is no npm with Node.js to build it. ${remedy}${without}")
  endif()
  execute_process(COMMAND ${NODE} --version OUTPUT_VARIABLE node_version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(REGEX REPLACE "^v" "" node_version "${node_version}")
  if(NOT node_version VERSION_GREATER_EQUAL 18)
    firelane_refuse("the viewer: Node.js ${node_version} (${NODE}) is too old. ${remedy}${without}")
  endif()
  message(STATUS "firelane: building the viewer with npm")
  foreach(step "ci --omit=dev --no-audit --no-fund" "run build")
    separate_arguments(words UNIX_COMMAND "${step}")
    execute_process(COMMAND ${NPM} ${words} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/viewer RESULT_VARIABLE npm_failed)
    if(npm_failed)
      firelane_refuse("the viewer: `npm ${step}` failed, see above${without}")
    endif()
  endforeach()
endif()

set(viewer_files "")
if(FIRELANE_VIEWER)
  file(GLOB_RECURSE viewer_files CONFIGURE_DEPENDS RELATIVE ${viewer_dist} ${viewer_dist}/*)
endif()
list(FILTER viewer_files INCLUDE REGEX "^(index\\.html|report\\.html|assets/[A-Za-z0-9._-]+)$")
list(SORT viewer_files)
set(type_html "text/html; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_svg "image/svg+xml")
set(type_woff2 "font/woff2")
set(type_png "image/png")

set(assembly "")
set(symbols "")
set(table "")
set(number 0)
foreach(file ${viewer_files})
  get_filename_component(ending ${file} LAST_EXT)
  string(SUBSTRING "${ending}" 1 -1 ending)
  set(type "${type_${ending}}")
  if(NOT type)
    set(type "application/octet-stream")
  endif()
  set(symbol firelane_page_${number})
  string(APPEND assembly
    "__asm__(\".section .rodata\\n.hidden ${symbol}\\n.global ${symbol}\\n${symbol}:\\n.incbin \\\"${viewer_dist}/${file}\\\"\\n\"\n"
    "        \".hidden ${symbol}_end\\n.global ${symbol}_end\\n${symbol}_end:\\n.byte 0\\n.previous\\n\");\n")
  string(APPEND symbols "extern const char ${symbol}[];\nextern const char ${symbol}_end[];\n")
  string(APPEND table "      {\"${file}\", \"${type}\", {${symbol}, static_cast<size_t>(${symbol}_end - ${symbol})}},\n")
  math(EXPR number "${number} + 1")
endforeach()
if(number EQUAL 0)
  set(body "  return {};\n")
else()
  set(body "  static const Page kPages[] = {\n${table}  };\n  return kPages;\n")
endif()
set(pages_source ${CMAKE_CURRENT_BINARY_DIR}/pages.cc)
file(CONFIGURE OUTPUT ${pages_source} @ONLY CONTENT
"// Written by tools/cmake/FirelaneViewer.cmake.
#include \"serve/pages.h\"

@assembly@
extern \"C\" {
@symbols@}

namespace firelane::serve {

std::span<const Page> all_pages() {
@body@}

}  // namespace firelane::serve
")
list(TRANSFORM viewer_files PREPEND ${viewer_dist}/)
# Compiled alone: an object made of several sources would not be made again when the page changes. And without ccache, which
# does not know of .incbin: it gave the object with the page before.
set_source_files_properties(${pages_source} PROPERTIES OBJECT_DEPENDS "${viewer_files}" SKIP_UNITY_BUILD_INCLUSION ON)
add_library(firelane_pages OBJECT ${pages_source})
target_link_libraries(firelane_pages PRIVATE firelane_options)
set_target_properties(firelane_pages PROPERTIES CXX_COMPILER_LAUNCHER "")
set(FIRELANE_PAGES $<TARGET_OBJECTS:firelane_pages>)
