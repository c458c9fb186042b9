# The test that lockflight_compile_fail_test() registers; run with cmake -P.
#   COMPILER, INCLUDE, FILE   what to compile, and how
#   REGEX                     of the first error with which the compiler refuses FILE; a list: of
#                             that one and of later ones, in their order
#   STANDARD                  of C++, as -std= has it
#   EVERY_ERROR               the option with which the compiler prints all of them, if it needs one

cmake_minimum_required(VERSION 3.25)

execute_process(
  COMMAND "${COMPILER}" "-std=${STANDARD}" -fsyntax-only ${EVERY_ERROR} "-I${INCLUDE}" "${FILE}"
  RESULT_VARIABLE status
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)

string(REGEX MATCH "[^\n]*error:[^\n]*" first_error "${output}")
if(status EQUAL 0)
  message(FATAL_ERROR "${FILE} compiles, and must not")
endif()
list(GET REGEX 0 first)
string(JOIN ".*" in_order ${REGEX})
if(NOT first_error MATCHES "${first}" OR NOT output MATCHES "${in_order}")
  message(FATAL_ERROR "${FILE} is refused, but not with '${REGEX}':\n${output}")
endif()
