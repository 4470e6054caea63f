# The C++ library for WebAssembly with exceptions (cmake/wasm.cmake): wasm_runtime, from the sources in the package ziglang. Only
# what the client needs is listed: a missing file is an undefined symbol when jali.wasm is linked.
enable_language(C)
set(_std ${JALI_ZIG_LIB}/libcxx/src)
set(_abi ${JALI_ZIG_LIB}/libcxxabi/src)
set(_sources)
foreach(name algorithm chrono condition_variable condition_variable_destructor error_category exception functional future hash memory mutex mutex_destructor new
             new_handler new_helpers shared_mutex stdexcept string system_error thread vector)
  list(APPEND _sources ${_std}/${name}.cpp)
endforeach()
foreach(name cxa_aux_runtime cxa_default_handlers cxa_exception cxa_exception_storage cxa_guard cxa_handlers cxa_personality cxa_vector
             cxa_virtual fallback_malloc private_typeinfo stdlib_exception stdlib_new_delete stdlib_stdexcept stdlib_typeinfo)
  list(APPEND _sources ${_abi}/${name}.cpp)
endforeach()
# Its functions are those of this module alone.
set_source_files_properties(${JALI_ZIG_LIB}/libunwind/src/Unwind-wasm.c PROPERTIES COMPILE_DEFINITIONS _LIBUNWIND_HIDE_SYMBOLS)
add_library(wasm_runtime STATIC ${_sources} ${JALI_ZIG_LIB}/libunwind/src/Unwind-wasm.c)
target_compile_features(wasm_runtime PRIVATE cxx_std_23)
target_include_directories(wasm_runtime PRIVATE ${_std} ${_abi} ${JALI_ZIG_LIB}/libunwind/include ${JALI_ZIG_LIB}/libcxx/libc)
target_compile_definitions(wasm_runtime PRIVATE _LIBCPP_BUILDING_LIBRARY _LIBCXXABI_BUILDING_LIBRARY LIBCXX_BUILDING_LIBCXXABI
  LIBCXXABI_NON_DEMANGLING_TERMINATE _LIBCPP_DISABLE_NEW_DELETE_DEFINITIONS __WASM_EXCEPTIONS__)
target_compile_options(wasm_runtime PRIVATE -w)
