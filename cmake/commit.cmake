# Writes a header with the commit of the sources, if it says another one than before. Run at every build:
#   cmake -DSOURCE=... -DHEADER=... [-DCOMMIT=...] -P commit.cmake
# "-dirty" means that the sources were changed since. "unknown": they are no checkout, and nobody gave COMMIT.
set(_commit "${COMMIT}")
if(_commit STREQUAL "")
  set(_commit "unknown")
  find_program(_git git)
  if(_git)
    # In a container that builds wheels the sources may belong to another user, whom git does not trust by itself.
    set(_git ${_git} --no-optional-locks -c safe.directory=*)
    # Sources that were unpacked inside the checkout of another project have none of its commits.
    execute_process(COMMAND ${_git} ls-files --error-unmatch CMakeLists.txt WORKING_DIRECTORY ${SOURCE}
                    RESULT_VARIABLE _foreign OUTPUT_QUIET ERROR_QUIET)
    execute_process(COMMAND ${_git} describe --always --dirty --abbrev=12 WORKING_DIRECTORY ${SOURCE}
                    RESULT_VARIABLE _failed OUTPUT_VARIABLE _found ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT _foreign AND NOT _failed)
      set(_commit "${_found}")
    endif()
  endif()
endif()
set(_text "#define JALI_COMMIT \"${_commit}\"\n")
set(_old "")
if(EXISTS ${HEADER})
  file(READ ${HEADER} _old)
endif()
if(NOT _old STREQUAL _text)
  file(WRITE ${HEADER} "${_text}")
endif()
