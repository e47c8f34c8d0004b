# What find_package(Treadle) answers: to a version it is or is not, to another libtorch, and without what it needs.
set(ROOM find-treadle-room)
include("${CMAKE_CURRENT_LIST_DIR}/room.cmake")

# configure(<folder> <request>): the words of a command that configures a project with this find_package.
function(project_that_asks folder request)
  file(WRITE "${room}/${folder}/CMakeLists.txt"
       "cmake_minimum_required(VERSION 3.25)\nproject(Asks LANGUAGES CXX)\nfind_package(Treadle ${request})\n")
  set(asking ${CMAKE_COMMAND} -S "${room}/${folder}" -B "${room}/${folder}/build" -G Ninja
      -DCMAKE_CXX_COMPILER=${COMPILER} "-DCMAKE_PREFIX_PATH=${prefix}" PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE version_file "${prefix}/*/TreadleConfigVersion.cmake")
file(STRINGS "${version_file}" version REGEX "set.PACKAGE_VERSION \"")
string(REGEX MATCH "([0-9]+)\\.([0-9]+)\\.[0-9]+" version "${version}")
set(major ${CMAKE_MATCH_1})
math(EXPR next_minor "${CMAKE_MATCH_2} + 1")

project_that_asks("this version" "${major}.${CMAKE_MATCH_2} CONFIG REQUIRED COMPONENTS SDK Testing Run")
file(APPEND "${room}/this version/CMakeLists.txt" "message(STATUS \"the runner is \${TREADLE_RUNNER}\")\n")
must(${asking})
string(FIND "${output}" "the runner is ${prefix}/bin/workflow-runner\n" at)
if(at EQUAL -1)
  message(FATAL_ERROR "find_package(Treadle) found another runner:\n${output}")
endif()
project_that_asks("the next minor" "${major}.${next_minor} CONFIG REQUIRED COMPONENTS SDK")
must_fail("compatible with requested version \"${major}.${next_minor}\"" ${asking})
must_fail("TreadleConfig.cmake, version: ${version}" ${asking})
project_that_asks("the last major" "99.0 CONFIG REQUIRED COMPONENTS SDK")
must_fail("compatible with requested version \"99.0\"" ${asking})

# Another libtorch than Treadle was built with, where CMake finds it first.
file(WRITE "${room}/torch/TorchConfig.cmake" "set(TORCH_LIBRARIES \"\")\n")
file(WRITE "${room}/torch/TorchConfigVersion.cmake" "set(PACKAGE_VERSION 9.8.7)\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n")
file(GLOB_RECURSE config "${prefix}/*/TreadleConfig.cmake")
file(STRINGS "${config}" line REGEX "Torch_VERSION VERSION_EQUAL")
string(REGEX MATCH "\"([^\"]+)\"" line "${line}")
set(torch "${CMAKE_MATCH_1}")
project_that_asks("another libtorch" "CONFIG REQUIRED COMPONENTS SDK")
must_fail("this Treadle was built with libtorch ${torch}, but find_package(Torch) found 9.8.7 in ${room}/torch; point CMAKE_PREFIX_PATH to the same libtorch, or rebuild Treadle"
          ${asking} "-DTorch_DIR=${room}/torch")

project_that_asks("no GoogleTest" "CONFIG REQUIRED COMPONENTS SDK Testing")
must_fail("its component Testing needs GoogleTest 1.12 or newer with gmock (Debian: libgtest-dev and libgmock-dev)"
          ${asking} -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON)
project_that_asks("no such component" "CONFIG REQUIRED COMPONENTS Sdk")
must_fail("Treadle has no component \"Sdk\"; it has Run, SDK and Testing" ${asking})

# A machine that only runs workflows.
file(REMOVE_RECURSE "${prefix}/share/treadle/templates")
must_fail("share/treadle/templates/common: the templates for new plugins are not there (No such file or directory); they belong to the development files of Treadle: install its package treadle-dev"
          ${home} "${prefix}/bin/workflow-runner" plugins new loss mine --dir "${room}/mine")
if(EXISTS "${room}/mine")
  message(FATAL_ERROR "plugins new failed and left ${room}/mine behind")
endif()
