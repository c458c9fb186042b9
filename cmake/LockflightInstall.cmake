# What `cmake --install` leaves: headers, the libraries for C++, C and Fortran, for each MPI,
# UCX, libfabric and OpenSHMEM too, the programs, and how to find them all.
#
#   lib/liblockflight.so, lib/liblockflight_MPI.so      for C: shared memory, and each MPI beside it
#   lib/liblockflight_c_ucx.so, lib/liblockflight_c_libfabric.so  for C: UCX, libfabric beside it
#   lib/liblockflight_shmem.so                          for C: OpenSHMEM beside it
#   lib/liblockflight_profile.a                         for C++: profiles of locks' parameters
#   lib/liblockflight_domain.a, lib/liblockflight_catalogue.a  for C++: named locks
#   lib/liblockflight_shm.a, lib/liblockflight_mpi_MPI.a  for C++: the fabrics
#   lib/liblockflight_network.a, lib/liblockflight_wireup.a  what the networks share
#   lib/liblockflight_wired.a, lib/liblockflight_launcher.a  what UCX and libfabric share
#   lib/liblockflight_ucx.a, lib/liblockflight_libfabric.a  for C++: the fabrics on UCX, libfabric
#   lib/liblockflight_oshmem.a                          for C++: the fabric on OpenSHMEM
#   lib/liblockflight_fortran*.a, include/lockflight/fortran/  for Fortran
#   lib/lockflight/MPI/liblockflight-mpi.so             the drop-in for MPI_Win_lock
#   lib/lockflight/abi/liblockflight-mpi-abi.so         the same for the standard's binary interface
#   bin/lockflight, bin/lockflight-lab                  the programs
#   bin/lockflight-agent, lib/systemd/system/lockflight-agent.service  the agent of a cluster's host
#   bin/lockflight.MPI, bin/lockflight.FABRIC           lockflight with the lab of a network
#   libexec/lockflight/lockflight-lab.MPI, …-lab.FABRIC  these labs
#
# `cmake --install BUILD --component NAME` installs a part of it:
#
#   programs      the programs, their manual pages and completions, the unit of the agent
#   runtime       liblockflight.so.N, which programs in C and Fortran load
#   development   headers, what links with shared memory, the CMake package, pkg-config files
#   FABRIC        all that belongs to openmpi, mpich, ucx, libfabric, oshmem: libraries, the drop-in,
#                 its programs, its part of the CMake package, its pkg-config file
#   abi           the drop-in for the standard's binary interface
#   python        the Python package, where LOCKFLIGHT_INSTALL_PYTHONDIR says where it goes
#
# The part of a fabric needs `runtime`; to compile with it, `development` as well.

include(CMakePackageConfigHelpers)

set(lockflight_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/lockflight")

# ---- headers and libraries -------------------------------------------------------------------

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/lockflight"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  COMPONENT development
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")

# lockflight_install(EXPORT COMPONENT RUNTIME TARGET...): targets in an export of their own, all in
# COMPONENT but the shared libraries that programs load, which are in RUNTIME.
function(lockflight_install export component runtime)
  install(TARGETS ${ARGN} EXPORT ${export}
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ${component}
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ${runtime}
            NAMELINK_COMPONENT ${component})
  install(EXPORT ${export} NAMESPACE lockflight:: DESTINATION "${lockflight_package_dir}"
    COMPONENT ${component})
endfunction()

set(core lockflight lockflight_shm lockflight_network lockflight_wireup)
if(TARGET lockflight_domain)
  list(APPEND core lockflight_catalogue lockflight_domain)
endif()
if(TARGET lockflight_profile)
  list(APPEND core lockflight_profile)
endif()
if(LOCKFLIGHT_C)
  list(APPEND core lockflight_c)
endif()
lockflight_install(lockflight-targets development runtime ${core})
if(TARGET lockflight_fortran)
  lockflight_install(lockflight-fortran-targets development runtime
    lockflight_fortran lockflight_fortran_mpi)
  install(FILES "${lockflight_fortran_modules}/lockflight.mod"
    DESTINATION "${lockflight_fortran_includedir}" COMPONENT development)
endif()
foreach(mpi IN LISTS lockflight_mpis)
  set(of_mpi lockflight_use_${mpi} lockflight_mpi_${mpi})
  if(LOCKFLIGHT_C)
    list(APPEND of_mpi lockflight_c_${mpi})
  endif()
  if(TARGET lockflight_fortran_${mpi})
    list(APPEND of_mpi lockflight_fortran_${mpi})
  endif()
  lockflight_install(lockflight-${mpi}-targets ${mpi} ${mpi} ${of_mpi})
endforeach()
foreach(abi IN LISTS lockflight_abis)
  if(TARGET lockflight_preload_${abi})
    install(TARGETS lockflight_preload_${abi}
      LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/lockflight/${abi}" COMPONENT ${abi})
  endif()
endforeach()
if(lockflight_wired_fabrics)
  lockflight_install(lockflight-wired-targets development runtime lockflight_launcher lockflight_wired)
endif()
foreach(fabric IN LISTS lockflight_wired_fabrics)
  set(of_fabric lockflight_${fabric})
  if(LOCKFLIGHT_C)
    list(APPEND of_fabric lockflight_c_${fabric})
  endif()
  lockflight_install(lockflight-${fabric}-targets ${fabric} ${fabric} ${of_fabric})
endforeach()
if(lockflight_oshmem)
  set(of_oshmem lockflight_use_oshmem lockflight_oshmem)
  if(LOCKFLIGHT_C)
    list(APPEND of_oshmem lockflight_c_oshmem)
  endif()
  lockflight_install(lockflight-oshmem-targets oshmem oshmem ${of_oshmem})
endif()

set(lockflight_components ${lockflight_mpis})
set(lockflight_wired_others "")
if(lockflight_pmix)
  set(lockflight_wired_others pmix)
endif()
list(APPEND lockflight_components ${lockflight_launched_fabrics})

# ---- the CMake package -----------------------------------------------------------------------

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
  DESTINATION "${lockflight_package_dir}"
  COMPONENT development)

# ---- pkg-config ------------------------------------------------------------------------------

# Relative to where the pkg-config file lies, so that `cmake --install --prefix` moves it all.
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}"
  OUTPUT_VARIABLE lockflight_pc_to_prefix)
