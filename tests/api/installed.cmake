# Installs the build folder BUILD into a folder of its own, then builds and runs the project CONSUMER with it.
set(work ${BUILD}/tests/api/installed)
file(REMOVE_RECURSE ${work})
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${text}")
  endif()
endfunction()
step(${CMAKE_COMMAND} --install ${BUILD} --component cpp --prefix ${work}/prefix)
step(${CMAKE_COMMAND} -S ${CONSUMER} -B ${work}/build -G ${GENERATOR}
     -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${work}/prefix)
step(${CMAKE_COMMAND} --build ${work}/build)
step(${work}/build/consumer)
