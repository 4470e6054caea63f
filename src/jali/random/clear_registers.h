// Clears the vector registers. The words of a key that were in them could otherwise be written to a
// stack long after: the dynamic loader saves all vector registers when a function of a shared
// library is called for the first time, and the kernel does so for a signal handler. This is a part
// of chacha_kernel.h, which is compiled once for each instruction set.
#pragma once

namespace jali::random {
namespace {

inline void clear_vector_registers() {
#if defined(__x86_64__)
#if defined(__AVX512F__)
#define JALI_CLEAR(r) asm volatile("vpxorq %%zmm" #r ", %%zmm" #r ", %%zmm" #r::: "xmm" #r)
  JALI_CLEAR(16);
  JALI_CLEAR(17);
  JALI_CLEAR(18);
  JALI_CLEAR(19);
  JALI_CLEAR(20);
  JALI_CLEAR(21);
  JALI_CLEAR(22);
  JALI_CLEAR(23);
  JALI_CLEAR(24);
  JALI_CLEAR(25);
  JALI_CLEAR(26);
  JALI_CLEAR(27);
  JALI_CLEAR(28);
  JALI_CLEAR(29);
  JALI_CLEAR(30);
  JALI_CLEAR(31);
#undef JALI_CLEAR
#endif
#if defined(__AVX__)
#define JALI_CLEAR(r) asm volatile("vpxor %%ymm" #r ", %%ymm" #r ", %%ymm" #r::: "xmm" #r)
#else
#define JALI_CLEAR(r) asm volatile("pxor %%xmm" #r ", %%xmm" #r::: "xmm" #r)
#endif
  JALI_CLEAR(0);
  JALI_CLEAR(1);
  JALI_CLEAR(2);
  JALI_CLEAR(3);
  JALI_CLEAR(4);
  JALI_CLEAR(5);
  JALI_CLEAR(6);
  JALI_CLEAR(7);
  JALI_CLEAR(8);
  JALI_CLEAR(9);
  JALI_CLEAR(10);
  JALI_CLEAR(11);
  JALI_CLEAR(12);
  JALI_CLEAR(13);
  JALI_CLEAR(14);
  JALI_CLEAR(15);
#undef JALI_CLEAR
#elif defined(__aarch64__)
#define JALI_CLEAR(r) asm volatile("movi v" #r ".2d, #0" ::: "v" #r)
  JALI_CLEAR(0);
  JALI_CLEAR(1);
  JALI_CLEAR(2);
  JALI_CLEAR(3);
  JALI_CLEAR(4);
  JALI_CLEAR(5);
  JALI_CLEAR(6);
  JALI_CLEAR(7);
  JALI_CLEAR(8);
  JALI_CLEAR(9);
  JALI_CLEAR(10);
  JALI_CLEAR(11);
  JALI_CLEAR(12);
  JALI_CLEAR(13);
  JALI_CLEAR(14);
  JALI_CLEAR(15);
  JALI_CLEAR(16);
  JALI_CLEAR(17);
  JALI_CLEAR(18);
  JALI_CLEAR(19);
  JALI_CLEAR(20);
  JALI_CLEAR(21);
  JALI_CLEAR(22);
  JALI_CLEAR(23);
  JALI_CLEAR(24);
  JALI_CLEAR(25);
  JALI_CLEAR(26);
  JALI_CLEAR(27);
  JALI_CLEAR(28);
  JALI_CLEAR(29);
  JALI_CLEAR(30);
  JALI_CLEAR(31);
#undef JALI_CLEAR
#endif
}

}  // namespace
}  // namespace jali::random