file(RELATIVE_PATH lockflight_pc_to_prefix
  "${lockflight_pc_to_prefix}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
cmake_path(APPEND lockflight_pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND lockflight_pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
set(lockflight_pc_cflags "")
set(lockflight_pc_libs "")
set(lockflight_pc_mpi_libs "")
if(TARGET lockflight_fortran)
  string(APPEND lockflight_pc_cflags " -I\${includedir}/lockflight/fortran")
  string(APPEND lockflight_pc_libs " -llockflight_fortran")
  string(APPEND lockflight_pc_mpi_libs " -llockflight_fortran_mpi")
endif()
# A static library for C comes before what it is made of.
set(lockflight_pc_libs_for_cxx "")
set(lockflight_pc_network "")
if(LOCKFLIGHT_C AND lockflight_c_kind STREQUAL "STATIC")
  string(APPEND lockflight_pc_libs " -llockflight")
  string(APPEND lockflight_pc_mpi_libs " -llockflight_@lockflight_pc_mpi@")
  set(lockflight_pc_libs_for_cxx " -lstdc++ -lm")
  set(lockflight_pc_network " -llockflight_network")
endif()
if(TARGET lockflight_profile)
  string(APPEND lockflight_pc_libs " -llockflight_profile")
endif()
if(TARGET lockflight_domain)
  string(APPEND lockflight_pc_libs " -llockflight_domain -llockflight_catalogue")
endif()
# Programs in C++ use nothing of the libraries for C, and should not need them when they start. The
# two say so in different words, because pkg-config drops what it has said before.
if(LOCKFLIGHT_C AND lockflight_c_kind STREQUAL "SHARED")
  string(APPEND lockflight_pc_libs " -Wl,--push-state,--as-needed -llockflight -Wl,--pop-state")
  string(APPEND lockflight_pc_mpi_libs
    " -Wl,--as-needed -llockflight_@lockflight_pc_mpi@ -Wl,--no-as-needed")
endif()

set(lockflight_pc_oshmem_libs "")
set(lockflight_pc_oshmem_c "")
if(LOCKFLIGHT_C AND lockflight_c_kind STREQUAL "STATIC")
  set(lockflight_pc_oshmem_c " -llockflight_shmem")
elseif(LOCKFLIGHT_C)
  set(lockflight_pc_oshmem_libs " -Wl,--as-needed -llockflight_shmem -Wl,--no-as-needed")
endif()

function(lockflight_install_pc name template component)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/${template}" "${PROJECT_BINARY_DIR}/${name}" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
    COMPONENT ${component})
endfunction()

lockflight_install_pc(lockflight.pc lockflight.pc.in development)
foreach(lockflight_pc_mpi IN LISTS lockflight_mpis)
  set(lockflight_pc_mpi_module ${lockflight_mpi_module_${lockflight_pc_mpi}})
  string(CONFIGURE "${lockflight_pc_mpi_libs}" lockflight_pc_libs_of_mpi @ONLY)
  lockflight_install_pc(lockflight-${lockflight_pc_mpi}.pc lockflight-mpi.pc.in ${lockflight_pc_mpi})
endforeach()
list(JOIN lockflight_wired_others ", " lockflight_pc_wired_others)
foreach(fabric IN LISTS lockflight_wired_fabrics)
  set(lockflight_pc_wired ${fabric})
  set(lockflight_pc_wired_libs "")
  set(lockflight_pc_wired_c "")
  if(LOCKFLIGHT_C AND lockflight_c_kind STREQUAL "STATIC")
    set(lockflight_pc_wired_c " -llockflight_c_${fabric}")
  elseif(LOCKFLIGHT_C)
    set(lockflight_pc_wired_libs " -Wl,--as-needed -llockflight_c_${fabric} -Wl,--no-as-needed")
  endif()
  lockflight_install_pc(lockflight-${fabric}.pc lockflight-wired.pc.in ${fabric})
endforeach()
if(lockflight_oshmem)
  lockflight_install_pc(lockflight-oshmem.pc lockflight-oshmem.pc.in oshmem)
endif()

# ---- the programs ----------------------------------------------------------------------------

# As Debian names mpirun.openmpi and mpirun.mpich. Users run a lab with a network through the
# lockflight of the same name.
function(lockflight_install_with fabric)
  install(PROGRAMS "$<TARGET_FILE:lockflight_program_${fabric}>"
    DESTINATION "${CMAKE_INSTALL_BINDIR}" RENAME lockflight.${fabric} COMPONENT ${fabric})
  install(PROGRAMS "$<TARGET_FILE:lockflight_lab_program_${fabric}>"
    DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/lockflight" RENAME lockflight-lab.${fabric}
    COMPONENT ${fabric})
endfunction()

if(TARGET lockflight_program)
  set(programs lockflight_program)
  if(TARGET lockflight_lab_program)
    list(APPEND programs lockflight_lab_program)
    foreach(fabric IN LISTS lockflight_components)
      lockflight_install_with(${fabric})
    endforeach()
  endif()
  install(TARGETS ${programs}
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT programs)
  if(TARGET lockflight_agent_program)
    install(TARGETS lockflight_agent_program
      RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT programs)
    configure_file("${PROJECT_SOURCE_DIR}/src/names/agent/program/lockflight-agent.service.in"
      "${PROJECT_BINARY_DIR}/lockflight-agent.service" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/lockflight-agent.service"
      DESTINATION "${LOCKFLIGHT_INSTALL_UNITDIR}" COMPONENT programs)
  endif()
  # A build may generate these; one that does not installs none.
  foreach(program IN ITEMS lockflight lockflight-lab)
    string(REPLACE "-" "_" function "_${program}")
    install(FILES "${PROJECT_BINARY_DIR}/man/${program}.1"
      DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT programs OPTIONAL)
    install(FILES "${PROJECT_BINARY_DIR}/completions/${program}.bash"
      DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME ${program}
      COMPONENT programs OPTIONAL)
    install(FILES "${PROJECT_BINARY_DIR}/completions/${function}"
      DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" COMPONENT programs OPTIONAL)
    install(FILES "${PROJECT_BINARY_DIR}/completions/${program}.fish"
      DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" COMPONENT programs OPTIONAL)
  endforeach()
endif()

# ---- the Python package ----------------------------------------------------------------------

# pip installs the package by itself; this is for those who make packages of another kind.
if(TARGET lockflight_python AND LOCKFLIGHT_INSTALL_PYTHONDIR)
  set(python_package "${LOCKFLIGHT_INSTALL_PYTHONDIR}/lockflight")
  install(TARGETS lockflight_python LIBRARY DESTINATION "${python_package}" COMPONENT python)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/bindings/python/src/lockflight/" DESTINATION "${python_package}"
    COMPONENT python
    FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed"
    PATTERN "__pycache__" EXCLUDE)
endif()

# ---- the licence -----------------------------------------------------------------------------

# In the part that there always is. Each package of Debian has a file `copyright` of its own instead.
if(LOCKFLIGHT_DEBIAN)
  include(LockflightDebian)
else()
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE"
    "${PROJECT_SOURCE_DIR}/packaging/licences-of-others.txt"
    DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT development)
endif()
