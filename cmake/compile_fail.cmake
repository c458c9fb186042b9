# The test that lockflight_compile_fail_test() registers; run with cmake -P.
#   COMPILER, INCLUDE, FILE   what to compile, and how
#   REGEX                     what the compiler must say when it refuses FILE
#   POSITIVE_CONTROL          set: FILE must compile with -DPOSITIVE_CONTROL instead

cmake_minimum_required(VERSION 3.25)

set(flags -std=c++20 -fsyntax-only "-I${INCLUDE}")
if(POSITIVE_CONTROL)
  list(APPEND flags -DPOSITIVE_CONTROL)
endif()
execute_process(
  COMMAND "${COMPILER}" ${flags} "${FILE}"
  RESULT_VARIABLE status
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)

if(POSITIVE_CONTROL)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "the positive control does not compile:\n${output}")
  endif()
elseif(status EQUAL 0)
  message(FATAL_ERROR "${FILE} compiles, and must not")
elseif(NOT output MATCHES "${REGEX}")
  message(FATAL_ERROR "${FILE} is refused, but not with '${REGEX}':\n${output}")
endif()
