# Checks that the libraries ARCHIVES, on which a scheme stands, and the program SCHEME, which is one, define and need no
# symbol of the schemes that there are.
function(symbols out)
  execute_process(COMMAND ${NM} -C ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE error)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${NM} -C ${ARGN}: ${error}")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()
symbols(program ${SCHEME})
symbols(libraries ${ARCHIVES})

# The room of parameters, which rlwe/ links, holds those of every scheme, so that their names are no sign of one. What
# computes is.
foreach(text program libraries)
  foreach(name ckks::Encoder ckks::Evaluator ckks::Engine ckks::AutoEvaluator ckks::SecretEncryptor ckks::Decryptor
          ckks::Ciphertext circuits::BlockTransform circuits::PolynomialPlan
          discrete::Encoder discrete::Evaluator discrete::Engine discrete::SecretEncryptor discrete::Decryptor
          discrete::Ciphertext circuits::IntegerMatrix
          "jali::tfhe::Evaluator" "jali::lwe::" "jali::integers::")
    string(FIND "${${text}}" "${name}" at)
    if(NOT at EQUAL -1)
      string(SUBSTRING "${${text}}" ${at} 200 where)
      message(FATAL_ERROR "what knows no scheme contains ${name}: ${where}")
    endif()
  endforeach()
endforeach()
foreach(name rlwe::Evaluator::rotate_accumulate rlwe::SecretEncryptor::encrypt rlwe::KeySwitcher circuits::plan_bsgs)
  string(FIND "${program}" "${name}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${SCHEME} does not contain ${name}: it is not the program of a scheme")
  endif()
endforeach()
