# The warnings that this tree compiles without; errors with LOCKFLIGHT_WERROR.

set(lockflight_warnings
  -Wall -Wextra -Wpedantic
  -Wshadow -Wconversion -Wno-sign-conversion -Wcast-align -Wformat=2 -Wundef
  -Wdouble-promotion)
set(lockflight_cxx_warnings -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND lockflight_warnings -Wduplicated-cond -Wlogical-op)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees overlapping copies in plain std::string concatenation (its PR 105651).
    list(APPEND lockflight_cxx_warnings -Wno-restrict)
  endif()
else()
  # GoogleTest's typed suites leave out a macro's last argument, which C++20 allows.
  list(APPEND lockflight_cxx_warnings -Wno-gnu-zero-variadic-macro-arguments)
endif()

if(LOCKFLIGHT_WERROR)
  list(APPEND lockflight_warnings -Werror)
endif()

add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${lockflight_warnings}>"
  "$<$<COMPILE_LANGUAGE:CXX>:${lockflight_cxx_warnings}>")
