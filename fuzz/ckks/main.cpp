// The fuzz target of what comes after the loaders: hostile objects that a loader accepts go through
// every operation, in any order. With JALI_FUZZ_BOOTSTRAP bootstrapping is among them.
//
// An input is a list of choices: parameters, objects (hostile.h), then operations with their
// arguments. Every operation gives one jali::Error, or a result that is whole: its figures are
// numbers, its bytes are read again to the same bytes, and it decrypts. Everything else stops the
// program.
//
// A new public method of an evaluator joins the file that is named for its class:
// tools/check_fuzz.py refuses its absence.
#include <algorithm>
#include <random>

#include "run.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace jali::fuzz {

#ifdef JALI_FUZZ_BOOTSTRAP
const bool kBootstrap = true;
#else
const bool kBootstrap = false;
#endif

namespace {

constexpr std::size_t kMaxInput = 512;

std::vector<Operation> all_operations() {
  std::vector<Operation> out;
  for (const auto& some :
       {evaluator_operations(), auto_evaluator_operations(), array_evaluator_operations(),
        circuit_operations(), batch_operations(), client_operations()}) {
    out.insert(out.end(), some.begin(), some.end());
  }
  return out;
}

void run(Run& r) {
  static const std::vector<Operation> others = all_operations();
  const int most = kBootstrap ? 4 : 24;  // bounds the work on one input
  for (int k = 0; k < most && !r.in.empty(); ++k) {
    // Every other one is of bootstrapping, if that is among them.
    const auto bootstrapping = bootstrap_operations();
    const auto& [name, call] = kBootstrap && r.in.once_in(2)
                                   ? bootstrapping[r.in.below(bootstrapping.size())]
                                   : others[r.in.below(others.size())];
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
    const World& w = world(in.below(3));
    Run r(w, in);
    for (const Ciphertext& x : r.pool) r.examine(x);
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
