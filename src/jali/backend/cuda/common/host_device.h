// For functions that kernels call and that a test also runs on the host.
#pragma once

#ifdef __CUDACC__
#define JALI_HD __host__ __device__ __forceinline__
#else
#define JALI_HD inline
#endif

// Before a loop, on the device: unroll it whole, unroll it so many times, or leave it as it is.
#define JALI_PRAGMA(text) _Pragma(#text)
#ifdef __CUDA_ARCH__
#define JALI_UNROLL JALI_PRAGMA(unroll)
#define JALI_UNROLL_BY(times) JALI_PRAGMA(unroll times)
#define JALI_NO_UNROLL JALI_PRAGMA(unroll 1)
#else
#define JALI_UNROLL
#define JALI_UNROLL_BY(times)
#define JALI_NO_UNROLL
#endif
