# treadle_add_plugin([NAME <name>] [PCH tensor|nn|none] [USES graph|table...] [REQUIRES <requirement>...]
#                    [PACKAGE recommended|suggested] [LINK <target>...]
#                    [TEST_LINK <target>...] [TEST_LABELS <label>...] [TEST_AT_LANDING <pattern>...])
#   The folder is the plugin: its *.cpp are the sources, its *.schema.json and plugin.json the manifest,
#   its test/*_test.cpp the tests. NAME, or else the folder's name, is the library's name (<name>.so) and the
#   target's (treadle-plugin-<name>). Called without arguments it does everything:
#   - checks plugin.json and the schemas, and writes them into the library, where hosts read them without
#     running its code; so with contract.json, if there is one: {"<component>": {parameters}}, from which
#     `plugins check --contract` makes components whose schemas require some;
#   - compiles the sources once and makes of them the library and the test program, so that tests reach
#     classes that the library hides;
#   - installs it where hosts look;
#   - exports the entry and nothing else, and fails at link time when a symbol is missing.
#   Tests get TREADLE_PLUGIN_FOLDER: where its source lies, for PluginUnderTest and source_path().
#
# REQUIRES lists libraries of the system, each as <header>:<library>:<Debian package>[:<folder>], where <folder> is the
# one below an include folder that <header> may lie in: REQUIRES libpq-fe.h:pq:libpq-dev:postgresql. The plugin is linked
# to them and sees their headers. Where one is missing, the plugin is left out: a message names what was not found and
# the package, no target is defined, and nothing else changes. Commands after treadle_add_plugin() that need its targets
# stand in if(TARGET treadle-plugin-<name>).
#
# In Treadle's tree a plugin with REQUIRES is a Debian package of its own, treadle-plugin-<name>: the program then depends
# on none of these libraries. The package treadle recommends it, so apt installs it along, or suggests it: PACKAGE
# suggested. PACKAGE also makes a package of a plugin that finds its libraries itself. Whatever the folder installs after
# treadle_add_plugin() goes into the same package. Outside the tree it is treadle_package_plugin() that makes packages.
#
# PCH is the precompiled header the sources are compiled with (default: tensor). LINK is for other libraries;
# `USES graph` for plugins that build model graphs themselves, `USES table` for sources of tables. The targets of all
# plugins are in the global property TREADLE_PLUGIN_TARGETS. What differs outside Treadle's tree is in TreadlePluginProject.cmake.

include(GNUInstallDirs)

set(TREADLE_PLUGIN_EXPORTS "${CMAKE_CURRENT_LIST_DIR}/plugin_exports.map")

# The number in the name of the folder plugins are installed in.
if(NOT DEFINED TREADLE_ABI_MAJOR)
  set(abi_header "${CMAKE_CURRENT_LIST_DIR}/../framework/base/include/treadle/base/plugin_abi.h")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${abi_header}")
  file(STRINGS "${abi_header}" TREADLE_ABI_MAJOR REGEX "^#define TREADLE_ABI_MAJOR ")
  string(REGEX REPLACE "[^0-9]" "" TREADLE_ABI_MAJOR "${TREADLE_ABI_MAJOR}")
endif()

# Below the prefix. Outside the tree it is where the Treadle that was found looks.
if(NOT DEFINED TREADLE_PLUGIN_DESTINATION)
  set(TREADLE_PLUGIN_DESTINATION "${CMAKE_INSTALL_LIBDIR}/treadle/plugins/${TREADLE_ABI_MAJOR}")
endif()
if(NOT DEFINED TREADLE_PLUGIN_OUTPUT)
  set(TREADLE_PLUGIN_OUTPUT "lib/treadle/plugins/${TREADLE_ABI_MAJOR}")
endif()

# treadle_compile_as_plugin(<target>): how the sources of a plugin are compiled.
function(treadle_compile_as_plugin target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF
      CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fno-gnu-unique)
  endif()
endfunction()

# treadle_link_as_plugin(<target> <name>): where the library of a plugin lies and how it is linked.
function(treadle_link_as_plugin target name)
  set_target_properties(${target} PROPERTIES
      PREFIX "" SUFFIX ".so" OUTPUT_NAME "${name}"
      LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/${TREADLE_PLUGIN_OUTPUT}"
      LINK_DEPENDS "${TREADLE_PLUGIN_EXPORTS}")
  target_link_options(${target} PRIVATE
      "LINKER:--version-script=${TREADLE_PLUGIN_EXPORTS}"
      LINKER:-z,now LINKER:-z,nodelete LINKER:--build-id=sha1)
  # Clang leaves the symbols of its sanitizers to the program.
  if(NOT (CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND TREADLE_SANITIZE))
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()
endfunction()

