// The fuzz target of the operations of exact integers. An input is a list of choices: parameters,
// vectors, then operations with their arguments. Vectors are honest encryptions, or objects with
// valid checksums and hostile content that the loader accepts. Every operation gives one
// jali::Error, or a result that is whole: its figures are in range, and its bytes are read again to
// the same bytes. If all operands were honest, its noise is within its bounds, its numbers are
// within its range, and it decrypts to what the same operation gives in the clear, modulo T if it
// wraps and exactly if not.
//
// A new public method joins the file that is named for its class: tools/check_fuzz.py refuses its
// absence.
#include "run.h"

namespace jali::fuzz {

void run_input(Stream& in) {
  DiscreteRun r(discrete_world(in.below(kDiscreteWorlds)), in);
  run_operations(r, 16, [&] {
    const auto operations = in.once_in(4)   ? discrete_client_operations()
                            : in.once_in(3) ? discrete_circuit_operations()
                                            : discrete_evaluator_operations();
    return operations[in.below(operations.size())];
  });
}

}  // namespace jali::fuzz
