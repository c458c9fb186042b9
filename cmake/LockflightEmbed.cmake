# lockflight_embed(OUT NAMESPACE NAMESPACE HEADER HEADER LIST NAME TYPE TYPE FILES FILE...)
#
# Makes OUT, a C++ file with the function `const std::vector<TYPE>& LIST()` in NAMESPACE, which
# HEADER declares: for each FILE a TYPE made of its name without folder and extension, and its text.
function(lockflight_embed out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAMESPACE;HEADER;LIST;TYPE" "FILES")
  set(script "${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake")
  string(REPLACE ";" "|" files "${arg_FILES}")
  add_custom_command(
    OUTPUT "${out}"
    COMMAND "${CMAKE_COMMAND}" "-DOUT=${out}" "-DNAMESPACE=${arg_NAMESPACE}"
            "-DHEADER=${arg_HEADER}" "-DLIST=${arg_LIST}" "-DTYPE=${arg_TYPE}" "-DFILES=${files}"
            -P "${script}"
    DEPENDS ${arg_FILES} "${script}"
    COMMENT "Embedding ${arg_LIST}"
    VERBATIM)
endfunction()
