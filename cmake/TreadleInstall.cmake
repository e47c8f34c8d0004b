# What an installed Treadle consists of: programs, libraries, headers, and a CMake package with the components
# SDK (write plugins) and Run (run workflows from C++). Components for packages: `dev` is what compiles against
# Treadle, treadle-plugin-<name> a plugin with a package of its own, everything else is `runtime`. Plugins are installed by
# treadle_add_plugin().
include(CMakePackageConfigHelpers)
set(TREADLE_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/Treadle")

set(libraries treadle-base treadle-tensor treadle-core treadle-search treadle-table treadle-plan treadle-graph treadle-engine treadle-catalog treadle-record treadle-launch treadle-compare treadle-describe treadle-explain treadle-run treadle-sdk
    treadle-testing treadle-torch)
foreach(library IN LISTS libraries)
  string(REPLACE "treadle-" "" short ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${short})
  if(NOT short STREQUAL "torch")
    get_target_property(kind ${library} TYPE)
    if(kind STREQUAL "SHARED_LIBRARY")
      set_target_properties(${library} PROPERTIES INSTALL_RPATH "$ORIGIN")
    endif()
  endif()
endforeach()
install(TARGETS ${libraries} EXPORT TreadleTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
set_target_properties(treadle-pack PROPERTIES EXPORT_NAME pack
    INSTALL_RPATH "$ORIGIN/../../${CMAKE_INSTALL_LIBDIR}")
install(TARGETS treadle-pack EXPORT TreadleTargets
        RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/treadle COMPONENT dev)
install(EXPORT TreadleTargets NAMESPACE treadle:: DESTINATION ${TREADLE_PACKAGE_DIR} COMPONENT dev)

foreach(part IN ITEMS framework/base framework/tensor framework/core framework/search framework/table framework/plan framework/graph framework/engine framework/host/catalog framework/host/record framework/host/launch framework/host/compare framework/host/describe framework/host/explain framework/host/run
                      sdk sdk/testing)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${part}/include")
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${part}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
  endif()
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TreadleConfig.cmake.in
    ${PROJECT_BINARY_DIR}/TreadleConfig.cmake INSTALL_DESTINATION ${TREADLE_PACKAGE_DIR}
    PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TreadleConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TreadleConfig.cmake ${PROJECT_BINARY_DIR}/TreadleConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/TreadlePlugin.cmake ${PROJECT_SOURCE_DIR}/cmake/TreadlePluginProject.cmake
              ${PROJECT_SOURCE_DIR}/cmake/TreadleInstallForMe.cmake ${PROJECT_SOURCE_DIR}/cmake/plugin_exports.map
        DESTINATION ${TREADLE_PACKAGE_DIR} COMPONENT dev)
