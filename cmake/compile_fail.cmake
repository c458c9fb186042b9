# The test that lockflight_compile_fail_test() registers; run with cmake -P.
#   COMPILER, INCLUDE, FILE   what to compile, and how
#   REGEX                     of the first error with which the compiler refuses FILE
#   STANDARD                  of C++, as -std= has it

cmake_minimum_required(VERSION 3.25)

execute_process(
  COMMAND "${COMPILER}" "-std=${STANDARD}" -fsyntax-only "-I${INCLUDE}" "${FILE}"
  RESULT_VARIABLE status
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)

string(REGEX MATCH "[^\n]*error:[^\n]*" first_error "${output}")
if(status EQUAL 0)
  message(FATAL_ERROR "${FILE} compiles, and must not")
elseif(NOT first_error MATCHES "${REGEX}")
  message(FATAL_ERROR "${FILE} is refused, but not with '${REGEX}':\n${output}")
endif()
