# What makes a clean build quick. Most of the time of a small file goes into reading headers of the
# standard library and of others: these are precompiled, what the tree itself has is not. What is
# left is mostly what those headers make a file instantiate, strings and JSON above all: the files of
# a target are compiled as one, which takes two thirds of the time. So they share one unnamed
# namespace.
#
# lockflight_compile_as(TARGET KIND)
#   KIND is one of these; each is compiled once, with the options that all targets of its kind have.
#     library   what users link and what must be fast: optimized as the preset says
#     program   what runs once in a run of the program: little optimized, since that is not worth
#               the time that it takes to compile; with JSON
#     test      tests, not optimized, since most of them take longer to compile than to run; with
#               GoogleTest. Not with JSON: what its inline functions instantiate, g++ would
#               instantiate in every test.
#     hot_test  tests that are about what an optimizer makes of the locks, and searches: little
#               optimized; with GoogleTest
#
# lockflight_compile_in_batches(TARGET N)
#   Compiles N files of the target at a time, so that a large one has something for each core.
#
# A file that forgets an include may find it here. With LOCKFLIGHT_QUICK_BUILD=OFF, as in the preset
# clang, each file is compiled by itself with what it includes itself.
option(LOCKFLIGHT_QUICK_BUILD "Precompile the headers of others, compile files in batches"
  ${PROJECT_IS_TOP_LEVEL})

set(lockflight_precompiled_standard
  <algorithm> <array> <atomic> <chrono> <cstdint> <deque> <filesystem> <functional> <limits> <map>
  <memory> <mutex> <optional> <random> <set> <span> <sstream> <stdexcept> <string> <string_view>
  <thread> <type_traits> <utility> <vector>)
set(lockflight_precompiled_library ${lockflight_precompiled_standard})
set(lockflight_precompiled_program ${lockflight_precompiled_standard} <nlohmann/json.hpp>)
set(lockflight_precompiled_test ${lockflight_precompiled_standard} <gtest/gtest.h>)
set(lockflight_precompiled_hot_test ${lockflight_precompiled_test})

# Declares how a kind is compiled; what a target of it links is its own business.
function(lockflight_options_of_kind target kind)
  if(kind STREQUAL "library")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    if(kind STREQUAL "test")
      target_compile_options(${target} PRIVATE -O0)
    else()
      target_compile_options(${target} PRIVATE -O1)
    endif()
  endif()
endfunction()

function(lockflight_compile_as target kind)
  # Elsewhere all tests are compiled alike.
  if(kind STREQUAL "hot_test" AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    set(kind test)
  endif()
  lockflight_options_of_kind(${target} ${kind})
  if(NOT LOCKFLIGHT_QUICK_BUILD)
    return()
  endif()
  set(host lockflight_precompiled_for_${kind})
  if(NOT TARGET ${host})
    set(empty "${PROJECT_BINARY_DIR}/CMakeFiles/${host}.cpp")
    file(CONFIGURE OUTPUT "${empty}" CONTENT "// Owns the precompiled headers.\n")
    add_library(${host} OBJECT "${empty}")
    target_precompile_headers(${host} PRIVATE ${lockflight_precompiled_${kind}})
    lockflight_options_of_kind(${host} ${kind})
    if(kind STREQUAL "program")
      find_package(nlohmann_json REQUIRED)
      target_link_libraries(${host} PRIVATE nlohmann_json::nlohmann_json)
    endif()
    if(kind MATCHES "test")
      target_link_libraries(${host} PRIVATE GTest::gtest)
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${host})
  # All files at a time. A local name that something of another file has too hides nothing in its own
  # file.
  get_target_property(files ${target} SOURCES)
  list(LENGTH files count)
  if(count GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow> $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wshadow=local>)
  endif()
  # g++ looks for garbage from 128 MiB on, and time and again: a tenth of its time. Three at a time
  # need 3 GiB like this.
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-heapsize=1048576>")
endfunction()

function(lockflight_compile_in_batches target n)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${n})
endfunction()
