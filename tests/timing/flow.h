// Cases of secret_flow: secrets are hidden from memcheck, which then reports every branch and every
// address that depends on them.
#pragma once

#include <valgrind/memcheck.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace jali::timing {

inline void hide(const void* data, std::size_t bytes) { VALGRIND_MAKE_MEM_UNDEFINED(data, bytes); }
inline void show(const void* data, std::size_t bytes) { VALGRIND_MAKE_MEM_DEFINED(data, bytes); }

/// Whether memcheck takes none of these bytes for defined, which shows that the secret came
/// through.
inline bool all_hidden(const void* data, std::size_t bytes) {
  std::vector<std::uint8_t> undefined(bytes);  // a set bit is not defined
  VALGRIND_GET_VBITS(data, undefined.data(), bytes);
  for (const std::uint8_t byte : undefined) {
    if (byte == 0) return false;
  }
  return true;
}

/// Cases that failed.
inline int failures = 0;

/// Runs one case. It returns whether the result still depends on the secret, because a case whose
/// secret was lost on the way could not fail.
template <class Case>
void check(const std::string& what, const Case& run) {
  const auto before = VALGRIND_COUNT_ERRORS;
  const bool followed = run();
  const auto reports = VALGRIND_COUNT_ERRORS - before;
  std::printf("%-72s %s\n", what.c_str(),
              reports != 0 ? "DEPENDS ON THE SECRET"
              : followed   ? "ok"
                           : "LOST THE SECRET");
  std::fflush(stdout);
  failures += reports != 0 || !followed;
}

/// Every case of exact integers, and of TFHE.
void discrete_cases();
void tfhe_cases();

}  // namespace jali::timing
