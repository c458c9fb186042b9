# The packages of Debian, for `cpack -G DEB` in a build of the preset `package`: one for each component
# of LockflightInstall.cmake. ./dev package builds and tests them. What their programs and libraries
# need dpkg-shlibdeps finds out; what is said here is what it cannot know.

set(debian "${PROJECT_SOURCE_DIR}/packaging/debian")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "the lockflight authors")
set(LOCKFLIGHT_DEBIAN_MAINTAINER "the lockflight authors <lockflight@localhost>" CACHE STRING
  "Whom the packages name as their maintainer, as \"NAME <ADDRESS>\"")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${LOCKFLIGHT_DEBIAN_MAINTAINER}")
set(CPACK_PACKAGE_NAME lockflight)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL "")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
if(CMAKE_CROSSCOMPILING)  # cpack itself takes the architecture of the machine that it runs on
  execute_process(COMMAND dpkg-architecture -f -t "${LOCKFLIGHT_TARGET}" -q DEB_HOST_ARCH
    OUTPUT_VARIABLE CPACK_DEBIAN_PACKAGE_ARCHITECTURE OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
endif()
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The libraries of other components are not installed where the packages are built.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(same "(= ${PROJECT_VERSION})")

# As the text of a field: indented, and a dot in each empty line.
file(READ "${PROJECT_SOURCE_DIR}/packaging/licences-of-others.txt" lockflight_licences_of_others)
string(STRIP "${lockflight_licences_of_others}" lockflight_licences_of_others)
string(REGEX REPLACE "\n" "\n " lockflight_licences_of_others " ${lockflight_licences_of_others}")
string(REGEX REPLACE "\n \n" "\n .\n" lockflight_licences_of_others
  "${lockflight_licences_of_others}")

# -n: without the time, so that two builds are alike.
configure_file("${debian}/changelog.in" "${PROJECT_BINARY_DIR}/debian/changelog" @ONLY)
execute_process(COMMAND gzip -9nkf "${PROJECT_BINARY_DIR}/debian/changelog"
  COMMAND_ERROR_IS_FATAL ANY)

# lockflight_debian_package(COMPONENT PACKAGE SECTION SUMMARY DESCRIPTION
#                           [DEPENDS …] [RECOMMENDS …] [SUGGESTS …] [CONTROL FILE…]
#                           [LINTIAN NAME…])
#   FILEs are the package's control files besides `control`. NAMEs are files of packaging/debian/lintian,
#   which say what lintian finds and why it stays. A macro: cpack reads variables.
macro(lockflight_debian_package component package section summary description)
  cmake_parse_arguments(arg "" "" "DEPENDS;RECOMMENDS;SUGGESTS;CONTROL;LINTIAN" ${ARGN})
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${description}")
  foreach(relation IN ITEMS DEPENDS RECOMMENDS SUGGESTS)
    list(JOIN arg_${relation} ", " CPACK_DEBIAN_${upper}_PACKAGE_${relation})
  endforeach()
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${arg_CONTROL})
  configure_file("${debian}/copyright.in" "${PROJECT_BINARY_DIR}/debian/${package}/copyright" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/debian/${package}/copyright"
    "${PROJECT_BINARY_DIR}/debian/changelog.gz"
    DESTINATION "share/doc/${package}" COMPONENT ${component})
  if(arg_LINTIAN)
    set(overrides "")
    foreach(name IN LISTS arg_LINTIAN)
      file(READ "${debian}/lintian/${name}" text)
      string(APPEND overrides "${text}")
    endforeach()
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/debian/${package}/overrides" CONTENT "${overrides}"
      @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/debian/${package}/overrides"
      DESTINATION share/lintian/overrides RENAME ${package} COMPONENT ${component})
  endif()
endmacro()