# treadle_plugin_notes(<target> <folder> [TBB]): gives <target> the source with the notes
# made from <folder>'s plugin.json and schemas. It is compiled like the target's own sources, so the
# fingerprint in it is theirs. TBB says that those sources use it.
function(treadle_plugin_notes target folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "TBB" "" "")
  file(GLOB schemas CONFIGURE_DEPENDS "${folder}/*.schema.json")
  file(GLOB contract CONFIGURE_DEPENDS "${folder}/contract.json")
  set(notes "${CMAKE_CURRENT_BINARY_DIR}/${target}-notes.cpp")
  set(uses "")
  if(arg_TBB)
    set(uses --tbb)
  endif()
  add_custom_command(OUTPUT "${notes}"
      COMMAND treadle::pack ${uses} --output "${notes}" "${folder}/plugin.json" ${schemas}
      DEPENDS treadle::pack "${folder}/plugin.json" ${schemas} ${contract}
      COMMENT "Checking the manifest of ${target}" VERBATIM)
  target_sources(${target} PRIVATE "${notes}")
endfunction()

# treadle_find_requirements(<prefix> <what> <requirement>...): finds libraries of the system as REQUIRES of
# treadle_add_plugin() lists them. Sets <prefix>_FOUND, <prefix>_HEADERS (folders) and <prefix>_LIBRARIES; where one is
# missing, a message names it, what is skipped for it and its Debian package.
function(treadle_find_requirements prefix what)
  set(missing "")
  set(packages "")
  set(headers "")
  set(libraries "")
  foreach(requirement IN LISTS ARGN)
    if(NOT requirement MATCHES "^([^:]+):([^:]+):([^:]+)(:([^:]+))?$")
      message(FATAL_ERROR "${what}: expected a requirement <header>:<library>:<Debian package>[:<folder>], "
                          "got \"${requirement}\"")
    endif()
    set(header "${CMAKE_MATCH_1}")
    set(library "${CMAKE_MATCH_2}")
    set(package "${CMAKE_MATCH_3}")
    set(folder "${CMAKE_MATCH_5}")
    # Cached by the name of header and library, so plugins that require the same library share the answer.
    string(MAKE_C_IDENTIFIER "TREADLE_HEADER_${header}" header_variable)
    string(MAKE_C_IDENTIFIER "TREADLE_LIBRARY_${library}" library_variable)
    find_path(${header_variable} "${header}" PATH_SUFFIXES ${folder})
    find_library(${library_variable} "${library}")
    mark_as_advanced(${header_variable} ${library_variable})
    set(package_lacks FALSE)
    if(NOT ${header_variable})
      list(APPEND missing "${header}")
      set(package_lacks TRUE)
    endif()
    if(NOT ${library_variable})
      list(APPEND missing "lib${library}")
      set(package_lacks TRUE)
    endif()
    if(package_lacks)
      list(APPEND packages "${package}")
    endif()
    list(APPEND headers "${${header_variable}}")
    list(APPEND libraries "${${library_variable}}")
  endforeach()
  set(found TRUE)
  if(missing)
    set(found FALSE)
    list(REMOVE_DUPLICATES packages)
    list(JOIN missing ", " missing)
    list(JOIN packages ", " packages)
    message(STATUS "${what}: skipped, ${missing} not found; install ${packages} (names of Debian packages)")
  endif()
  list(REMOVE_DUPLICATES headers)
  list(REMOVE_DUPLICATES libraries)
  set(${prefix}_FOUND ${found} PARENT_SCOPE)
  set(${prefix}_HEADERS "${headers}" PARENT_SCOPE)
  set(${prefix}_LIBRARIES "${libraries}" PARENT_SCOPE)
endfunction()

