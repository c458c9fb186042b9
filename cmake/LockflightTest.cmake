# How tests are declared.
#
# lockflight_test(NAME SOURCES FILE... [LABELS LABEL...] [LIBS LIBRARY...] [TIMEOUT SECONDS]
#                 [PROCESSORS N] [BATCH N] [PREFIX PREFIX] [HOT] [TWICE] [LONG]
#                 [LONGER ENTRY...] [LONG_UNDER SANITIZER])
#   A GoogleTest binary and one ctest entry that runs all of it. With PREFIX there is an entry for
#   each file, PREFIX_FILE, that runs the tests of that file, in its modes. With BATCH so many files
#   are compiled at a time, and not all.
#   HOT compiles it as hot_test (LockflightQuickBuild.cmake). TWICE says that it finds something
#   without sanitizers that it cannot find with them.
#
# lockflight_command_test(NAME COMMAND WORD... [LABELS LABEL...] [TIMEOUT SECONDS]
#                         [PROCESSORS N] [SAYS REGEX] [LONG | LONGER])
#   A ctest entry that passes when the command exits with 0, and with SAYS also prints a line that
#   is that extended regular expression (tests/support/says).
#
# lockflight_compile_fail_test(NAME FILE REGEX [STANDARD STANDARD] [LABELS LABEL...])
#   Passes when FILE does not compile and the compiler's first error matches REGEX; if that is a list,
#   later errors have to match the rest of it, in that order. The build compiles FILE with -DPOSITIVE_CONTROL, so that a misspelt include cannot pass for the error that was
#   meant.
#
# lockflight_launched_tests(NAME SOURCES FILE...)
#   An object library of tests for all networks whose ranks a launch starts, without a main(): they
#   are compiled once, with LOCKFLIGHT_TEST_ON_LAUNCH. (support/launched_fabric.hpp says why.)
#
# lockflight_mpi_tests(NAME SUITE LIBRARY [LABELS LABEL...] [TIMEOUT SECONDS] [LONG MPI_N...])
#   The same library and a main(), linked with the fabric of each MPI; NAME_MPI_N is a ctest entry,
#   labelled mpi too, that starts N = 2, 4 and 8 ranks of it. On the MPIs that ./dev setup mpi has
#   fetched it starts 2 and 4, in a long run.
#
# With LOCKFLIGHT_LONG_TESTS=OFF, as `./dev test` has it without --all, a build declares neither what
# is LONG nor, without sanitizers, what AddressSanitizer runs: that would be the same test once more.
# But it does declare what is HOT or TWICE. What is LONG_UNDER a sanitizer is long there. A LONGER
# test is there, and does less: it reads LOCKFLIGHT_LONG_TESTS from its environment. tests.txt in the
# build folder lists them all.
#
# Tests whose ranks work all the time have the machine to themselves: they wait for each other,
# MPICH's without ever yielding, and beside another test for a slice of the kernel's at each handoff:
# eight times as long. Tests that mostly start launches may have others beside them; launches of Open
# MPI any: its launcher sleeps, its ranks yield.
#
# Labels in use: unit, contract, lock, mpi, ucx, oshmem, hosts, capi, cli, browser, style, sanitize. A sanitizer
# build has only the binaries labelled sanitize; the target lockflight_tests builds all the binaries
# there are.
#
# Tests find the program in the environment variable LOCKFLIGHT_PROGRAM and the source tree in
# LOCKFLIGHT_SOURCE_DIR.

set(lockflight_test_timeout 120)
if(CMAKE_CROSSCOMPILING)
  set(lockflight_test_timeout 1200)  # an emulator runs them
endif()
# The presets run as many jobs at a time: what has so many processors has the machine to itself, what
# has fewer may have some of those beside it that keep one processor busy. (The higher the cost, the
# earlier: a test of several processors would wait until no test of one is left. Those of 2 do, and
# so they are short or wait.)
set(lockflight_alone 4)
set(lockflight_room_openmpi 1)
set(lockflight_room_mpich ${lockflight_alone})
set(lockflight_room_abi ${lockflight_alone})
foreach(mpi IN LISTS lockflight_fetched_mpis)
  set(lockflight_room_${mpi} ${lockflight_room_${lockflight_mpi_abi_${mpi}}})
endforeach()
add_custom_target(lockflight_tests)

include(LockflightQuickBuild)

