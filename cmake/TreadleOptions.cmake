# Every option there is. None is per plugin: a plugin is chosen by its folder's name.
option(TREADLE_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(TREADLE_BUILD_BENCHMARKS "Build tests/benchmarks" OFF)
option(TREADLE_DEVELOPER "Warnings are errors" OFF)
option(TREADLE_CHECK_HEADERS "Compile each public header by itself" OFF)
option(TREADLE_FUZZ "Build tests/fuzz for libFuzzer, and of the rest only what it runs" OFF)
set(TREADLE_PLUGINS "all" CACHE STRING "Plugins to build: all, none, or a list of folder names")
set(TREADLE_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=: 'address,undefined' or 'thread'")
set(TREADLE_PACKAGE_CONTACT "Treadle developers <treadle@localhost>" CACHE STRING
    "Whom the Debian packages name as their maintainer")
set(TREADLE_TEST_DATA_SETS "${PROJECT_SOURCE_DIR}/../shared/data" CACHE PATH
    "Public data sets (iris.csv, digits.csv …); the tests that need them skip where there are none")
