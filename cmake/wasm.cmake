# Toolchain file: WebAssembly with the package ziglang of PyPI alone. JALI_ZIG_TOOLS is what tools/zig.sh printed.
#     cmake -S . -B build/wasm -DCMAKE_TOOLCHAIN_FILE=$PWD/cmake/wasm.cmake -DJALI_ZIG_TOOLS=$(tools/zig.sh python3 build/ziglang)
# `zig c++` has a C++ library without exceptions and threads. So clang is called itself, and cmake/wasm_runtime.cmake builds that
# library from the package's sources with exceptions, and with the types of threads, though none can be started. The C library and
# the linker are those of `zig cc`.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(JALI_ZIG_TOOLS "" CACHE PATH "The folder that tools/zig.sh printed")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES JALI_ZIG_TOOLS)
get_filename_component(JALI_ZIG_LIB ${JALI_ZIG_TOOLS}/../ziglang/lib ABSOLUTE)

set(CMAKE_C_COMPILER ${JALI_ZIG_TOOLS}/clang)
set(CMAKE_CXX_COMPILER ${JALI_ZIG_TOOLS}/clang++)
set(CMAKE_AR ${JALI_ZIG_TOOLS}/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${JALI_ZIG_TOOLS}/ranlib CACHE FILEPATH "")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_CXX_LINK_EXECUTABLE
    "${JALI_ZIG_TOOLS}/linker -target wasm32-wasi -mexec-model=reactor -Os <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>")

# What every browser since 2021 and Node since version 17 run.
string(JOIN " " _machine -target wasm32-unknown-wasip1 --no-default-config -fno-PIC -fno-stack-protector
       -mbulk-memory -mnontrapping-fptoint -msign-ext -mmutable-globals -mmultivalue -msimd128 -mexception-handling -fwasm-exceptions)
string(JOIN " " _c -nostdinc -isystem ${JALI_ZIG_LIB}/include -isystem ${JALI_ZIG_LIB}/libc/include/wasm-wasi-musl
       -isystem ${JALI_ZIG_LIB}/libc/include/generic-musl -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_MMAN -D_WASI_EMULATED_PROCESS_CLOCKS
       -D_WASI_EMULATED_GETPID)
string(JOIN " " _cxx -nostdinc++ -isystem ${JALI_ZIG_LIB}/libcxx/include -isystem ${JALI_ZIG_LIB}/libcxxabi/include
       -D_LIBCPP_ABI_VERSION=1 -D_LIBCPP_ABI_NAMESPACE=__1 -D_LIBCPP_HAS_MUSL_LIBC=1
       -D_LIBCPP_HAS_THREADS=1 -D_LIBCPP_HAS_THREAD_API_PTHREAD=1 -D_LIBCPP_HAS_THREAD_API_EXTERNAL=0
       -D_LIBCPP_HAS_MONOTONIC_CLOCK=1 -D_LIBCPP_HAS_FILESYSTEM=1 -D_LIBCPP_HAS_RANDOM_DEVICE=1
       -D_LIBCPP_HAS_LOCALIZATION=1 -D_LIBCPP_HAS_UNICODE=1 -D_LIBCPP_HAS_WIDE_CHARACTERS=1 -D_LIBCPP_HAS_TERMINAL=0
       -D_LIBCPP_HAS_TIME_ZONE_DATABASE=0 -D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0
       -D_LIBCPP_HAS_NO_STD_MODULES -D_LIBCPP_PSTL_BACKEND_SERIAL
       -D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_NONE -D_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE
       -D_LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS -D_LIBCXXABI_DISABLE_VISIBILITY_ANNOTATIONS)
set(CMAKE_C_FLAGS_INIT "${_machine} ${_c}")
# musl's mathematics sets no errno.
set(CMAKE_CXX_FLAGS_INIT "${_machine} ${_cxx} ${_c} -fno-math-errno")
set(CMAKE_C_FLAGS_RELEASE_INIT "-ffunction-sections -fdata-sections")
set(CMAKE_CXX_FLAGS_RELEASE_INIT "-ffunction-sections -fdata-sections")