# lockflight_debian_shlibs(PACKAGE LIBRARY…): on which package a program depends that links them, and
# that the loader's list of libraries is made anew. Before 1.0 any minor version may change them.
# Sets `shlibs` to the control files that say so.
set(abi ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
math(EXPR next "${PROJECT_VERSION_MINOR} + 1")
set(next ${PROJECT_VERSION_MAJOR}.${next})
function(lockflight_debian_shlibs package)
  set(text "")
  foreach(library IN LISTS ARGN)
    string(APPEND text
      "${library} ${abi} ${package} (>= ${abi}~), ${package} (<< ${next}~)\n")
  endforeach()
  set(folder "${PROJECT_BINARY_DIR}/debian/${package}")
  file(CONFIGURE OUTPUT "${folder}/shlibs" CONTENT "${text}" @ONLY)
  file(CONFIGURE OUTPUT "${folder}/triggers" CONTENT "activate-noawait ldconfig\n" @ONLY)
  set(shlibs "${folder}/shlibs" "${folder}/triggers" PARENT_SCOPE)
endfunction()

# ---- the machine's own locks -----------------------------------------------------------------

set(of_lockflight "\
lockflight is a library of locks for memory that is reached over a
network, and of named locks for processes that come, go and die.
")
set(fabric_packages "")

if(TARGET lockflight_program)
  lockflight_debian_package(programs lockflight utils
    "named locks for scripts and services"
    "${of_lockflight}This package has the commands lockflight, lockflight-lab and
lockflight-agent. A process that is killed while it holds a lock
frees it."
    SUGGESTS etcd-server
    CONTROL "${debian}/programs/postinst" "${debian}/programs/prerm" "${debian}/programs/postrm"
    LINTIAN programs)
  # The agent's options are in lockflight(1), of which lockflight-agent is one command.
  install(CODE "file(CREATE_LINK lockflight.1.gz
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1/lockflight-agent.1.gz\" SYMBOLIC)"
    COMPONENT programs)
  # As Debian has its manual pages. -n: without the time, so that two builds are alike.
  install(CODE "file(GLOB pages \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1/*.1\")
    execute_process(COMMAND gzip -9nf \${pages} COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT programs)
endif()

if(LOCKFLIGHT_C)
  lockflight_debian_shlibs(liblockflight0 liblockflight)
  lockflight_debian_package(runtime liblockflight0 libs
    "distributed and named locks, library for C"
    "${of_lockflight}This package has the library that programs in C and Fortran load."
    CONTROL ${shlibs}
    LINTIAN libraries)
endif()

if(TARGET lockflight_python)
  lockflight_debian_package(python python3-lockflight python
    "named locks for Python"
    "${of_lockflight}This package has the module lockflight for Python."
    # Its module is compiled for one version of Python.
    DEPENDS "python3 (>= ${lockflight_python_version})"
            "python3 (<< ${lockflight_next_python_version}~)"
    CONTROL "${debian}/python/postinst" "${debian}/python/prerm")
endif()

# ---- fabrics ---------------------------------------------------------------------------------

# lockflight_debian_fabric(FABRIC PACKAGE NAME LIBRARY PACKAGE-WITH-LAUNCHER PACKAGES-TO-COMPILE
#                          [OVERRIDES])
macro(lockflight_debian_fabric fabric package name library launcher headers)
  lockflight_debian_shlibs(${package} ${library})
  list(APPEND fabric_packages "${package} ${same}")
  lockflight_debian_package(${fabric} ${package} libs
    "distributed locks on ${name}"
    "${of_lockflight}This package has all that belongs to ${name}: libraries for C,
C++ and Fortran, the program lockflight.${fabric}, and for an MPI the
drop-in that replaces MPI_Win_lock in programs that are not changed."
    DEPENDS "liblockflight0 ${same}"
    RECOMMENDS ${launcher}
    SUGGESTS "liblockflight-dev ${same}" ${headers}
    CONTROL ${shlibs}
    LINTIAN libraries fabrics ${ARGN})
endmacro()

set(name_openmpi "Open MPI")
set(launcher_openmpi openmpi-bin)
set(overrides_openmpi search_path)
set(name_mpich "MPICH")
set(launcher_mpich mpich)
foreach(mpi IN LISTS lockflight_mpis)
  lockflight_debian_fabric(${mpi} lockflight-mpi-${mpi} "${name_${mpi}}" liblockflight_${mpi}
    "${launcher_${mpi}}" lib${mpi}-dev ${overrides_${mpi}})
endforeach()
foreach(fabric IN LISTS lockflight_wired_fabrics)
  lockflight_debian_fabric(${fabric} lockflight-${fabric} "${lockflight_title_${fabric}}"
    liblockflight_c_${fabric} "" "${lockflight_headers_${fabric}};libpmix-dev" search_path)
endforeach()
if(lockflight_oshmem)
  lockflight_debian_fabric(oshmem lockflight-oshmem "OpenSHMEM" liblockflight_shmem
    openmpi-bin libopenmpi-dev)
endif()
if(TARGET lockflight_preload_abi)
  lockflight_debian_package(abi lockflight-mpi-abi libs
    "locks for MPI programs, for the standard's binary interface"
    "${of_lockflight}This package has the drop-in that replaces MPI_Win_lock in programs
that are not changed, for those that were compiled for the binary
interface of the MPI 5 standard.")
endif()

# ---- to compile with it ----------------------------------------------------------------------

lockflight_debian_package(development liblockflight-dev libdevel
  "distributed and named locks, to compile with"
  "${of_lockflight}This package has the headers, the libraries for C++, and what CMake
and pkg-config need. Those of a fabric are in the package of the
fabric."
  DEPENDS "liblockflight0 ${same}" libhwloc-dev "pkgconf | pkg-config"
  SUGGESTS ${fabric_packages})

include(CPack)
