# Takes the README's fragments out of its text: the document must be examples/iris.json and print the table that is
# shown, every command must work as it is written, and the first plugin must build outside the tree and train. All of
# it with an installed Treadle.
include("${SOURCE}/tests/must.cmake")
file(READ "${SOURCE}/README.md" readme)
file(READ "${SOURCE}/examples/iris.json" example)
string(FIND "${readme}" "${example}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "the document in README.md is not examples/iris.json")
endif()

function(fragment opening starts_with variable)
  string(FIND "${readme}" "```${opening}\n${starts_with}" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "README.md has no ${opening} fragment that starts with ${starts_with}")
  endif()
  string(SUBSTRING "${readme}" ${begin} -1 rest)
  string(LENGTH "```${opening}\n" skip)
  string(SUBSTRING "${rest}" ${skip} -1 rest)
  string(FIND "${rest}" "```" end)
  string(SUBSTRING "${rest}" 0 ${end} text)
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

set(room "${BUILD}/tests/readme-room")
set(prefix "${room}/prefix")
set(plugin "${room}/halving")
file(REMOVE_RECURSE "${room}")
must(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${prefix}")

# The table: the lines from `Result` on, without the blank ones.
fragment("" "Result (" shown)
file(COPY "${SOURCE}/examples/iris.json" "${SOURCE}/examples/data" DESTINATION "${room}/user")
must(${CMAKE_COMMAND} -E chdir "${room}/user" "${prefix}/bin/workflow-runner" run iris.json)
string(FIND "${output}" "Result (" begin)
if(begin EQUAL -1)
  message(FATAL_ERROR "the run printed no result:\n${output}")
endif()
string(SUBSTRING "${output}" ${begin} -1 printed)
file(GLOB run RELATIVE "${room}/user" "${room}/user/runs/*")  # the only one: runs/iris-…

# `Result (mean ± deviation over 5 folds)` as it stands, of every other line its label and how many numbers it has.
function(outline text variable)
  string(REGEX REPLACE "\n\n+" "\n" text "${text}")
  string(REGEX REPLACE "runs/[^/\n]+/" "runs/RUN/" text "${text}")
  string(REGEX REPLACE "\n( +[a-z_0-9]+) +[^\n]+ ± [^\n]+" "\n\\1 MEAN ± DEVIATION" text "${text}")
  string(REGEX REPLACE "\n( +epochs) +[0-9]+" "\n\\1 COUNT" text "${text}")
  string(REGEX REPLACE "\n( +time of all folds) +[0-9.]+ s" "\n\\1 SECONDS" text "${text}")
  string(REGEX REPLACE "\nWall time \\([^\n]+\\)" "\nTIME" text "${text}")
  string(REGEX REPLACE "( +[0-9.]+ %)+" " SHARES" text "${text}")
  string(REGEX REPLACE "(loading|data|forward|backward|update|metrics|saving) +" "\\1 " text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()
outline("${shown}" expected)
outline("${printed}" got)
if(NOT got STREQUAL expected)
  message(FATAL_ERROR "README.md shows\n${shown}\nbut the run printed\n${printed}")
endif()

# "0.0650" as 650: CMake counts in whole numbers.
function(ten_thousandths text variable)
  string(REGEX REPLACE "^([0-9]+)\\.([0-9][0-9][0-9][0-9])$" "\\1\\2" digits "${text}")
  if(digits STREQUAL text)
    message(FATAL_ERROR "\"${text}\" is not a number with four decimals")
  endif()
  string(REGEX REPLACE "^0+(.)" "\\1" digits "${digits}")
  set(${variable} ${digits} PARENT_SCOPE)
endfunction()

# **Rationale:** the numbers hold for the libtorch that README.md names, and not to the last digit: BLAS and libtorch
# choose their kernels by the CPU's model, these round differently, and some hundred steps make that visible.
# Half of the deviation over the folds is what a mean may be off before a reader would be misled.
if(NOT readme MATCHES "with libtorch ([0-9]+\\.[0-9]+):")
  message(FATAL_ERROR "README.md does not say which libtorch printed its table")
endif()
set(named "${CMAKE_MATCH_1}")
file(READ "${room}/user/${run}/environment.json" environment)
string(JSON libtorch GET "${environment}" libtorch)
string(FIND "${libtorch}." "${named}." at)
if(at EQUAL 0)
  string(REGEX MATCHALL "\n +[a-z_0-9]+ +[0-9.]+ ± [0-9.]+" rows "${shown}")
  foreach(row IN LISTS rows)
    string(REGEX MATCH "([a-z_0-9]+) +([0-9.]+) ± ([0-9.]+)" row "${row}")
    set(label "${CMAKE_MATCH_1}")
    ten_thousandths("${CMAKE_MATCH_2}" mean)
    ten_thousandths("${CMAKE_MATCH_3}" deviation)
    string(REGEX MATCH "${label} +([0-9.]+) ±" number "${printed}")
    ten_thousandths("${CMAKE_MATCH_1}" value)
    math(EXPR too_high "${value} - ${mean} - ${deviation} / 2")
    math(EXPR too_low "${mean} - ${value} - ${deviation} / 2")
    if(too_high GREATER 0 OR too_low GREATER 0)
      message(FATAL_ERROR "README.md shows ${row}, but the run printed ${number}")
    endif()
  endforeach()
endif()

# The commands: each line as it is written, in a folder with what it speaks of. The name of the run's folder is a
# stand-in for one that exists.
string(REGEX MATCH "Report  runs/([^/\n]+)/" report "${shown}")
set(stand_in "runs/${CMAKE_MATCH_1}")
fragment(sh "workflow-runner " commands)
file(RENAME "${room}/user/iris.json" "${room}/user/my.json")
file(WRITE "${room}/user/new.csv"
     "petal_width,petal_length,sepal_width,sepal_length\n0.2,1.4,3.5,5.1\n2.1,5.7,3.3,6.7\n")
string(REPLACE ";" "\\;" commands "${commands}")
string(REGEX REPLACE "\n$" "" commands "${commands}")
string(REPLACE "\n" ";" commands "${commands}")
foreach(line IN LISTS commands)
  string(REPLACE "${stand_in}" "${run}" line "${line}")
  must(${CMAKE_COMMAND} -E env "PATH=${prefix}/bin:$ENV{PATH}"
       ${CMAKE_COMMAND} -E chdir "${room}/user" sh -c "${line}")
endforeach()

# The network: it trains, and the three ways to look at it work.
fragment(json "\"model\": {\"use\": \"flow\"" network)
file(WRITE "${room}/user/network.json" "{\"treadle\": 1, \"data\": \"moons\",\n${network}}\n")
foreach(command IN ITEMS "run;network.json" "graph;network.json;--model" "graph;network.json;--model;--table"
        "graph;network.json;--model;--plan")
  must(${CMAKE_COMMAND} -E chdir "${room}/user" "${prefix}/bin/workflow-runner" ${command})
endforeach()
string(FIND "${output}" "linear_gradient" at)
if(at EQUAL -1)
  message(FATAL_ERROR "README.md says that --plan lists what the network was compiled to, but it is:\n${output}")
endif()

# The scripts are what CI runs; here it is enough that they are what the README calls them.
fragment(sh "scripts/" scripts)
string(REGEX MATCHALL "scripts/[a-z]+" scripts "${scripts}")
foreach(script IN LISTS scripts)
  must(test -x "${SOURCE}/${script}")
endforeach()

# The plugin.
fragment(json "{\n  \"x-treadle-interface\"" schema)
fragment(cpp "class Halving" code)
fragment(cmake "treadle_add_plugin" call)
file(WRITE "${plugin}/halving.schema.json" "${schema}")
file(WRITE "${plugin}/halving.cpp" "#include <cmath>\n#include <treadle/sdk.h>\n\n${code}")
file(WRITE "${plugin}/plugin.json" "{\"id\": \"org.example.halving\", \"version\": \"1.0.0\", \"summary\": \"Halves the rate\", \"license\": \"MIT\"}\n")
file(WRITE "${plugin}/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)\nproject(Halving LANGUAGES CXX)\nset(CMAKE_CXX_STANDARD 20)\nfind_package(Treadle CONFIG REQUIRED COMPONENTS SDK)\n${call}")

must(${CMAKE_COMMAND} -S "${plugin}" -B "${plugin}/build" -G Ninja -DCMAKE_BUILD_TYPE=Release
     -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${prefix})
must(${CMAKE_COMMAND} --build "${plugin}/build")
file(GLOB_RECURSE library "${plugin}/build/*/halving.so")
get_filename_component(folder "${library}" DIRECTORY)
must("${prefix}/bin/workflow-runner" run "${SOURCE}/examples/iris.json" --plugin-dir "${folder}"
     --set "schedule.use=halving" --set "schedule.every=50" --output "${room}/runs")
if(NOT output MATCHES "accuracy +0\\.9" OR NOT output MATCHES "Report ")
  message(FATAL_ERROR "the run printed:\n${output}")
endif()
must("${prefix}/bin/workflow-runner" plugins describe schedule halving --plugin-dir "${folder}")
if(NOT output MATCHES "Steps between halvings")
  message(FATAL_ERROR "describe printed:\n${output}")
endif()
