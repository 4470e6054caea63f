// What jali.mjs needs besides the functions of client.h: the two functions that these call, which
// are JavaScript's, and a check that structures lie in memory as it reads them.
#ifdef __wasm__
#include <cstddef>
#include <cstdint>

#include "jali/api/client.h"

extern "C" {

__attribute__((import_module("jali"), import_name("bytes"))) int jali_host_bytes(
    void* context, const std::uint8_t* bytes, std::size_t count);
__attribute__((import_module("jali"), import_name("progress"))) int jali_host_progress(
    void* context, std::uint64_t done, std::uint64_t total);

/// A sink and a progress for the functions of client.h. The context is a number that JavaScript
/// gave.
__attribute__((export_name("jali_wasm_sink"))) jali_sink jali_wasm_sink() {
  return jali_host_bytes;
}
__attribute__((export_name("jali_wasm_progress"))) jali_progress jali_wasm_progress() {
  return jali_host_progress;
}
}

static_assert(sizeof(void*) == 4 && sizeof(jali_error) == 1028 && offsetof(jali_error, text) == 4);
static_assert(offsetof(jali_port, name) == 0 && offsetof(jali_port, size) == 8 &&
              offsetof(jali_port, axes) == 16 && offsetof(jali_port, shape) == 20 &&
              sizeof(jali_port) == 24);
static_assert(offsetof(jali_numbers, numbers) == 0 && offsetof(jali_numbers, count) == 8 &&
              sizeof(jali_numbers) == 16);
static_assert(offsetof(jali_key_cost, count) == 0 && offsetof(jali_key_cost, made) == 8 &&
              offsetof(jali_key_cost, sent) == 16 && offsetof(jali_key_cost, seconds) == 24 &&
              sizeof(jali_key_cost) == 32);
#endif  // wasm
