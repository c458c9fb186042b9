# What `cmake --install` leaves: headers, the shm fabric, the program, and how to find them.

include(CMakePackageConfigHelpers)

set(lockflight_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/lockflight")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/lockflight"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(TARGETS lockflight lockflight_shm EXPORT lockflight-targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT lockflight-targets NAMESPACE lockflight::
  DESTINATION "${lockflight_package_dir}")

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/lockflight-config.cmake.in"
  "${PROJECT_BINARY_DIR}/lockflight-config.cmake"
  INSTALL_DESTINATION "${lockflight_package_dir}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/lockflight-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/lockflight-config.cmake"
  "${PROJECT_BINARY_DIR}/lockflight-config-version.cmake"
  DESTINATION "${lockflight_package_dir}")

# Relative to where the pkg-config file lies, so that `cmake --install --prefix` moves it all.
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}"
  OUTPUT_VARIABLE lockflight_pc_to_prefix)
file(RELATIVE_PATH lockflight_pc_to_prefix
  "${lockflight_pc_to_prefix}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
cmake_path(APPEND lockflight_pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND lockflight_pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/lockflight.pc.in"
  "${PROJECT_BINARY_DIR}/lockflight.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/lockflight.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

if(TARGET lockflight_program)
  install(TARGETS lockflight_program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  # A build may generate these; one that does not installs none.
  install(FILES "${PROJECT_BINARY_DIR}/man/lockflight.1"
    DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" OPTIONAL)
  install(FILES "${PROJECT_BINARY_DIR}/completions/lockflight.bash"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME lockflight
    OPTIONAL)
  install(FILES "${PROJECT_BINARY_DIR}/completions/_lockflight"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" OPTIONAL)
  install(FILES "${PROJECT_BINARY_DIR}/completions/lockflight.fish"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" OPTIONAL)
endif()

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}")
