#include "runner.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace jali::fuzz {

const char* operation = "loading";

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", operation, why.c_str());
  __builtin_trap();
}

namespace {
constexpr std::size_t kMaxInput = 512;
}  // namespace

}  // namespace jali::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jali::fuzz;
  Stream in({data, std::min(size, kMaxInput)});
  operation = "loading";
  try {
    run_input(in);
  } catch (const std::exception& error) {
    stop(std::string("an exception of another kind: ") + error.what());
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  max_size = std::min(max_size, jali::fuzz::kMaxInput);
  size = std::min(size, max_size);
  std::minstd_rand generator(seed);
  if (size < 16 || generator() % 16 == 0) {  // another input altogether
    size = std::min<std::size_t>(max_size, 64 + generator() % 256);
    for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::uint8_t>(generator() >> 8);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
