# Checks that the program CLIENT, which links jali::client, has the client's code and none that evaluates or leads to a GPU.
execute_process(COMMAND ${NM} -C ${CLIENT} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE error)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${NM} -C ${CLIENT}: ${error}")
endif()
foreach(name jali_client_open client::Client::encrypt rlwe::KeyGenerator ckks::SecretEncryptor ckks::Decryptor)
  string(FIND "${text}" "${name}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${CLIENT} does not contain ${name}: it is not the program of a client")
  endif()
endforeach()
# Functions of these types, and engines but the CPU's. A name that is only part of another function's argument is no function.
foreach(pattern "ckks::Evaluator::" "ckks::AutoEvaluator" "ckks::ArrayEvaluator" "ckks::Program::" "ckks::Batcher" "bootstrap::Bootstrapper::"
        "bootstrap::BootstrapPlan::" "circuits::HomomorphicDft::" "circuits::LinearTransform::" "circuits::BlockTransform::" "circuits::BabyGiant" "rlwe::KeySwitcher" "rlwe::Evaluator::"
        "discrete::Evaluator::" "discrete::Program::" "discrete::Batcher" "circuits::IntegerMatrix"
        "make_cuda_engine" "gpu_device" "cudaMalloc" "make_ref_engine" "make_dry_engine" "TraceEngine" "jali::tfhe::" "jali::lwe::" "jali::integers::")
  string(REGEX MATCH "\n[0-9a-f]* [A-Za-z] [^\n]*${pattern}[^\n]*" found "${text}")
  if(found)
    message(FATAL_ERROR "a client contains ${found}")
  endif()
endforeach()
