# The MPI libraries of this machine. What needs MPI is built once for each that is found, in
# build/NAME/, since no two have the same binary interface.
#
# After lockflight_find_mpis():
#   lockflight_mpis                    the names of those found, of openmpi and mpich
#   lockflight::use_NAME               what compiles and links with that MPI
#   lockflight::compile_NAME           what compiles for it, and links nothing
#   lockflight_mpi_module_NAME         its pkg-config module
#   lockflight_mpi_launch_NAME         how to start ranks with it: a command up to the number of ranks
#
# FindMPI finds one MPI a build tree; Debian's pkg-config files name both.
#
# Other MPIs run what was compiled for one of these, or for the standard's binary interface (ABI):
# newer releases, and those of vendors. The drop-in is built once for each ABI and tested on all of
# them. After lockflight_find_fetched_mpis():
#   lockflight_abis                    openmpi and mpich where they are found, and abi
#   lockflight_fetched_mpis            those that ./dev setup mpi has fetched, of mpich4, mpich5,
#                                      openmpi5, impi (Intel MPI), and with the standard's ABI abi
#                                      (MPICH 5's) and abi_impi
#   lockflight_mpi_abi_NAME            the one of lockflight_abis that an MPI has, lockflight_mpis too
#   lockflight_mpi_programs_NAME       whose programs it runs: its own, but for those without mpi.h
#   lockflight::use_NAME, lockflight::compile_NAME, lockflight_mpi_launch_NAME  as above

# As root, as in containers, and with more ranks than cores: tests do both.
set(lockflight_options_of_open_mpi --allow-run-as-root --oversubscribe)
# The C interface only: the C++ bindings of old are another library, and full of warnings.
set(lockflight_mpi_in_c OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)

# lockflight_compile_for_mpi(NAME FOLDERS [DEFINITION...]): lockflight::compile_NAME.
function(lockflight_compile_for_mpi name folders)
  add_library(lockflight_compile_${name} INTERFACE)
  add_library(lockflight::compile_${name} ALIAS lockflight_compile_${name})
  target_include_directories(lockflight_compile_${name} SYSTEM INTERFACE ${folders})
  target_compile_definitions(lockflight_compile_${name} INTERFACE ${lockflight_mpi_in_c} ${ARGN})
endfunction()

function(lockflight_find_mpis)
  set(lockflight_mpi_module_openmpi ompi-c)
  set(lockflight_mpi_module_mpich mpich)
  set(options_openmpi ${lockflight_options_of_open_mpi})
  set(options_mpich)
  set(found)
  foreach(name IN LISTS LOCKFLIGHT_MPIS)
    if(NOT name MATCHES "^(openmpi|mpich)$")
      message(FATAL_ERROR "LOCKFLIGHT_MPIS=${LOCKFLIGHT_MPIS}: '${name}' is not one of openmpi, mpich")
    endif()
    pkg_check_modules(LOCKFLIGHT_${name} QUIET IMPORTED_TARGET GLOBAL ${lockflight_mpi_module_${name}})
    find_program(LOCKFLIGHT_MPIRUN_${name} mpirun.${name}
      DOC "Starts ranks with ${name}; without it nothing is built for ${name}")
    mark_as_advanced(LOCKFLIGHT_MPIRUN_${name})
    if(NOT LOCKFLIGHT_${name}_FOUND OR NOT LOCKFLIGHT_MPIRUN_${name})
      lockflight_missing("No ${name} (pkg-config module ${lockflight_mpi_module_${name}}, \
program mpirun.${name}): build/${name}/ is left out")
      continue()
    endif()
    add_library(lockflight_use_${name} INTERFACE)
    add_library(lockflight::use_${name} ALIAS lockflight_use_${name})
    set_target_properties(lockflight_use_${name} PROPERTIES EXPORT_NAME use_${name})
    lockflight_compile_for_mpi(${name} "${LOCKFLIGHT_${name}_INCLUDE_DIRS}")
    set(lockflight_mpi_abi_${name} ${name} PARENT_SCOPE)
    set(lockflight_mpi_programs_${name} ${name} PARENT_SCOPE)
    set(lockflight_mpi_module_${name} ${lockflight_mpi_module_${name}} PARENT_SCOPE)
    target_link_libraries(lockflight_use_${name} INTERFACE PkgConfig::LOCKFLIGHT_${name})
    target_compile_definitions(lockflight_use_${name} INTERFACE ${lockflight_mpi_in_c})
    list(APPEND found ${name})
    set(lockflight_mpi_launch_${name} "${LOCKFLIGHT_MPIRUN_${name}}" ${options_${name}} -n
      PARENT_SCOPE)
  endforeach()
  set(lockflight_mpis ${found} PARENT_SCOPE)
endfunction()