# Runs the tests of a binary in each of its modes; main() is apart, since MPI has another.
add_library(lockflight_test_modes STATIC "${PROJECT_SOURCE_DIR}/tests/support/modes.cpp")
target_link_libraries(lockflight_test_modes PUBLIC GTest::gtest)
add_library(lockflight_test_main STATIC "${PROJECT_SOURCE_DIR}/tests/support/main.cpp")
target_link_libraries(lockflight_test_main PUBLIC lockflight_test_modes)
foreach(part IN ITEMS lockflight_test_modes lockflight_test_main)
  lockflight_compile_as(${part} test)
endforeach()

# ThreadSanitizer's fixed memory layout does not survive much address randomization.
set(lockflight_test_launcher)
if(LOCKFLIGHT_SANITIZE MATCHES "thread" AND EXISTS /proc/sys/vm/mmap_rnd_bits)
  file(READ /proc/sys/vm/mmap_rnd_bits lockflight_mmap_rnd_bits)
  if(lockflight_mmap_rnd_bits GREATER 28)
    set(lockflight_test_launcher setarch --addr-no-randomize)
  endif()
endif()

# lockflight_put_off(NAMES ENTRY... [LONGER ENTRY...] [LONG] [ONCE] OUT variable)
#   Notes for tests.txt when the entries run, and says whether they are not of this build. ONCE: they
#   are of another one as well. No test does more under a sanitizer.
function(lockflight_put_off)
  cmake_parse_arguments(PARSE_ARGV 0 arg "LONG;ONCE" "OUT" "NAMES;LONGER")
  set(put_off FALSE)
  foreach(name IN LISTS arg_NAMES)
    set(when default)
    if(arg_LONG OR (arg_ONCE AND NOT LOCKFLIGHT_SANITIZE AND NOT CMAKE_CROSSCOMPILING))
      set(when all)
    elseif(name IN_LIST arg_LONGER AND NOT LOCKFLIGHT_SANITIZE)
      set(when longer)
    endif()
    set_property(GLOBAL APPEND_STRING PROPERTY lockflight_test_list "${name} ${when}\n")
    if(when STREQUAL "all" AND NOT LOCKFLIGHT_LONG_TESTS)
      set(put_off TRUE)
    endif()
  endforeach()
  set(${arg_OUT} ${put_off} PARENT_SCOPE)
endfunction()

# Writes tests.txt, when all tests are declared.
function(lockflight_write_test_list)
  get_property(list GLOBAL PROPERTY lockflight_test_list)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/tests.txt" CONTENT "${list}" @ONLY)
endfunction()

# Sets the properties that every ctest entry has; the rest of the arguments are as parsed.
function(lockflight_test_properties name labels timeout processors)
  if(NOT timeout)
    set(timeout ${lockflight_test_timeout})
  endif()
  if(NOT processors)
    set(processors 1)
  endif()
  math(EXPR cost "100 * (${processors} - 1)")
  set(environment "LOCKFLIGHT_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
  if(LOCKFLIGHT_LONG_TESTS)
    list(APPEND environment "LOCKFLIGHT_LONG_TESTS=1")
  endif()
  if(TARGET lockflight_program)
    list(APPEND environment "LOCKFLIGHT_PROGRAM=$<TARGET_FILE:lockflight_program>")
  endif()
  set_tests_properties(${name} PROPERTIES
    LABELS "${labels}"
    TIMEOUT ${timeout}
    PROCESSORS ${processors}
    COST ${cost}
    ENVIRONMENT "${environment}")
endfunction()

# Of the tests that keep one processor busy, these come first, if they are of this build: they are
# long, and at the end would have nothing beside them.
function(lockflight_start_early)
  foreach(name IN LISTS ARGN)
    if(TEST ${name})
      get_test_property(${name} PROCESSORS processors)
      if(processors EQUAL 1)
        set_tests_properties(${name} PROPERTIES COST 50)
      endif()
    endif()
  endforeach()
endfunction()

# Whether this build leaves tests with such labels out.
function(lockflight_left_out labels out)
  set(left_out FALSE)
  if(LOCKFLIGHT_SANITIZE AND NOT "sanitize" IN_LIST labels)
    set(left_out TRUE)
  endif()
  # The checker, the simulator and parsers have one thread, and what counts operations meets no race
  # that the stress tests do not: AddressSanitizer is enough for them.
  if(LOCKFLIGHT_SANITIZE MATCHES "thread" AND labels MATCHES "check|sim|counts|parse")
    set(left_out TRUE)
  endif()
  set(${out} ${left_out} PARENT_SCOPE)
endfunction()

function(lockflight_test_binary name kind sources libs)
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${name} PRIVATE lockflight::lockflight ${libs} lockflight_test_main)
  lockflight_compile_as(${name} ${kind})
  add_dependencies(lockflight_tests ${name})
