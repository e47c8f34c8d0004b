# cmake -DSOURCE=<Treadle's tree> -P requirements_test.cmake: libraries of the system that a plugin requires, of which the
# test makes one.
set(CMAKE_INSTALL_LIBDIR lib)
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
include("${SOURCE}/cmake/TreadlePlugin.cmake")

set(prefix "${CMAKE_CURRENT_BINARY_DIR}/requirements")
file(WRITE "${prefix}/include/thing/thing.h" "")
file(WRITE "${prefix}/lib/libthing.so" "")
set(CMAKE_PREFIX_PATH "${prefix}")

function(expect actual expected)
  if(NOT actual STREQUAL expected)
    message(FATAL_ERROR "expected \"${expected}\", got \"${actual}\"")
  endif()
endfunction()

# Instead of printing.
function(message mode)
  if(mode STREQUAL "STATUS")
    set_property(GLOBAL PROPERTY SAID "${ARGV1}")
  else()
    _message(${mode} ${ARGN})
  endif()
endfunction()

treadle_find_requirements(none plugins/mine)
expect("${none_FOUND}" TRUE)

treadle_find_requirements(thing plugins/mine thing.h:thing:libthing-dev:thing)
expect("${thing_FOUND}" TRUE)
expect("${thing_HEADERS}" "${prefix}/include/thing")
expect("${thing_LIBRARIES}" "${prefix}/lib/libthing.so")

treadle_find_requirements(other plugins/mine thing.h:thing:libthing-dev:thing other.h:other:libother-dev)
get_property(said GLOBAL PROPERTY SAID)
expect("${other_FOUND}" FALSE)
expect("${said}" "plugins/mine: skipped, other.h, libother not found; install libother-dev (names of Debian packages)")
