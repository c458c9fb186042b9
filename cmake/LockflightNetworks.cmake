# The wired networks: libraries for RDMA on which a launch runs without MPI (src/fabric/wired/). To add
# one, write
#   src/fabric/NAME/                      its transport (src/fabric/wired/transport.hpp) and environment
#   include/lockflight/fabric/NAME.hpp    lockflight::NAME::environment, for C++
#   include/lockflight/lockflight.h       lockflight_join_NAME, for C
#   examples/NAME/first.cpp               the shortest program on it
#   tests/fabric/wired/CMakeLists.txt     which of its transports the contract and the locks are tested on
# and a line below. The library for C, the lab's program, the tests' programs, the CMake package,
# pkg-config files, the package for Debian, and the fabrics that error messages accept follow from the line.

# lockflight_wired_network(NAME TITLE PACKAGE): a network that is built where pkg-config finds NAME. TITLE
# is its name in texts, PACKAGE the package of Debian that has its headers.
set(lockflight_wired_networks "")
macro(lockflight_wired_network name title package)
  list(APPEND lockflight_wired_networks ${name})
  set(lockflight_title_${name} "${title}")
  set(lockflight_headers_${name} ${package})
  string(TOUPPER ${name} lockflight_option)
  option(LOCKFLIGHT_${lockflight_option} "Build what runs on ${title}, where it is found" ${PROJECT_IS_TOP_LEVEL})
endmacro()

lockflight_wired_network(ucx "UCX" libucx-dev)
lockflight_wired_network(libfabric "libfabric" libfabric-dev)

# lockflight_find_wired_networks(): sets lockflight_wired_fabrics to the networks that are ON and found,
# and lockflight_pmix to whether launchers can start what runs on them.
function(lockflight_find_wired_networks)
  set(found "")
  set(wanted "")
  foreach(name IN LISTS lockflight_wired_networks)
    string(TOUPPER ${name} option)
    if(NOT LOCKFLIGHT_${option} OR LOCKFLIGHT_SANITIZE)
      continue()
    endif()
    list(APPEND wanted "${lockflight_title_${name}}")
    pkg_check_modules(LOCKFLIGHT_${name} QUIET IMPORTED_TARGET GLOBAL ${name})
    if(LOCKFLIGHT_${name}_FOUND)
      list(APPEND found ${name})
    else()
      lockflight_missing("No pkg-config module ${name}: build/${name}/ is left out")
    endif()
  endforeach()
  set(lockflight_wired_fabrics "${found}" PARENT_SCOPE)
  set(lockflight_pmix OFF PARENT_SCOPE)
  if(wanted)
    pkg_check_modules(LOCKFLIGHT_pmix QUIET IMPORTED_TARGET GLOBAL pmix)
    if(LOCKFLIGHT_pmix_FOUND)
      set(lockflight_pmix ON PARENT_SCOPE)
    else()
      list(JOIN wanted " or " wanted)
      lockflight_missing("No PMIx (pkg-config module pmix): no launcher starts what runs on ${wanted}")
    endif()
  endif()
endfunction()

# lockflight_for_network(OUT TEMPLATE NAME): makes TEMPLATE, a file of this folder that ends in .in, into
# one for a network, by replacing @network@ and @network_title@, and sets OUT to its path.
function(lockflight_for_network out template name)
  set(network ${name})
  set(network_title "${lockflight_title_${name}}")
  cmake_path(GET template STEM LAST_ONLY file)
  set(made "${CMAKE_CURRENT_BINARY_DIR}/${name}_${file}")
  configure_file("${template}" "${made}" @ONLY)
  set(${out} "${made}" PARENT_SCOPE)
endfunction()
