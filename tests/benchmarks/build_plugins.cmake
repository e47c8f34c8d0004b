# Installs Treadle from BUILD into PREFIX and builds the plugins of the benchmarks in PLUGINS, as anybody would who has
# installed it.
include("${SOURCE}/tests/must.cmake")
must("${SOURCE}/scripts/jobs")
string(STRIP "${output}" jobs)
must(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${PREFIX}")
must(${CMAKE_COMMAND} -S "${SOURCE}/tests/benchmarks/plugins" -B "${PLUGINS}" -G Ninja -DCMAKE_BUILD_TYPE=Release
     "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${PREFIX}" "-DTorch_DIR=${TORCH}")
must(${CMAKE_COMMAND} --build "${PLUGINS}" -j ${jobs})
