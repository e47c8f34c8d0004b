# treadle_add_library(<name> [STATIC] [PCH plain|tensor|nn] LINK <target>...)
#   A library from this folder's src/*.cpp with public headers in include/. Tests lie in test/.
# treadle_add_tests(<name> [NO_TENSORS] [OPTIMIZED] [SHARDS <count>] [TIMEOUT <seconds>] [LABELS <label>...]
#                   [AT_LANDING <pattern>...] [ENVIRONMENT <variable>...] LINK <target>... [SOURCES <file>...])
#   NO_TENSORS: neither the tests nor what they test include libtorch.
#   OPTIMIZED: as the product is, for tests that compute much themselves.
#   SHARDS: as so many CTest entries, <name>, <name>-2 and on, for a program that would be the last to end.
#   LABELS: `asan` and `tsan` say under which sanitizers the program runs too; `landing`: only when something lands (.ci/run),
#   not in scripts/test, and built by the target landing-tests alone.
#   AT_LANDING: as GoogleTest filters them, claims that have an entry <name>-landing of their own, with that label.
#   One GoogleTest program from test/*_test.cpp, one CTest entry. Not per test: loading libtorch takes
#   longer than most tests do. CTest begins with those that take longest by tests/costs.txt.
#
# PCH names one of the precompiled headers of framework/pch: `plain` for code without libtorch, `tensor` for code that uses at::Tensor, `nn`
# for code that uses torch::nn::Module. Tests have theirs, with GoogleTest in it.

function(treadle_use_pch target pch)
  if(pch AND NOT TREADLE_FUZZ)
    target_precompile_headers(${target} REUSE_FROM treadle-pch-${pch})
  endif()
endfunction()

# treadle_unity_by_folder(<target> <root>)
#   Where sources are compiled together (CMAKE_UNITY_BUILD), those of each folder below <root> are: most of a source's time is
#   its headers', and an edit compiles one folder anew.
function(treadle_unity_by_folder target root)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source)
    file(RELATIVE_PATH path "${root}" "${source}")
    if(NOT path MATCHES "^\\.\\./")
      get_filename_component(folder "${path}" DIRECTORY)
      string(REGEX REPLACE "[^A-Za-z0-9_]" "_" folder "${folder}")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${target}_${folder}")
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

