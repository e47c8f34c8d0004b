# Every package we build on. README names the Debian packages; scripts/setup installs them.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_path(LIBMD_INCLUDE_DIR sha2.h REQUIRED)
find_library(LIBMD_LIBRARY md REQUIRED)
if(TREADLE_FUZZ)
  return()  # what is fuzzed knows no more
endif()
find_package(TBB 2021.8 REQUIRED)
find_package(hwy 1.0.3 CONFIG REQUIRED)
find_package(Torch REQUIRED)
find_package(Boost 1.74 CONFIG REQUIRED COMPONENTS program_options)
find_path(PCRE2_INCLUDE_DIR pcre2.h REQUIRED)
find_library(PCRE2_LIBRARY pcre2-8 REQUIRED)
find_path(VALIJSON_INCLUDE_DIR valijson/validator.hpp REQUIRED)
find_file(TREADLE_CHART_JS NAMES chart.umd.min.js chart.umd.js chart.min.js Chart.min.js
          PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist NO_DEFAULT_PATH REQUIRED)
find_package(GTest 1.12 REQUIRED)

# Debian's Torch target carries -D_GLIBCXX_USE_CXX11_ABI and include folders; only those who say so link it.
add_library(treadle-torch INTERFACE)
add_library(treadle::torch ALIAS treadle-torch)
target_include_directories(treadle-torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(treadle-torch INTERFACE ${TORCH_LIBRARIES})
