# The only file that knows compiler flags.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# One flavour of position independence, so that one precompiled header serves libraries and tests.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE "-fPIC")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Numbers must not depend on the build type: no -ffast-math anywhere, contraction off.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
# Under sanitizers half of a build's time was optimizing what they instrument. Most of a test's time is libtorch's.
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")

# Build tree mirrors the install tree, so programs find plugins and helpers the same way in both.
include(GNUInstallDirs)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(TREADLE_TEMPLATE_DIR "${CMAKE_INSTALL_DATADIR}/treadle/templates")

add_library(treadle-flags INTERFACE)
target_compile_options(treadle-flags INTERFACE -Wall -Wextra -Wno-unknown-pragmas -ffp-contract=off
                       -fno-math-errno $<$<BOOL:${TREADLE_DEVELOPER}>:-Werror>
                       # __FILE__ is the same in every checkout: otherwise none could use what another has compiled.
                       "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
# GCC looks for garbage each time its memory has doubled, from 128 MiB on: a tenth of all compiling, to free next to nothing.
# Now from 2 GiB on, which is what scripts/jobs counts for each compiler.
target_compile_options(treadle-flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=2097152>)
# Presets compile all sources of a target as one, in a third of the time: most of what a source of libtorch's takes is spent on
# headers. To GCC a class of such a source is one of a header then, where it may not hold what is local to the file.
# Sources share their anonymous namespaces there: a second helper of one name is an error.
if(CMAKE_UNITY_BUILD)
  target_compile_options(treadle-flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
if(TREADLE_SANITIZE)
  # GCC 12 sees uninitialized values in libstdc++'s std::function once sanitizers change its inlining.
  target_compile_options(treadle-flags INTERFACE -fsanitize=${TREADLE_SANITIZE} -fno-omit-frame-pointer
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(treadle-flags INTERFACE -fsanitize=${TREADLE_SANITIZE})
  if(TREADLE_FUZZ)
    # What is only printed, a fuzzer does not see.
    target_compile_options(treadle-flags INTERFACE -O1 -fno-sanitize-recover=all)
  endif()
  if(TREADLE_SANITIZE MATCHES "undefined")
    # oneTBB's headers cast a flow graph's task after destroying it, to give its memory back.
    target_compile_options(treadle-flags INTERFACE -fno-sanitize=vptr)
  endif()
endif()

# Tests are compiled for the compiler's time, not for their own: what they test is optimized.
add_library(treadle-test-flags INTERFACE)
target_link_libraries(treadle-test-flags INTERFACE treadle-flags)
target_compile_options(treadle-test-flags INTERFACE -O0)

find_program(TREADLE_CCACHE ccache)
if(TREADLE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers are only cached when their time stamps are ignored. Paths below the source folder are made relative,
  # so that a second clone finds what the first has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TREADLE_CCACHE})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()
find_program(TREADLE_MOLD mold)
if(TREADLE_MOLD AND (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1))
  # Every segment on a page of its own: mold 1.10 begins the pages to protect after loading at .tbss, whose address may lie on
  # the page before the data; that page is mapped by nothing, and the program does not start ("cannot apply additional memory
  # protection after relocation").
  add_link_options(-fuse-ld=mold LINKER:-z,separate-loadable-segments)
endif()
