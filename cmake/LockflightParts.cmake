# Code of many locks, in several files that compile side by side: each has every n-th lock of a list
# (families::for_each_in_part). The files differ in the number of their part alone.

# lockflight_parts(OUT TEMPLATE PARTS)
#
# Makes TEMPLATE, a .cpp.in with @part@ and @parts@, into PARTS files, and sets OUT to their paths.
function(lockflight_parts out template parts)
  cmake_path(GET template STEM name)
  set(made)
  math(EXPR last "${parts} - 1")
  foreach(part RANGE ${last})
    set(file "${CMAKE_CURRENT_BINARY_DIR}/${name}_${part}.cpp")
    configure_file("${template}" "${file}" @ONLY)
    list(APPEND made "${file}")
  endforeach()
  set_source_files_properties(${made} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(${out} "${made}" PARENT_SCOPE)
endfunction()
