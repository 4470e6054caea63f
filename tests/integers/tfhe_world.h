// Integers on an evaluator of TFHE, with the client that reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "jali/integers/arithmetic.h"
#include "jali/integers/tfhe_machine.h"
#include "jali/schemes/tfhe/secret/client.h"

namespace jali::integers::test {

using Numbers = std::vector<Wide>;

/// A client and integers on its evaluator.
struct IntegerWorld {
  explicit IntegerWorld(const std::shared_ptr<const tfhe::Evaluator>& on, tfhe::Client& of,
                        const TfheMachineOptions& options = {})
      : client(of),
        evaluator(on),
        machine(std::make_shared<const TfheMachine>(on, options)),
        arithmetic(machine) {}

  /// The digits of integers, in the engine's memory.
  tfhe::Ciphertext digits_of(const Numbers& values, IntegerType type) {
    const int m = machine->space().message_bits;
    std::vector<std::uint8_t> one(static_cast<std::size_t>(type.digits(m)));
    std::vector<std::uint64_t> digits;
    for (const Wide value : values) {
      split(value, type, m, one);
      digits.insert(digits.end(), one.begin(), one.end());
    }
    return machine->evaluator().bind(client.encrypt(digits));
  }
  Integers encrypt(const Numbers& values, IntegerType type) {
    return {type, values.size(), TfheMachine::rows_of(digits_of(values, type))};
  }
  tfhe::Ciphertext ciphertext(const Integers& x) const {
    return machine->ciphertext(x.rows(), largest_digits(x.type(), machine->space().message_bits));
  }
  Numbers decrypt(const tfhe::Ciphertext& of, IntegerType type) {
    const int m = machine->space().message_bits;
    const auto digits = client.decrypt(machine->evaluator().host_copy(of));
    const auto n = static_cast<std::size_t>(type.digits(m));
    Numbers out;
    for (std::size_t at = 0; at < digits.size(); at += n) {
      const auto first = digits.begin() + static_cast<std::ptrdiff_t>(at);
      const std::vector<std::uint8_t> one(first, first + static_cast<std::ptrdiff_t>(n));
      out.push_back(joined(one, type, m));
    }
    return out;
  }
  Numbers decrypt(const Integers& x) { return decrypt(ciphertext(x), x.type()); }

  tfhe::Client& client;
  std::shared_ptr<const tfhe::Evaluator> evaluator;
  std::shared_ptr<const TfheMachine> machine;
  Arithmetic arithmetic;
};

}  // namespace jali::integers::test
