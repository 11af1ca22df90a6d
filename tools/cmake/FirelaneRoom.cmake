# How a room becomes a target: firelane_room(NAME SOURCES ... SMALL_SOURCES ... DEPS ... LIBS ... TESTS ...).
#
# NAME is the folder below src/ (record/core becomes the target firelane_record_core).
# SMALL_SOURCES are files of whose speed nothing is promised: a release compiles them for size (FIRELANE_SMALL_OPTIONS).
# DEPS are rooms, LIBS third-party targets, TESTS unit-test files beside the code; THREADED_TESTS those of them that start
# threads, where few do: the thread sanitizer's build leaves the others out.

add_library(firelane_options INTERFACE)
target_include_directories(firelane_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(firelane_options INTERFACE -Wall -Wextra -Wshadow -Wconversion)
if(PROJECT_IS_TOP_LEVEL AND NOT SKBUILD)  # the compilers of other projects, and of who installs with pip, may warn of more
  target_compile_options(firelane_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 warns inside the standard library's own inlined code (GCC bugs 105329, 105651) and asks for
  # every field of a designated initialiser, which is the point of naming only some; GoogleTest's macros hold an else.
  target_compile_options(firelane_options INTERFACE -Wno-missing-field-initializers -Wno-restrict
                         -Wno-dangling-else
                         -Wno-stringop-overflow -Wno-array-bounds -Wno-maybe-uninitialized)
else()
  # libstdc++ 12's std::stable_sort calls a function that it has itself deprecated.
  target_compile_options(firelane_options INTERFACE -Wno-deprecated-declarations -Wno-missing-designated-field-initializers
                         -Wno-missing-field-initializers)
endif()
# What a room is compiled with to get the sanitizers. FIRELANE_SANITIZED_ROOMS names those that do. The others are compiled as in a
# release, so that ccache has their objects when the second build begins, and their unit tests belong to the release build
# (the target unsanitized_tests).
set(FIRELANE_SANITIZE_OPTIONS "")
if(FIRELANE_SANITIZE)
  set(FIRELANE_SANITIZE_OPTIONS -fsanitize=${FIRELANE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(firelane_options INTERFACE -fsanitize=${FIRELANE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND EXISTS /usr/lib/llvm-19/bin/ld.lld)  # links 25 large programs in a fifth of ld's time
    target_link_options(firelane_options INTERFACE -fuse-ld=lld)
  endif()
  if(FIRELANE_SANITIZE MATCHES "address,undefined")
    # The address sanitizer stops at the same mistakes, and these four take a third of the compile time.
    list(APPEND FIRELANE_SANITIZE_OPTIONS -fno-sanitize=null,vptr,object-size,pointer-overflow)
    if(CMAKE_CXX_COMPILER_ID MATCHES Clang)  # a call for each check compiles faster than the check in place
      list(APPEND FIRELANE_SANITIZE_OPTIONS "SHELL:-mllvm -asan-instrumentation-with-call-threshold=0")
    endif()
  endif()
  if(FIRELANE_SANITIZED_ROOMS)  # the build's own flags are a release's; unoptimized code compiles in two fifths of the time
    list(APPEND FIRELANE_SANITIZE_OPTIONS -O0 -g1 -UNDEBUG)
  endif()
endif()

find_package(Threads REQUIRED)
if(FIRELANE_TESTS)
  add_custom_target(unit_tests)
  add_custom_target(unsanitized_tests)
  enable_testing()
  include(GoogleTest)
endif()

# Tests spend their time in the rooms that read and analyze. With sanitizers an unoptimised file compiles in half of the time:
# test files, and rooms that compute little. Hostile bytes reach two of these, whose branches lead the fuzzer as well.
set(FIRELANE_LIGHT_OPTIONS "")
set(FIRELANE_ROOM_OPTIONS "")
set(FIRELANE_LIGHT_ROOMS "")
set(FIRELANE_LIGHT_FUZZED_ROOMS "")
if(FIRELANE_SANITIZE)
  set(FIRELANE_LIGHT_ROOMS advise compare describe export report serve sql)
  set(FIRELANE_LIGHT_FUZZED_ROOMS flight ranks)
  set(FIRELANE_LIGHT_OPTIONS -O0)
  if(FIRELANE_SANITIZE MATCHES undefined)
    # Only who reads bytes as something wider can be misaligned. These rooms do not, and the check is a tenth of their compile time;
    # those that hostile bytes reach keep it.
    list(APPEND FIRELANE_LIGHT_OPTIONS -fno-sanitize=alignment)
  endif()
  # Coverage in the rooms leads a long run of the fuzzer; a few hundred inputs do as well without it.
  if(FIRELANE_FUZZ AND NOT FIRELANE_SANITIZED_ROOMS)
    set(FIRELANE_ROOM_OPTIONS -fsanitize=fuzzer-no-link)
  endif()
endif()

# Rooms that ask, judge and tell: small code compiles in two thirds of the time, and what takes long for a large trace lies in the
# rooms that read and count it.
set(FIRELANE_SMALL_ROOMS advise always compare daemon describe flight report serve sql)
set(FIRELANE_SMALL_OPTIONS $<$<CONFIG:Release>:-Oz>)

# Half of the compile time of tests goes into reading the same headers, so these are precompiled; those of rooms only with sanitizers. The
# wheel's build, in another folder, takes the optimized objects of rooms from ccache, which precompiled headers prevent.
set(FIRELANE_TEST_OPTIONS -O0)
if(FIRELANE_SANITIZE)
  set(FIRELANE_TEST_OPTIONS ${FIRELANE_SANITIZE_OPTIONS} ${FIRELANE_LIGHT_OPTIONS})
endif()
set(std_headers <algorithm> <cstdint> <functional> <map> <memory> <optional> <string> <string_view> <unordered_map> <variant> <vector>)
file(WRITE ${CMAKE_BINARY_DIR}/nothing.cc "")

# firelane_precompile(TARGET HEADERS... OPTIONS ...): TARGET is there for others to reuse its headers.
function(firelane_precompile target)
  cmake_parse_arguments(PRECOMPILE "" "" "HEADERS;OPTIONS" ${ARGN})
  target_link_libraries(${target} PRIVATE firelane_options Threads::Threads)
  target_precompile_headers(${target} PRIVATE ${PRECOMPILE_HEADERS})
  # Without a timestamp the same headers give the same bytes, which ccache needs. Only clang precompiles here.
  target_compile_options(${target} PRIVATE ${PRECOMPILE_OPTIONS} "SHELL:-Xclang -fno-pch-timestamp")
endfunction()

set(FIRELANE_PRECOMPILE OFF)
set(FIRELANE_PRECOMPILE_TESTS OFF)
if(FIRELANE_TESTS AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
  set(FIRELANE_PRECOMPILE_TESTS ON)
  add_executable(firelane_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/nothing.cc)  # as tests are: -fPIE has to agree
  target_link_libraries(firelane_test_headers PRIVATE GTest::gtest_main)
  firelane_precompile(firelane_test_headers HEADERS <gtest/gtest.h> ${std_headers} OPTIONS ${FIRELANE_TEST_OPTIONS})
endif()
if(FIRELANE_PRECOMPILE_TESTS AND FIRELANE_SANITIZE)
  set(FIRELANE_PRECOMPILE ON)
  add_library(firelane_std_headers OBJECT ${CMAKE_BINARY_DIR}/nothing.cc)
  firelane_precompile(firelane_std_headers HEADERS ${std_headers} OPTIONS ${FIRELANE_SANITIZE_OPTIONS} ${FIRELANE_ROOM_OPTIONS})
  if(NOT FIRELANE_SANITIZED_ROOMS)  # else light rooms are not among them
    add_library(firelane_light_headers OBJECT ${CMAKE_BINARY_DIR}/nothing.cc)
    firelane_precompile(firelane_light_headers HEADERS ${std_headers} OPTIONS ${FIRELANE_SANITIZE_OPTIONS} ${FIRELANE_LIGHT_OPTIONS})
  endif()
endif()

# firelane_even_batches(TARGET): as few batches as CMAKE_UNITY_BUILD_BATCH_SIZE allows, of about the same size.
function(firelane_even_batches target)
  get_target_property(files ${target} SOURCES)
  list(LENGTH files files)
  math(EXPR batches "(${files} + ${CMAKE_UNITY_BUILD_BATCH_SIZE} - 1) / ${CMAKE_UNITY_BUILD_BATCH_SIZE}")
  math(EXPR size "(${files} + ${batches} - 1) / ${batches}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# firelane_is_sanitized(NAME RESULT): whether the room, or the program of that name, gets the sanitizers.
function(firelane_is_sanitized name result)
  set(${result} OFF PARENT_SCOPE)
  if(FIRELANE_SANITIZE AND (NOT FIRELANE_SANITIZED_ROOMS OR name IN_LIST FIRELANE_SANITIZED_ROOMS))
    set(${result} ON PARENT_SCOPE)
  endif()
endfunction()

function(firelane_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;SMALL_SOURCES;DEPS;LIBS;TESTS;THREADED_TESTS;TEST_LIBS" ${ARGN})
  if(ROOM_THREADED_TESTS AND FIRELANE_SANITIZE STREQUAL "thread")
    set(ROOM_TESTS ${ROOM_THREADED_TESTS})
  endif()
  string(REPLACE "/" "_" id ${name})
  set(target firelane_${id})
  if(NOT ROOM_SOURCES)
    add_library(${target} INTERFACE)  # a room that nobody has moved into yet
    return()
  endif()
  firelane_is_sanitized(${name} is_sanitized)
  if(is_sanitized)
    list(APPEND ROOM_SOURCES ${ROOM_SMALL_SOURCES})
    set(ROOM_SMALL_SOURCES "")
  endif()
  add_library(${target} STATIC ${ROOM_SOURCES})
  firelane_even_batches(${target})
  list(TRANSFORM ROOM_DEPS REPLACE "/" "_")
  list(TRANSFORM ROOM_DEPS PREPEND firelane_)
  target_link_libraries(${target} PUBLIC firelane_options Threads::Threads ${ROOM_DEPS})
  target_link_libraries(${target} PRIVATE ${ROOM_LIBS})
  if(ROOM_SMALL_SOURCES)
    add_library(${target}_small OBJECT ${ROOM_SMALL_SOURCES})
    firelane_even_batches(${target}_small)
    target_link_libraries(${target}_small PRIVATE firelane_options Threads::Threads ${ROOM_DEPS} ${ROOM_LIBS})
    target_compile_options(${target}_small PRIVATE ${FIRELANE_SMALL_OPTIONS})
    target_link_libraries(${target} PRIVATE ${target}_small)
  endif()
  set(headers "")
  if(NOT is_sanitized)
    if(name IN_LIST FIRELANE_SMALL_ROOMS)
      target_compile_options(${target} PRIVATE ${FIRELANE_SMALL_OPTIONS})
    endif()
  elseif(name IN_LIST FIRELANE_LIGHT_ROOMS)
    set(headers firelane_light_headers)
    target_compile_options(${target} PRIVATE ${FIRELANE_SANITIZE_OPTIONS} ${FIRELANE_LIGHT_OPTIONS})
  elseif(name IN_LIST FIRELANE_LIGHT_FUZZED_ROOMS)  # two rooms: headers of their own would take longer than they save
    target_compile_options(${target} PRIVATE ${FIRELANE_SANITIZE_OPTIONS} -O0 ${FIRELANE_ROOM_OPTIONS})
  else()
    set(headers firelane_std_headers)
    target_compile_options(${target} PRIVATE ${FIRELANE_SANITIZE_OPTIONS} ${FIRELANE_ROOM_OPTIONS})
  endif()
  if(FIRELANE_PRECOMPILE AND headers)
    target_precompile_headers(${target} REUSE_FROM ${headers})
  endif()
  # A room without sanitizers in a build that has them for others is tested by the release build.
  if(FIRELANE_TESTS AND ROOM_TESTS AND (is_sanitized OR NOT FIRELANE_SANITIZE))
    if(FIRELANE_SANITIZE)
      add_executable(${target}_test ${ROOM_TESTS})
    else()  # built by name or by `unit_tests`: who only wants the program does not wait for them
      add_executable(${target}_test EXCLUDE_FROM_ALL ${ROOM_TESTS})
      add_dependencies(unit_tests ${target}_test)
    endif()
    firelane_even_batches(${target}_test)
    target_link_libraries(${target}_test PRIVATE ${target} ${ROOM_LIBS} ${ROOM_TEST_LIBS} GTest::gtest_main)
    if(FIRELANE_PRECOMPILE_TESTS)
      target_precompile_headers(${target}_test REUSE_FROM firelane_test_headers)
    endif()
    target_compile_options(${target}_test PRIVATE ${FIRELANE_TEST_OPTIONS})
    target_compile_definitions(${target}_test PRIVATE FIRELANE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
    gtest_discover_tests(${target}_test TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST
                         DISCOVERY_TIMEOUT 300 PROPERTIES TIMEOUT 300)
    # All of a room's tests in one process: starting a thousand sanitized processes takes longer than their tests.
    add_test(NAME units.${name} COMMAND ${target}_test)
    set_tests_properties(units.${name} PROPERTIES TIMEOUT 600)
    if(NOT FIRELANE_SANITIZE AND NOT name IN_LIST FIRELANE_SANITIZED_ROOMS)
      add_dependencies(unsanitized_tests ${target}_test)
      set_tests_properties(units.${name} PROPERTIES LABELS release)
    endif()
  endif()
endfunction()

# firelane_gather(TARGET ROOM...): the sources of the rooms that exist as one target that nothing builds.
function(firelane_gather target)
  add_library(${target} OBJECT EXCLUDE_FROM_ALL)
  foreach(name ${ARGN})
    string(REPLACE "/" "_" id ${name})
    if(NOT TARGET firelane_${id})
      continue()
    endif()
    get_target_property(folder firelane_${id} SOURCE_DIR)
    get_target_property(sources firelane_${id} SOURCES)
    if(TARGET firelane_${id}_small)
      get_target_property(small_sources firelane_${id}_small SOURCES)
      list(APPEND sources ${small_sources})
    endif()
    list(TRANSFORM sources PREPEND ${folder}/)
    target_sources(${target} PRIVATE ${sources})
    foreach(property COMPILE_DEFINITIONS INCLUDE_DIRECTORIES LINK_LIBRARIES)
      get_target_property(values firelane_${id} ${property})
      if(property STREQUAL "LINK_LIBRARIES")  # imported targets are known in their room only, and lie in /usr/include
        list(FILTER values INCLUDE REGEX "^firelane_")
      endif()
      if(values)
        set_property(TARGET ${target} APPEND PROPERTY ${property} ${values})
      endif()
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 80)
endfunction()

# firelane_copy_rooms(TARGET ROOM...): the rooms that exist, compiled once more as one library, to be given other flags.
function(firelane_copy_rooms target)
  add_library(${target} STATIC)
  foreach(id ${ARGN})
    set(room firelane_${id})
    if(NOT TARGET ${room})
      continue()
    endif()
    set_target_properties(${room} PROPERTIES EXCLUDE_FROM_ALL ON)
    get_target_property(folder ${room} SOURCE_DIR)
    get_target_property(sources ${room} SOURCES)
    list(TRANSFORM sources PREPEND ${folder}/)
    target_sources(${target} PRIVATE ${sources})
    foreach(property COMPILE_DEFINITIONS INCLUDE_DIRECTORIES LINK_LIBRARIES)
      get_target_property(values ${room} ${property})
      if(values)
        list(FILTER values EXCLUDE REGEX "^firelane_(base|format|record_)")
        set_property(TARGET ${target} APPEND PROPERTY ${property} ${values})
        if(property STREQUAL "LINK_LIBRARIES")
          set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${values})
        endif()
      endif()
    endforeach()
  endforeach()
endfunction()