endfunction()

# A ctest entry that runs a binary; the rest of the arguments go to the binary.
function(lockflight_test_entry name binary labels timeout processors)
  add_test(NAME ${name} COMMAND ${lockflight_test_launcher} $<TARGET_FILE:${binary}> ${ARGN})
  lockflight_test_properties(${name} "${labels}" "${timeout}" "${processors}")
  # A search of the checker makes fibers by the hundred thousand: a fake stack for each takes
  # AddressSanitizer a thousand times as long as the search itself.
  if(LOCKFLIGHT_SANITIZE MATCHES "address" AND "check" IN_LIST labels)
    set_property(TEST ${name} APPEND PROPERTY
      ENVIRONMENT "ASAN_OPTIONS=detect_stack_use_after_return=0:strict_string_checks=1")
  endif()
endfunction()

function(lockflight_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "HOT;TWICE;LONG"
    "TIMEOUT;PROCESSORS;PREFIX;BATCH;LONG_UNDER" "SOURCES;LABELS;LIBS;LONGER")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "lockflight_test(${name}): needs SOURCES; unknown: "
      "'${arg_UNPARSED_ARGUMENTS}'")
  endif()
  lockflight_left_out("${arg_LABELS}" left_out)
  if(left_out)
    return()
  endif()
  set(entries ${name})
  if(arg_PREFIX)
    set(entries "")
    foreach(source IN LISTS arg_SOURCES)
      cmake_path(GET source STEM stem)
      list(APPEND entries ${arg_PREFIX}_${stem})
    endforeach()
  endif()
  set(how_long "")
  if(arg_LONG OR (arg_LONG_UNDER AND LOCKFLIGHT_SANITIZE MATCHES "${arg_LONG_UNDER}"))
    list(APPEND how_long LONG)
  endif()
  if("sanitize" IN_LIST arg_LABELS AND NOT arg_HOT AND NOT arg_TWICE)
    list(APPEND how_long ONCE)
  endif()
  lockflight_put_off(NAMES ${entries} LONGER ${arg_LONGER} ${how_long} OUT put_off)
  if(put_off)
    return()
  endif()
  set(kind test)
  if(arg_HOT)
    set(kind hot_test)
  endif()
  lockflight_test_binary(${name} ${kind} "${arg_SOURCES}" "${arg_LIBS}")
  if(arg_BATCH)
    lockflight_compile_in_batches(${name} ${arg_BATCH})
  endif()
  if(NOT arg_PREFIX)
    lockflight_test_entry(${name} ${name} "${arg_LABELS}" "${arg_TIMEOUT}" "${arg_PROCESSORS}")
    return()
  endif()
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(GET source STEM stem)
    lockflight_test_entry(${arg_PREFIX}_${stem} ${name} "${arg_LABELS}" "${arg_TIMEOUT}"
      "${arg_PROCESSORS}" --of=${stem})
  endforeach()
endfunction()

function(lockflight_command_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LONG;LONGER" "TIMEOUT;PROCESSORS;SAYS"
    "COMMAND;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_COMMAND)
    message(FATAL_ERROR "lockflight_command_test(${name}): needs COMMAND; unknown: "
      "'${arg_UNPARSED_ARGUMENTS}'")
  endif()
  lockflight_left_out("${arg_LABELS}" left_out)
  if(left_out)
    return()
  endif()
  set(how_long "")
  if(arg_LONG)
    set(how_long LONG)
  elseif(arg_LONGER)
    set(how_long LONGER ${name})
  endif()
  lockflight_put_off(NAMES ${name} ${how_long} OUT put_off)
  if(put_off)
    return()
  endif()
  set(says "")
  if(arg_SAYS)
    set(says "${PROJECT_SOURCE_DIR}/tests/support/says" "${arg_SAYS}")
  endif()
  add_test(NAME ${name} COMMAND ${says} ${arg_COMMAND})
  lockflight_test_properties(${name} "${arg_LABELS}" "${arg_TIMEOUT}" "${arg_PROCESSORS}")
endfunction()

function(lockflight_launched_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${arg_SOURCES})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}/src")
  target_compile_definitions(${name} PUBLIC LOCKFLIGHT_TEST_ON_LAUNCH)
  target_link_libraries(${name} PUBLIC lockflight::lockflight lockflight_test_modes)
  lockflight_compile_as(${name} test)
