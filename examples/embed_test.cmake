# Installs Treadle into an empty folder, builds examples/embed against it, and runs it.
include("${SOURCE}/tests/must.cmake")
set(prefix "${BUILD}/examples/embed-room/prefix")
set(build "${BUILD}/examples/embed-room/build")
file(REMOVE_RECURSE "${prefix}" "${build}")

must(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${prefix}")
must(${CMAKE_COMMAND} -S "${SOURCE}/examples/embed" -B "${build}" -G Ninja
     -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${prefix})
must(${CMAKE_COMMAND} --build "${build}")
must("${build}/embed" "${SOURCE}/examples/data/iris.csv" "${build}/runs")
if(NOT output MATCHES "accuracy (0\\.9|1\\.0)" OR NOT output MATCHES "after 60 epochs (0\\.9|1\\.0)"
   OR NOT output MATCHES "predicted setosa")
  message(FATAL_ERROR "the example printed:\n${output}")
endif()
