include(LockflightQuickBuild)

# lockflight_library(NAME SOURCES FILE... [PUBLIC LIBRARY...] [PRIVATE LIBRARY...]
#                    [COMPILED_AS KIND])
#
# A static library of this tree. Its users include its headers as "room/header.hpp", from src/.
# Without sources it is an interface library, so that a room may exist before its first file.
# KIND is as for lockflight_compile_as; without it, `library`.
function(lockflight_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "COMPILED_AS" "SOURCES;PUBLIC;PRIVATE")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "lockflight_library(${name}): what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  if(NOT arg_COMPILED_AS)
    set(arg_COMPILED_AS library)
  endif()
  if(NOT arg_SOURCES)
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
    target_link_libraries(${name} INTERFACE lockflight::lockflight ${arg_PUBLIC} ${arg_PRIVATE})
    return()
  endif()
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_compile_definitions(${name} PRIVATE LOCKFLIGHT_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${name} PUBLIC lockflight::lockflight ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  lockflight_compile_as(${name} ${arg_COMPILED_AS})
endfunction()

# lockflight_objects(NAME SOURCES FILE... [LIBS LIBRARY...])
#
# The part of a library that must be fast, for one whose other files run once in a run of the
# program: give lockflight_library $<TARGET_OBJECTS:NAME>.
function(lockflight_objects name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  add_library(${name} OBJECT ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${name} PRIVATE lockflight::lockflight ${arg_LIBS})
  lockflight_compile_as(${name} library)
endfunction()

# lockflight_with_probes(TARGET)
#
# The target's USDT probes (src/base/usdt.hpp) are compiled in, as the option LOCKFLIGHT_USDT says.
function(lockflight_with_probes target)
  if(LOCKFLIGHT_USDT STREQUAL "OFF")
    return()
  endif()
  include(CheckIncludeFileCXX)
  check_include_file_cxx(sys/sdt.h LOCKFLIGHT_HAS_SDT)
  if(LOCKFLIGHT_HAS_SDT)
    target_compile_definitions(${target} PRIVATE LOCKFLIGHT_USDT)
  elseif(NOT LOCKFLIGHT_USDT STREQUAL "AUTO")
    message(FATAL_ERROR "LOCKFLIGHT_USDT=${LOCKFLIGHT_USDT} needs the header sys/sdt.h (Debian: "
      "systemtap-sdt-dev)")
  endif()
endfunction()

# lockflight_only_look_at(TARGET...)
#
# The compiler looks at the files of libraries, for its warnings, and makes nothing of them: a third
# of the work. Nothing may be linked with such a library.
function(lockflight_only_look_at)
  set_target_properties(${ARGN} PROPERTIES
    CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/look")
endfunction()