endfunction()

function(lockflight_mpi_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;SUITE" "LABELS;LONG")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SUITE)
    message(FATAL_ERROR "lockflight_mpi_tests(${name}): needs SUITE; unknown: "
      "'${arg_UNPARSED_ARGUMENTS}'")
  endif()
  foreach(mpi IN LISTS lockflight_mpis)
    add_executable(${name}_${mpi})
    target_link_libraries(${name}_${mpi} PRIVATE
      ${arg_SUITE} mpi_test_main lockflight::mpi_${mpi})
    add_dependencies(lockflight_tests ${name}_${mpi})
    foreach(ranks IN ITEMS 2 4 8)
      set(how_long "")
      if("${mpi}_${ranks}" IN_LIST arg_LONG)
        set(how_long LONG)
      endif()
      lockflight_put_off(NAMES ${name}_${mpi}_${ranks} ${how_long} OUT put_off)
      if(put_off)
        continue()
      endif()
      add_test(NAME ${name}_${mpi}_${ranks}
        COMMAND ${lockflight_mpi_launch_${mpi}} ${ranks} $<TARGET_FILE:${name}_${mpi}>)
      lockflight_test_properties(${name}_${mpi}_${ranks} "mpi;${arg_LABELS}" "${arg_TIMEOUT}"
        ${lockflight_alone})
    endforeach()
  endforeach()
  foreach(mpi IN LISTS lockflight_fetched_mpis)
    set(of ${lockflight_mpi_programs_${mpi}})
    if(of STREQUAL mpi AND LOCKFLIGHT_LONG_TESTS)
      add_executable(${name}_${mpi})
      target_link_libraries(${name}_${mpi} PRIVATE ${arg_SUITE} mpi_test_main)
      lockflight_link_fabric_of(${name}_${mpi} ${lockflight_mpi_abi_${mpi}})
      target_link_libraries(${name}_${mpi} PRIVATE lockflight::use_${mpi})
      add_dependencies(lockflight_tests ${name}_${mpi})
    endif()
    foreach(ranks IN ITEMS 2 4)
      lockflight_put_off(NAMES ${name}_${mpi}_${ranks} LONG OUT put_off)
      if(put_off)
        continue()
      endif()
      add_test(NAME ${name}_${mpi}_${ranks}
        COMMAND ${lockflight_mpi_launch_${mpi}} ${ranks} $<TARGET_FILE:${name}_${of}>)
      lockflight_test_properties(${name}_${mpi}_${ranks} "mpi;${arg_LABELS}" "${arg_TIMEOUT}"
        ${lockflight_alone})
    endforeach()
  endforeach()
endfunction()

function(lockflight_compile_fail_test name file regex)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "STANDARD" "LABELS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "lockflight_compile_fail_test(${name}): unknown: "
      "'${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(LOCKFLIGHT_SANITIZE)
    return()
  endif()
  if(NOT arg_STANDARD)
    set(arg_STANDARD c++20)
  endif()
  set(every_error "")
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    set(every_error -ferror-limit=0)
  endif()
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  lockflight_put_off(NAMES ${name} OUT put_off)
  add_test(NAME ${name}
    COMMAND "${CMAKE_COMMAND}" "-DCOMPILER=${CMAKE_CXX_COMPILER}"
            "-DINCLUDE=${PROJECT_SOURCE_DIR}/include" "-DFILE=${file}" "-DREGEX=${regex}"
            "-DSTANDARD=${arg_STANDARD}"
            "-DEVERY_ERROR=${every_error}"
            -P "${PROJECT_SOURCE_DIR}/cmake/compile_fail.cmake")
  lockflight_test_properties(${name} "${arg_LABELS}" "" "")
  add_library(${name}_positive_control OBJECT "${file}")
  target_compile_definitions(${name}_positive_control PRIVATE POSITIVE_CONTROL)
  target_link_libraries(${name}_positive_control PRIVATE lockflight::lockflight)
  lockflight_compile_as(${name}_positive_control library)
  add_dependencies(lockflight_tests ${name}_positive_control)
endfunction()
