# What a plugin gets that is built outside Treadle's tree, by find_package(Treadle COMPONENTS SDK Testing):
#   - one precompiled header, treadle/sdk.h, built once per build tree (`PCH none` does without);
#   - where Testing was asked for and BUILD_TESTING is on, its tests as CTest's <name>.tests;
#   - CTest's <name>.check: the installed workflow-runner tests the library on the contract suites;
#   - the target install-for-me, which puts the libraries of the build tree where the user's own plugins lie;
#   - treadle_package_plugin(), below.

# treadle_use_pch(<target> <name>): there is one, whatever it is called in Treadle's own tree.
function(treadle_use_pch target name)
  if(NOT TARGET treadle-pch-sdk)
    set(source "${CMAKE_BINARY_DIR}/treadle-pch-sdk.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "// A precompiled header needs a target with a source.\n")
    add_library(treadle-pch-sdk OBJECT "${source}")
    target_link_libraries(treadle-pch-sdk PRIVATE treadle::sdk)
    target_precompile_headers(treadle-pch-sdk PRIVATE <treadle/sdk.h>)
    treadle_compile_as_plugin(treadle-pch-sdk)
  endif()
  target_precompile_headers(${target} REUSE_FROM treadle-pch-sdk)
endfunction()

# treadle_finish_plugin_project(<target> <name> PCH <name> [LABELS <label>...] [LINK <target>...]
#                               [TEST_LINK <target>...]): called by treadle_add_plugin().
function(treadle_finish_plugin_project target name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "PCH" "LABELS;LINK;TEST_LINK")
  # The host has loaded Treadle and libtorch before the plugin; only other libraries must be found.
  if(arg_LINK)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  else()
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  endif()

  if(NOT TARGET install-for-me)
    add_custom_target(install-for-me)
  endif()
  add_custom_target(${target}-install-for-me
      COMMAND ${CMAKE_COMMAND} "-DLIBRARY=$<TARGET_FILE:${target}>" -P "${TREADLE_CMAKE_DIR}/TreadleInstallForMe.cmake"
      COMMENT "Installing ${name}.so for this user" VERBATIM)
  add_dependencies(${target}-install-for-me ${target})
  add_dependencies(install-for-me ${target}-install-for-me)

  if(NOT BUILD_TESTING)
    return()
  endif()
  treadle_add_library_check(${target} ${name} "${arg_LABELS}")
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/test/*_test.cpp")
  if(NOT Treadle_Testing_FOUND OR NOT sources)
    return()
  endif()
  # An object library: executables are compiled with another flavour of position independence, for which the
  # precompiled header would be no good.
  add_library(${target}-test-objects OBJECT ${sources})
  target_link_libraries(${target}-test-objects PUBLIC ${target}-objects treadle::testing ${arg_TEST_LINK})
  target_compile_definitions(${target}-test-objects PRIVATE TREADLE_PLUGIN_FOLDER="${CMAKE_CURRENT_SOURCE_DIR}")
  treadle_compile_as_plugin(${target}-test-objects)
  if(arg_PCH)
    treadle_use_pch(${target}-test-objects ${arg_PCH})
  endif()
  add_executable(${target}-tests)
  target_link_libraries(${target}-tests PRIVATE ${target}-test-objects ${target}-objects GTest::gtest_main)
  set_target_properties(${target}-tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  add_dependencies(${target}-tests ${target})
  add_test(NAME ${name}.tests COMMAND ${target}-tests --gtest_brief=1)
  set_tests_properties(${name}.tests PROPERTIES TIMEOUT 300 LABELS "${arg_LABELS}"
      ENVIRONMENT "OMP_NUM_THREADS=1")
endfunction()

# treadle_add_library_check(<target> <name> <labels>): the test <name>.check, what every component of an interface must keep.
function(treadle_add_library_check target name labels)
  add_test(NAME ${name}.check COMMAND "${TREADLE_RUNNER}" plugins check --contract "$<TARGET_FILE:${target}>")
  set_tests_properties(${name}.check PROPERTIES TIMEOUT 300 LABELS "${labels}" ENVIRONMENT "OMP_NUM_THREADS=1")
endfunction()

# treadle_package_plugin([NAME <name>] MAINTAINER <"Name <address>">)
#   Makes `cpack` write treadle-plugin-<name>_<version>_<architecture>.deb: the plugin's library where the packaged
#   Treadle looks for it, and nothing else. Version and summary are those of plugin.json. Comes after
#   treadle_add_plugin() of the same name; does nothing where the plugin is a part of another project.
function(treadle_package_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;MAINTAINER" "")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_MAINTAINER)
    message(FATAL_ERROR "treadle_package_plugin: expected [NAME name] MAINTAINER \"Name <address>\", got: ${ARGV}")
  endif()
  if(NOT CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    return()
  endif()
  set(name "${arg_NAME}")
  if(NOT name)
    get_filename_component(name "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  endif()
  # Wherever Treadle was installed here: a package is for machines where it lies in /usr.
  install(TARGETS treadle-plugin-${name} COMPONENT treadle-package EXCLUDE_FROM_ALL LIBRARY
      DESTINATION "lib/${CMAKE_LIBRARY_ARCHITECTURE}/treadle/plugins/${TREADLE_ABI_MAJOR}")

  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/plugin.json")
  file(READ "${CMAKE_CURRENT_SOURCE_DIR}/plugin.json" manifest)
  string(JSON CPACK_PACKAGE_VERSION GET "${manifest}" version)
  string(JSON CPACK_PACKAGE_DESCRIPTION_SUMMARY GET "${manifest}" summary)
  string(JSON CPACK_PACKAGE_HOMEPAGE_URL ERROR_VARIABLE no_url GET "${manifest}" url)
  if(no_url)
    unset(CPACK_PACKAGE_HOMEPAGE_URL)
  endif()
  string(TOLOWER "treadle-plugin-${name}" CPACK_PACKAGE_NAME)
  string(REPLACE "_" "-" CPACK_PACKAGE_NAME "${CPACK_PACKAGE_NAME}")
  set(CPACK_PACKAGE_CONTACT "${arg_MAINTAINER}")
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};${CMAKE_PROJECT_NAME};treadle-package;/")
  set(CPACK_STRIP_FILES ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION science)
  # libtorch, TBB and the C++ library come with the package of the host that loads the plugin.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "treadle (>= ${Treadle_VERSION})")
  include(CPack)
endfunction()
