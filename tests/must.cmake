# must(<program> <argument>...): runs a command that has to succeed; what it printed is then in `output`.
# For tests that are CMake scripts: include("${SOURCE}/tests/must.cmake").
function(must)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}\nfailed with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()
