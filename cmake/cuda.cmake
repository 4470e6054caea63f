# Looks for nvcc: in CUDACXX, on the PATH, in CUDA_HOME, or from the PyPI packages nvidia-cuda-nvcc, -crt,
# -runtime, -cccl and nvidia-nvvm of the Python that builds. Sets JALI_HAVE_CUDA.
set(JALI_CUDA "AUTO" CACHE STRING "Build the CUDA engine: ON, OFF, or AUTO (when nvcc is found)")
# Release wheels: cubins for every generation from Ampere on, and PTX of the last for those to come.
set(JALI_CUDA_RELEASE 80-real 86-real 89-real 90-real 100-real 120)
set(JALI_CUDA_ARCHITECTURES "native" CACHE STRING
    "GPU architectures to build for: \"native\" for the GPUs of this machine, \"all\" for what release wheels have, \"none\" to see only whether it compiles, or CMake's list")
include(cmake/cuda_architectures.cmake)
set(JALI_HAVE_CUDA OFF)
if(NOT JALI_CUDA STREQUAL "OFF")
  if(NOT CMAKE_CUDA_COMPILER AND NOT "$ENV{CUDACXX}" STREQUAL "")
    set(CMAKE_CUDA_COMPILER $ENV{CUDACXX})
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    find_package(Python3 QUIET COMPONENTS Interpreter)
    set(_purelib "")
    if(Python3_EXECUTABLE)
      execute_process(COMMAND ${Python3_EXECUTABLE} -c
        "import sysconfig; print(sysconfig.get_paths()['purelib'])"
        OUTPUT_VARIABLE _purelib OUTPUT_STRIP_TRAILING_WHITESPACE)
    endif()
    find_program(JALI_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin ${_purelib}/nvidia/cu13/bin
      /usr/local/cuda/bin)
    if(JALI_NVCC)
      set(CMAKE_CUDA_COMPILER ${JALI_NVCC})
    endif()
  endif()
  if(CMAKE_CUDA_COMPILER)
    get_filename_component(_cuda_root ${CMAKE_CUDA_COMPILER} DIRECTORY)
    get_filename_component(_cuda_root ${_cuda_root} DIRECTORY)
    if(EXISTS ${_cuda_root}/lib/libcudart_static.a)
      set(CMAKE_CUDA_FLAGS_INIT "-L${_cuda_root}/lib")  # PyPI's layout
    endif()
    if(JALI_CUDA_ARCHITECTURES STREQUAL "all")
      set(CMAKE_CUDA_ARCHITECTURES ${JALI_CUDA_RELEASE})
    elseif(JALI_CUDA_ARCHITECTURES STREQUAL "none")
      set(CMAKE_CUDA_ARCHITECTURES 90-virtual)
    elseif(JALI_CUDA_ARCHITECTURES STREQUAL "native")
      jali_cuda_architectures(CMAKE_CUDA_ARCHITECTURES ${CMAKE_CUDA_COMPILER})
    else()
      set(CMAKE_CUDA_ARCHITECTURES ${JALI_CUDA_ARCHITECTURES})
    endif()
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # older CMake does not know newer nvcc
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    if(JALI_CUDA_ARCHITECTURES STREQUAL "none")  # nobody runs it: nvcc may leave optimisations out, from 12.9 on
      execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --help OUTPUT_VARIABLE _help)
      if(_help MATCHES "Ofast-compile")
        add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:--Ofast-compile=max>)
      endif()
    endif()
    set(JALI_HAVE_CUDA ON)
    message(STATUS "The CUDA engine is built by ${CMAKE_CUDA_COMPILER} for ${CMAKE_CUDA_ARCHITECTURES}")
  elseif(JALI_CUDA STREQUAL "ON")
    message(FATAL_ERROR "JALI_CUDA is ON and nvcc was not found: put it on the PATH, set CUDA_HOME, or "
                        "install the PyPI packages nvidia-cuda-nvcc, nvidia-cuda-crt, nvidia-nvvm, "
                        "nvidia-cuda-runtime and nvidia-cuda-cccl at 13.0")
  endif()
endif()
