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
#include "run.h"

namespace jali::fuzz {

#ifdef JALI_FUZZ_BOOTSTRAP
const bool kBootstrap = true;
#else
const bool kBootstrap = false;
#endif

namespace {

std::vector<Operation> all_operations() {
  std::vector<Operation> out;
  for (const auto& some :
       {evaluator_operations(), auto_evaluator_operations(), array_evaluator_operations(),
        circuit_operations(), batch_operations(), client_operations()}) {
    out.insert(out.end(), some.begin(), some.end());
  }
  return out;
}

}  // namespace

void run_input(Stream& in) {
  static const std::vector<Operation> others = all_operations();
  Run r(world(in.below(3)), in);
  for (const Ciphertext& x : r.pool) r.examine(x);
  // Every other one is of bootstrapping, if that is among them.
  run_operations(r, kBootstrap ? 4 : 24, [&] {
    const auto bootstrapping = bootstrap_operations();
    return kBootstrap && in.once_in(2) ? bootstrapping[in.below(bootstrapping.size())]
                                       : others[in.below(others.size())];
  });
}

}  // namespace jali::fuzz