function(treadle_add_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;PCH;PACKAGE" "USES;REQUIRES;LINK;TEST_LINK;TEST_LABELS;TEST_AT_LANDING")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "treadle_add_plugin: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(name "${arg_NAME}")
  if(NOT name)
    get_filename_component(name "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  endif()
  if(NOT name MATCHES "^[A-Za-z0-9_.+-]+$")
    message(FATAL_ERROR "treadle_add_plugin: a plugin cannot be called \"${name}\"; "
                        "call it otherwise: treadle_add_plugin(NAME my_plugin)")
  endif()
  set(target treadle-plugin-${name})
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT folder)
    set(folder "${name}")
  endif()
  treadle_find_requirements(required "${folder}" ${arg_REQUIRES})
  if(NOT required_FOUND)
    return()
  endif()
  list(APPEND arg_LINK ${required_LIBRARIES})
  if(NOT arg_PCH)
    set(arg_PCH tensor)
  endif()
  if(arg_PCH STREQUAL "none")
    set(arg_PCH "")
  endif()
  if(DEFINED arg_PACKAGE AND NOT arg_PACKAGE MATCHES "^(recommended|suggested)$")
    message(FATAL_ERROR "${folder}: PACKAGE must be recommended or suggested, got \"${arg_PACKAGE}\"")
  endif()
  set(libraries treadle::sdk ${arg_LINK})
  foreach(part IN LISTS arg_USES)
    list(APPEND libraries treadle::${part})
  endforeach()
  set(tbb "")
  if("TBB::tbb" IN_LIST arg_LINK)
    set(tbb TBB)
  endif()

  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  add_library(${target}-objects OBJECT ${sources})
  target_link_libraries(${target}-objects PUBLIC ${libraries})
  target_include_directories(${target}-objects PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
  target_include_directories(${target}-objects SYSTEM PUBLIC ${required_HEADERS})
  treadle_compile_as_plugin(${target}-objects)
  # A few sources at once (CMAKE_UNITY_BUILD): all of them take half a minute in the largest plugins, after each edit.
  set_target_properties(${target}-objects PROPERTIES UNITY_BUILD_BATCH_SIZE 5)
  if(TARGET treadle-flags)
    target_link_libraries(${target}-objects PRIVATE treadle-flags)
  endif()
  if(arg_PCH)
    treadle_use_pch(${target}-objects ${arg_PCH})
  endif()
  treadle_plugin_notes(${target}-objects "${CMAKE_CURRENT_SOURCE_DIR}" ${tbb})

  add_library(${target} MODULE)
  target_link_libraries(${target} PRIVATE ${target}-objects)
  treadle_link_as_plugin(${target} ${name})
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../../..")
  if((arg_REQUIRES OR arg_PACKAGE) AND NOT COMMAND treadle_finish_plugin_project)
    if(NOT arg_PACKAGE)
      set(arg_PACKAGE recommended)
    endif()
    set_target_properties(${target} PROPERTIES TREADLE_PACKAGE ${arg_PACKAGE})
    set_property(GLOBAL APPEND PROPERTY TREADLE_PACKAGED_PLUGINS ${target})
    set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME ${target})
    set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME ${target} PARENT_SCOPE)
  endif()
  install(TARGETS ${target}
      LIBRARY DESTINATION "${TREADLE_PLUGIN_DESTINATION}")
  set_property(GLOBAL APPEND PROPERTY TREADLE_PLUGIN_TARGETS ${target})

  if(COMMAND treadle_finish_plugin_project)
    treadle_finish_plugin_project(${target} ${name} PCH "${arg_PCH}" LABELS ${arg_TEST_LABELS}
        LINK ${arg_LINK} TEST_LINK ${arg_TEST_LINK})
  elseif(COMMAND treadle_add_tests)
    treadle_add_tests(${target}-tests LABELS plugin ${arg_TEST_LABELS} AT_LANDING ${arg_TEST_AT_LANDING}
        LINK ${target}-objects ${libraries} ${arg_TEST_LINK})
    if(TARGET ${target}-tests)
      add_dependencies(${target}-tests ${target})
      target_compile_definitions(${target}-tests PRIVATE TREADLE_PLUGIN_FOLDER="${folder}")
    endif()
  endif()
  if(TREADLE_BUILD_TESTS)
    add_test(NAME ${target}-contract COMMAND workflow-runner plugins check --contract "$<TARGET_FILE:${target}>")
    set_tests_properties(${target}-contract PROPERTIES TIMEOUT 300 LABELS plugin ENVIRONMENT "OMP_NUM_THREADS=1")
  endif()
endfunction()
