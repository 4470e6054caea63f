// The fuzz target of the operations of TFHE. An input is a list of choices: parameters, vectors,
// then operations with their arguments. Vectors are honest encryptions, or objects with valid
// checksums and hostile content that the loader accepts. Every operation gives one jali::Error, or
// a result that is whole: it fits its parameters, its bytes are read again to the same bytes, and,
// if all operands were honest, it decrypts to what the same operation gives in the clear.
//
// A new public method joins the file that is named for its class: tools/check_fuzz.py refuses its
// absence.
#include <algorithm>
#include <random>

#include "run.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace jali::fuzz {
namespace {

constexpr std::size_t kMaxInput = 512;
constexpr int kMost = 16;  // operations; bounds the work on one input

void run(TfheRun& r) {
  for (int k = 0; k < kMost && !r.in.empty(); ++k) {
    const auto operations = r.in.once_in(4)   ? tfhe_integer_operations()
                            : r.in.once_in(8) ? tfhe_client_operations()
                                              : tfhe_evaluator_operations();
    const auto& [name, call] = operations[r.in.below(operations.size())];
    operation = name;
    try {
      call(r);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::internal) stop(error.what());
    }
    r.settle();
  }
}

}  // namespace
}  // namespace jali::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jali::fuzz;
  Stream in({data, std::min(size, kMaxInput)});
  operation = "loading";
  try {
    TfheRun r(tfhe_world(in.below(kWorlds)), in);
    run(r);
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
