# A room for a test of consumers: an installed Treadle whose prefix was moved afterwards, in folders with blanks and
# letters that are not ASCII, and a home in which no user has installed anything.
# Sets `room`, `prefix`, and `home`, the words before a command that make the home its own.
include("${SOURCE}/tests/must.cmake")
set(room "${BUILD}/tests/${ROOM}")
set(prefix "${room}/prefix for Ærø")
set(home ${CMAKE_COMMAND} -E env --unset=XDG_DATA_HOME --unset=XDG_CACHE_HOME --unset=TREADLE_PLUGIN_PATH
    "HOME=${room}/home" OMP_NUM_THREADS=1)
file(REMOVE_RECURSE "${room}")
file(MAKE_DIRECTORY "${room}/home")
must(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${room}/installed")
file(RENAME "${room}/installed" "${prefix}")

# must_fail(<text> <program> <argument>...): runs a command that has to fail and to print the text on its way. White
# space does not matter: CMake breaks lines where it likes.
function(must_fail text)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE printed ERROR_VARIABLE printed)
  string(REGEX REPLACE "[ \n]+" " " flat "${printed}")
  string(FIND "${flat}" "${text}" at)
  if(status EQUAL 0 OR at EQUAL -1)
    message(FATAL_ERROR "${ARGN}\nended with ${status}, expected a failure with the text\n${text}\nbut it printed\n${printed}")
  endif()
endfunction()