function(treadle_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "STATIC" "PCH" "LINK;PRIVATE_LINK")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/*.cpp")
  set(kind SHARED)
  if(arg_STATIC OR TREADLE_FUZZ)  # libFuzzer counts what is linked into the program
    set(kind STATIC)
  endif()
  add_library(${name} ${kind} ${sources})
  string(REPLACE "treadle-" "treadle::" alias ${name})
  add_library(${alias} ALIAS ${name})
  set_target_properties(${name} PROPERTIES DEFINE_SYMBOL "" VERSION ${PROJECT_VERSION} SOVERSION 0)
  target_include_directories(${name} PUBLIC
      $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PUBLIC ${arg_LINK} PRIVATE $<BUILD_INTERFACE:treadle-flags>)
  foreach(link IN LISTS arg_PRIVATE_LINK)  # headers only: nothing an installed archive would need
    target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:${link}>)
  endforeach()
  treadle_use_pch(${name} "${arg_PCH}")
  treadle_unity_by_folder(${name} "${CMAKE_CURRENT_SOURCE_DIR}/src")
  treadle_check_headers(${name} "${CMAKE_CURRENT_SOURCE_DIR}/include")
endfunction()

# treadle_check_headers(<target> <folder>): each header below <folder> compiles by itself, and twice. With the option
# TREADLE_CHECK_HEADERS alone, and without a precompiled header, which would hide what a header forgets to include.
function(treadle_check_headers target folder)
  if(NOT TREADLE_CHECK_HEADERS)
    return()
  endif()
  file(GLOB_RECURSE headers RELATIVE "${folder}" CONFIGURE_DEPENDS "${folder}/*.h")
  set(sources "")
  foreach(header IN LISTS headers)
    set(source "${CMAKE_CURRENT_BINARY_DIR}/headers/${header}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include <${header}>\n#include <${header}>\n")
    list(APPEND sources "${source}")
  endforeach()
  add_library(${target}-headers OBJECT ${sources})
  target_link_libraries(${target}-headers PRIVATE ${target} treadle-flags)
endfunction()

# treadle_link_first(<target> <libraries>)
#   Of inline functions that several object files contain, a linker keeps the first: here those of our static libraries, which
#   are optimized, not those of the tests, which are not. So tests run what users run; searches take a third of the time.
function(treadle_link_first target libraries)
  set(archives "")
  foreach(library IN LISTS libraries)
    if(TARGET ${library} AND NOT library STREQUAL "treadle::testing")  # compiled as tests are
      get_target_property(kind ${library} TYPE)
      if(kind STREQUAL "STATIC_LIBRARY")
        string(APPEND archives " $<TARGET_FILE:${library}>")
      endif()
    endif()
  endforeach()
  if(archives)
    target_link_options(${target} PRIVATE "SHELL:-Wl,--whole-archive${archives} -Wl,--no-whole-archive")
  endif()
endfunction()

# treadle_set_cost(<test>): how long it takes by tests/costs.txt, so that CTest begins with the longest on a machine where it
# has not measured them yet.
function(treadle_set_cost test)
  set(costs "${PROJECT_SOURCE_DIR}/tests/costs.txt")
  get_property(known GLOBAL PROPERTY TREADLE_TEST_COSTS)
  if(NOT known)
    set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${costs}")
    file(STRINGS "${costs}" known REGEX "^[0-9]")
    set_property(GLOBAL PROPERTY TREADLE_TEST_COSTS "${known}")
  endif()
  list(FILTER known INCLUDE REGEX " ${test}$")
  if(known MATCHES "^([0-9]+) ")
    set_tests_properties(${test} PROPERTIES COST ${CMAKE_MATCH_1})
  endif()
endfunction()

function(treadle_add_tests name)
  if(NOT TREADLE_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_TENSORS;OPTIMIZED" "TIMEOUT;SHARDS" "LINK;LABELS;SOURCES;ENVIRONMENT;AT_LANDING")
  if(NOT arg_SOURCES)
    file(GLOB_RECURSE arg_SOURCES CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/test/*_test.cpp")
  endif()
  if(NOT arg_SOURCES)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  if(TREADLE_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 4")
  endif()
  add_executable(${name} ${arg_SOURCES})
  set(flags treadle-test-flags)
  set(pch test_nn)
  if(arg_NO_TENSORS)
    set(pch test)
  endif()
  if(arg_OPTIMIZED)
    set(flags treadle-flags)
    set(pch nn)
  endif()
  target_link_libraries(${name} PRIVATE ${arg_LINK} ${flags} GTest::gmock GTest::gtest_main)
  treadle_link_first(${name} "${arg_LINK}")
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/test)
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")  # treadle/testing/support/source_path.h
  target_compile_definitions(${name} PRIVATE TREADLE_TEST_DATA="${folder}/test/data")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  treadle_use_pch(${name} ${pch})
  if("landing" IN_LIST arg_LABELS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    set_property(GLOBAL APPEND PROPERTY TREADLE_LANDING_TESTS ${name})
  endif()
  if((TREADLE_SANITIZE MATCHES "address" AND "asan" IN_LIST arg_LABELS)
     OR (TREADLE_SANITIZE MATCHES "thread" AND "tsan" IN_LIST arg_LABELS))
    set_property(GLOBAL APPEND PROPERTY TREADLE_SANITIZED_TESTS ${name})
  endif()
  set(environment "TREADLE_BUILD=${PROJECT_BINARY_DIR};TREADLE_SOURCE=${PROJECT_SOURCE_DIR};OMP_NUM_THREADS=1;TREADLE_DATA=${TREADLE_TEST_DATA_SETS};${arg_ENVIRONMENT}")
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  set(usual "")
  if(arg_AT_LANDING)
    list(JOIN arg_AT_LANDING ":" at_landing)
    set(usual "GTEST_FILTER=-${at_landing}")
    add_test(NAME ${name}-landing COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name}-landing PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS landing
        ENVIRONMENT "${environment};GTEST_FILTER=${at_landing}" FAIL_REGULAR_EXPRESSION "\\] 0 tests")
    treadle_set_cost(${name}-landing)
  endif()
  foreach(shard RANGE 1 ${arg_SHARDS})
    set(test ${name})
    set(its_environment "${environment};${usual}")
    if(arg_SHARDS GREATER 1)
      math(EXPR index "${shard} - 1")
      list(APPEND its_environment GTEST_TOTAL_SHARDS=${arg_SHARDS} GTEST_SHARD_INDEX=${index})
      if(shard GREATER 1)
        set(test ${name}-${shard})
      endif()
    endif()
    add_test(NAME ${test} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${test} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}" ENVIRONMENT "${its_environment}")
    treadle_set_cost(${test})
  endforeach()
endfunction()

# treadle_fence_off_libtorch(<target>)
#   Including libtorch in <target> does not compile. Debian keeps libtorch's headers in /usr/include, where every
#   library finds them, so not linking it is not enough.
function(treadle_fence_off_libtorch target)
  target_include_directories(${target} BEFORE PRIVATE "${PROJECT_SOURCE_DIR}/cmake/fence")
endfunction()
