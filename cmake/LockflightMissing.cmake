# lockflight_missing(MESSAGE)
#
# Says what is left out because what it needs was not found. With LOCKFLIGHT_REQUIRE_ALL=ON that is
# an error: a package must not lack a part because of what its builder's machine lacked.
function(lockflight_missing message)
  if(LOCKFLIGHT_REQUIRE_ALL)
    message(FATAL_ERROR "${message}. LOCKFLIGHT_REQUIRE_ALL is ON: install what is missing, or turn "
      "off the option LOCKFLIGHT_… of this part")
  endif()
  message(STATUS "${message}")
endfunction()
