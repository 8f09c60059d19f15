# `cmake --install`: the programs, lockstep::sim and lockstep::calibration for find_package(lockstep), and
# the data that the programs read.
include(CMakePackageConfigHelpers)
set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/lockstep")

install(TARGETS lockstep_sim lockstep_calibration EXPORT lockstep-targets)
install(EXPORT lockstep-targets NAMESPACE lockstep:: DESTINATION "${config_dir}")
foreach(room sim calibration)
  install(DIRECTORY ${room} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/lockstep"
          FILES_MATCHING PATTERN "*.h" PATTERN "data" EXCLUDE)
endforeach()
write_basic_package_version_file(lockstep-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/lockstep-config.cmake.in lockstep-config.cmake @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/lockstep-config.cmake"
              "${PROJECT_BINARY_DIR}/lockstep-config-version.cmake"
        DESTINATION "${config_dir}")
install(FILES cmake/dependencies.cmake DESTINATION "${config_dir}" RENAME lockstep-dependencies.cmake)

install(TARGETS lockstep)
if(TARGET lockstep-measure)
  install(TARGETS lockstep-measure)
endif()
install(DIRECTORY scenarios plots DESTINATION "${CMAKE_INSTALL_DATADIR}/lockstep"
        FILES_MATCHING PATTERN "*.yaml" PATTERN "*.py")
install(DIRECTORY calibration/data DESTINATION "${CMAKE_INSTALL_DATADIR}/lockstep/calibration" OPTIONAL)
