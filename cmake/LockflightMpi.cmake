# The MPI libraries of this machine. What needs MPI is built once for each that is found, in
# build/NAME/, since no two have the same binary interface.
#
# After lockflight_find_mpis():
#   lockflight_mpis                    the names of those found, of openmpi and mpich
#   lockflight::use_NAME               what compiles and links with that MPI
#   lockflight_mpi_module_NAME         its pkg-config module
#   lockflight_mpi_launch_NAME         how to start ranks with it: a command up to the number of ranks
#
# FindMPI finds one MPI a build tree; Debian's pkg-config files name both.

function(lockflight_find_mpis)
  set(lockflight_mpi_module_openmpi ompi-c)
  set(lockflight_mpi_module_mpich mpich)
  # As root, as in containers, and with more ranks than cores: tests do both.
  set(options_openmpi --allow-run-as-root --oversubscribe)
  set(options_mpich)
  set(found)
  foreach(name IN ITEMS openmpi mpich)
    pkg_check_modules(LOCKFLIGHT_${name} QUIET IMPORTED_TARGET GLOBAL ${lockflight_mpi_module_${name}})
    find_program(LOCKFLIGHT_MPIRUN_${name} mpirun.${name}
      DOC "Starts ranks with ${name}; without it nothing is built for ${name}")
    mark_as_advanced(LOCKFLIGHT_MPIRUN_${name})
    if(NOT LOCKFLIGHT_${name}_FOUND OR NOT LOCKFLIGHT_MPIRUN_${name})
      message(STATUS "No ${name} (pkg-config module ${lockflight_mpi_module_${name}}, program mpirun.${name}): "
        "build/${name}/ is left out")
      continue()
    endif()
    add_library(lockflight_use_${name} INTERFACE)
    add_library(lockflight::use_${name} ALIAS lockflight_use_${name})
    set_target_properties(lockflight_use_${name} PROPERTIES EXPORT_NAME use_${name})
    set(lockflight_mpi_module_${name} ${lockflight_mpi_module_${name}} PARENT_SCOPE)
    target_link_libraries(lockflight_use_${name} INTERFACE PkgConfig::LOCKFLIGHT_${name})
    # The C interface only: the C++ bindings of old are another library, and full of warnings.
    target_compile_definitions(lockflight_use_${name} INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
    list(APPEND found ${name})
    set(lockflight_mpi_launch_${name} "${LOCKFLIGHT_MPIRUN_${name}}" ${options_${name}} -n
      PARENT_SCOPE)
  endforeach()
  set(lockflight_mpis ${found} PARENT_SCOPE)
endfunction()

# lockflight_find_fortran_mpis(): lockflight::use_fortran_NAME, what compiles and links a program in
# Fortran with that MPI, for those of lockflight_mpis whose compiler wrapper mpifort.NAME is there.
function(lockflight_find_fortran_mpis)
  foreach(name IN LISTS lockflight_mpis)
    find_program(LOCKFLIGHT_MPIFORT_${name} mpifort.${name}
      DOC "Compiles Fortran with ${name}; asked for its options only")
    mark_as_advanced(LOCKFLIGHT_MPIFORT_${name})
    if(NOT LOCKFLIGHT_MPIFORT_${name})
      message(STATUS "No mpifort.${name}: examples in Fortran with ${name} are left out")
      continue()
    endif()
    execute_process(COMMAND "${LOCKFLIGHT_MPIFORT_${name}}" -show
      OUTPUT_VARIABLE shown OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(words UNIX_COMMAND "${shown}")
    set(folders ${words})
    list(FILTER folders INCLUDE REGEX "^-I")
    list(TRANSFORM folders REPLACE "^-I" "")
    list(REMOVE_DUPLICATES folders)
    # `use mpi` has no interface for choice buffers in older compilers' eyes: MPICH relaxes them.
    set(options ${words})
    list(FILTER options INCLUDE REGEX "^-fallow-")
    set(libraries ${words})
    list(FILTER libraries INCLUDE REGEX "^-[Ll]")
    add_library(lockflight_use_fortran_${name} INTERFACE)
    add_library(lockflight::use_fortran_${name} ALIAS lockflight_use_fortran_${name})
    target_include_directories(lockflight_use_fortran_${name} SYSTEM INTERFACE ${folders})
    target_compile_options(lockflight_use_fortran_${name} INTERFACE
      "$<$<COMPILE_LANGUAGE:Fortran>:${options}>")
    target_link_libraries(lockflight_use_fortran_${name} INTERFACE ${libraries})
  endforeach()
endfunction()
