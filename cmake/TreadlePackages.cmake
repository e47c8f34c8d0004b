# What cpack makes: `treadle`, with which people run workflows; `treadle-plugin-<name>` for each plugin that needs a library
# of its own, which treadle recommends or suggests (PACKAGE of treadle_add_plugin()); and `treadle-dev`, with which they
# write plugins and embed.
# Debian packages, for the Debian they are built on: their dependencies are what dpkg-shlibdeps finds there. scripts/package
# builds them with Debian's folder for libraries; cpack in any other build uses that build's.
include(GNUInstallDirs)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME treadle)
set(CPACK_PACKAGE_VENDOR Treadle)
set(CPACK_PACKAGE_CONTACT "${TREADLE_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # cpack has one for all packages; here each description begins with its own
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
get_property(packaged_plugins GLOBAL PROPERTY TREADLE_PACKAGED_PLUGINS)
set(CPACK_COMPONENTS_ALL runtime dev ${packaged_plugins})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# One version of our libraries is for programs built with that version.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY =)
# Our own libraries are in no package while these are made.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME treadle)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
set(summary "plugin-based training workflows on libtorch")
set(about "One JSON document names data, model, loss, optimizer and validation;
shared-library plugins provide them; oneTBB flow graphs run them on libtorch.")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "${summary}\n${about}

This package has the program workflow-runner and the plugins that need no
library of their own. Each other plugin is a package treadle-plugin-<name>.")
# libtorch alone would bring the reference BLAS, which is 13 to 20 times slower.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS libopenblas0-pthread)

# Another minor version of libtorch is another binary interface.
string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" torch "${Torch_VERSION}")
math(EXPR next_minor "${CMAKE_MATCH_2} + 1")
string(JOIN ", " dev_depends "treadle (= ${PROJECT_VERSION})"
    "libtorch-dev (>= ${torch})" "libtorch-dev (<< ${CMAKE_MATCH_1}.${next_minor}~)"
    "libtbb-dev (>= 2021.8)" "nlohmann-json3-dev (>= 3.11)" "libgtest-dev (>= 1.12)" "libgmock-dev (>= 1.12)")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME treadle-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${dev_depends}")
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "g++ (>= 4:12), cmake (>= 3.25)")
set(CPACK_COMPONENT_DEV_DESCRIPTION "${summary} (development files)\n${about}

This package has the headers, the CMake package and the contract suites with
which plugins are written and tested, and what a C++ program needs to run
workflows itself.")

# What every Debian package has: copyright and changelog; and a word to ldconfig about the shared libraries.
set(documents "${PROJECT_BINARY_DIR}/packages")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE "${documents}/changelog" "treadle (${PROJECT_VERSION}) unstable; urgency=medium\n\n"
     "  * See CHANGELOG.md.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
file(WRITE "${documents}/copyright" "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
     "Upstream-Name: Treadle\n\nFiles: *\nCopyright: The Treadle developers\nLicense: Apache-2.0\n"
     " On Debian systems, the text of the license is in\n /usr/share/common-licenses/Apache-2.0.\n\n"
     "Files: examples/data/penguins.csv\nCopyright: none; K. Gorman, Palmer Station LTER\nLicense: CC0-1.0\n"
     " On Debian systems, the text of the license is in\n /usr/share/common-licenses/CC0-1.0.\n")
file(WRITE "${documents}/triggers" "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${documents}/triggers")
file(ARCHIVE_CREATE OUTPUT "${documents}/changelog.gz" PATHS "${documents}/changelog" FORMAT raw
     COMPRESSION GZip COMPRESSION_LEVEL 9)
install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md" "${documents}/copyright"
              "${documents}/changelog.gz" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/treadle" COMPONENT runtime)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/guide" "${PROJECT_SOURCE_DIR}/docs/tutorials" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/treadle" COMPONENT runtime)
install(FILES "${PROJECT_SOURCE_DIR}/examples/iris.json"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/treadle/examples" COMPONENT runtime)
install(FILES "${PROJECT_SOURCE_DIR}/examples/data/iris.csv" "${PROJECT_SOURCE_DIR}/examples/data/iris-start.safetensors"
              "${PROJECT_SOURCE_DIR}/examples/data/penguins.csv"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/treadle/examples/data" COMPONENT runtime)
install(FILES "${documents}/copyright" "${documents}/changelog.gz"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/treadle-dev" COMPONENT dev)

# The packages of plugins: version, architecture and dependencies on libraries come from cpack, as above.
set(recommended "")
set(suggested "")
foreach(component IN LISTS packaged_plugins)
  string(TOLOWER "${component}" package)
  string(REPLACE "_" "-" package "${package}")
  get_target_property(folder ${component} SOURCE_DIR)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/plugin.json")
  file(READ "${folder}/plugin.json" manifest)
  string(JSON what GET "${manifest}" summary)
  string(REPLACE "treadle-plugin-" "" plugin "${component}")
  string(TOUPPER "${component}" COMPONENT)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_DEPENDS "treadle (= ${PROJECT_VERSION})")
  set(CPACK_COMPONENT_${COMPONENT}_DESCRIPTION "${summary} (${plugin})\n${about}

This package has the plugin ${plugin}.
${what}.")
  install(FILES "${folder}/README.md" "${documents}/copyright" "${documents}/changelog.gz"
          DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${package}" COMPONENT ${component} OPTIONAL)  # README.md
  get_target_property(kind ${component} TREADLE_PACKAGE)
  list(APPEND ${kind} "${package} (= ${PROJECT_VERSION})")
endforeach()
string(JOIN ", " CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS ${recommended})
string(JOIN ", " CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS ${suggested})

include(CPack)