# lockflight_link_fabric_of(TARGET ABI): the fabric without the MPI that it was compiled with.
function(lockflight_link_fabric_of target abi)
  target_link_libraries(${target} PRIVATE
    $<TARGET_FILE:lockflight_mpi_${abi}> lockflight_wireup lockflight::network)
  add_dependencies(${target} lockflight_mpi_${abi})
endfunction()

# One of lockflight_fetched_mpis, in build/mpis/FOLDER. LIBRARY is the file with the names for C; an MPI
# without mpi.h has none. Intel MPI has no mpi.h. Its own launcher loses what a rank says to the
# others, and MPI_Init fails, if they start at different times, as on a machine with other work; that
# of the MPICH whose programs it runs starts its ranks as well.
macro(lockflight_fetched_mpi name folder abi programs library)
  set(prefix "${mpis}/${folder}")
  # `of` says that all of it was fetched.
  if(EXISTS "${prefix}/of" AND "${abi}" IN_LIST abis AND
     ("${programs}" STREQUAL "${name}" OR "${programs}" IN_LIST found))
    list(APPEND found ${name})
    set(lockflight_mpi_abi_${name} ${abi} PARENT_SCOPE)
    set(lockflight_mpi_programs_${name} ${programs} PARENT_SCOPE)
    if("${programs}" STREQUAL "${name}")
      set(launcher_${name} "${prefix}/bin/mpirun")
    endif()
    set(options)
    set(environment)
    if("${abi}" STREQUAL "openmpi")
      set(options ${lockflight_options_of_open_mpi})
      # Open MPI 5's osc/ucx, which it does not use on one machine, prints an error with each window.
      set(environment "OMPI_MCA_osc=^ucx")
    endif()
    # Programs of another MPI find this one's libraries too.
    set(lockflight_mpi_launch_${name} "${CMAKE_COMMAND}" -E env "LD_LIBRARY_PATH=${prefix}/lib"
      ${environment}
      "${launcher_${programs}}" ${options} -n PARENT_SCOPE)
    if("${programs}" STREQUAL "${name}")
      set(definitions)
      if("${abi}" STREQUAL "abi")
        set(definitions MPI_ABI)
      endif()
      lockflight_compile_for_mpi(${name} "${prefix}/include" ${definitions})
      add_library(lockflight_library_of_${name} SHARED IMPORTED)
      set_target_properties(lockflight_library_of_${name} PROPERTIES
        IMPORTED_LOCATION "${prefix}/lib/${library}")
      add_library(lockflight_use_${name} INTERFACE)
      add_library(lockflight::use_${name} ALIAS lockflight_use_${name})
      target_link_libraries(lockflight_use_${name} INTERFACE
        lockflight_compile_${name} lockflight_library_of_${name})
    endif()
  else()
    list(APPEND missing ${name})
  endif()
endmacro()

function(lockflight_find_fetched_mpis)
  set(mpis "${PROJECT_SOURCE_DIR}/build/mpis")
  set(abis ${lockflight_mpis})
  if(EXISTS "${mpis}/mpich5/of")
    list(APPEND abis abi)
  endif()
  set(found)
  set(missing)
  lockflight_fetched_mpi(mpich4   mpich4   mpich   mpich4   libmpi.so.12)
  lockflight_fetched_mpi(mpich5   mpich5   mpich   mpich5   libmpi.so.12)
  lockflight_fetched_mpi(openmpi5 openmpi5 openmpi openmpi5 libmpi.so.40)
  lockflight_fetched_mpi(impi     impi     mpich   mpich4   "")
  lockflight_fetched_mpi(abi      mpich5   abi     abi      libmpi_abi.so.1)
  lockflight_fetched_mpi(abi_impi impi     abi     abi      "")
  if(missing)
    list(JOIN missing ", " missing)
    message(STATUS "Not in build/mpis (./dev setup mpi fetches them): ${missing}")
  endif()
  set(lockflight_fetched_mpis ${found} PARENT_SCOPE)
  set(lockflight_abis ${abis} PARENT_SCOPE)
endfunction()

# lockflight_find_fortran_mpis(): lockflight::use_fortran_NAME, what compiles and links a program in
# Fortran with that MPI, for those of lockflight_mpis whose compiler wrapper mpifort.NAME is there.
function(lockflight_find_fortran_mpis)
  foreach(name IN LISTS lockflight_mpis)
    find_program(LOCKFLIGHT_MPIFORT_${name} mpifort.${name}
      DOC "Compiles Fortran with ${name}; asked for its options only")
    mark_as_advanced(LOCKFLIGHT_MPIFORT_${name})
    if(NOT LOCKFLIGHT_MPIFORT_${name})
      lockflight_missing("No mpifort.${name}: Fortran with ${name} is left out")
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
