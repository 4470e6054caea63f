// Functions compiled for one instruction set must never be shared with another by the linker:
// everything the kernels call is inlined into them or is a template over the set's vector class.
#pragma once

#define JALI_INLINE __attribute__((always_inline)) inline
