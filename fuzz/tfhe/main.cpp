// The fuzz target of the operations of TFHE. An input is a list of choices: parameters, vectors,
// then operations with their arguments. Vectors are honest encryptions, or objects with valid
// checksums and hostile content that the loader accepts. Every operation gives one jali::Error, or
// a result that is whole: it fits its parameters, its bytes are read again to the same bytes, and,
// if all operands were honest, it decrypts to what the same operation gives in the clear.
//
// A new public method joins the file that is named for its class: tools/check_fuzz.py refuses its
// absence.
#include "run.h"

namespace jali::fuzz {

void run_input(Stream& in) {
  TfheRun r(tfhe_world(in.below(kWorlds)), in);
  run_operations(r, 16, [&] {
    const auto operations = in.once_in(4)   ? tfhe_integer_operations()
                            : in.once_in(8) ? tfhe_client_operations()
                                            : tfhe_evaluator_operations();
    return operations[in.below(operations.size())];
  });
}

}  // namespace jali::fuzz
