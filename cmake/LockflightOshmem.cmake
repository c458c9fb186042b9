# OpenSHMEM on this machine. Its compiler wrapper says what compiles and links with it.
#
# After lockflight_find_oshmem():
#   lockflight_oshmem          whether it was found
#   lockflight::use_oshmem     what compiles and links with it
#   lockflight_oshmem_cflags, lockflight_oshmem_libs   the same as words, for pkg-config
#   lockflight_oshmem_launch   how to start ranks: a command up to the number of ranks; empty
#                              without a launcher

function(lockflight_find_oshmem)
  set(lockflight_oshmem OFF PARENT_SCOPE)
  find_program(LOCKFLIGHT_OSHCC NAMES oshcc
    DOC "Compiles with OpenSHMEM; asked for its options only")
  find_program(LOCKFLIGHT_OSHRUN NAMES oshrun DOC "Starts ranks with OpenSHMEM")
  mark_as_advanced(LOCKFLIGHT_OSHCC LOCKFLIGHT_OSHRUN)
  set(failed 1)
  if(LOCKFLIGHT_OSHCC)
    execute_process(COMMAND "${LOCKFLIGHT_OSHCC}" -show
      OUTPUT_VARIABLE shown OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  endif()
  if(failed)
    lockflight_missing("No OpenSHMEM (program oshcc): build/oshmem/ is left out")
    return()
  endif()
  separate_arguments(words UNIX_COMMAND "${shown}")
  set(folders ${words})
  list(FILTER folders INCLUDE REGEX "^-I")
  set(libraries ${words})
  list(FILTER libraries INCLUDE REGEX "^-([Ll]|Wl,)")
  list(JOIN folders " " for_compiler)
  list(JOIN libraries " " for_linker)
  set(lockflight_oshmem_cflags "${for_compiler}" PARENT_SCOPE)
  set(lockflight_oshmem_libs "${for_linker}" PARENT_SCOPE)
  list(TRANSFORM folders REPLACE "^-I" "")
  list(REMOVE_DUPLICATES folders)
  add_library(lockflight_use_oshmem INTERFACE)
  add_library(lockflight::use_oshmem ALIAS lockflight_use_oshmem)
  set_target_properties(lockflight_use_oshmem PROPERTIES EXPORT_NAME use_oshmem)
  target_include_directories(lockflight_use_oshmem SYSTEM INTERFACE ${folders})
  target_link_libraries(lockflight_use_oshmem INTERFACE ${libraries})
  # As root, as in containers, and with more ranks than cores: tests do both.
  if(LOCKFLIGHT_OSHRUN)
    set(lockflight_oshmem_launch
      "${LOCKFLIGHT_OSHRUN}" --allow-run-as-root --oversubscribe -n PARENT_SCOPE)
  endif()
  set(lockflight_oshmem ON PARENT_SCOPE)
endfunction()
