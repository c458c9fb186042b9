# lockflight_missing(MESSAGE)
#
# Says what is left out because what it needs was not found. With LOCKFLIGHT_REQUIRE_ALL=ON that is
# an error: a package must not lack a part because of what its builder's machine lacked.
set(lockflight_require_all ${LOCKFLIGHT_REQUIRE_ALL})  # read, so that CMake calls it used
function(lockflight_missing message)
  if(lockflight_require_all)
    message(FATAL_ERROR "${message}. LOCKFLIGHT_REQUIRE_ALL is ON: install what is missing, or turn "
      "off the option LOCKFLIGHT_… of this part")
  endif()
  message(STATUS "${message}")
endfunction()
