#include "jali/rlwe/recorded.h"

namespace jali::rlwe {

std::string unlike_example(std::size_t index, const char* what, double got, double expected) {
  return "input " + std::to_string(index) + " of the captured function has another " + what +
         " than its example (" + std::to_string(got) + ", not " + std::to_string(expected) +
         "): bring it there, or capture the function for such inputs";
}

void require_like_example(std::size_t index, const Ciphertext& input, const Ciphertext& example) {
  require<KeyMismatch>(input.key_id == example.key_id, [&] {
    return "input " + std::to_string(index) +
           " of the captured function belongs to another secret key than its example: capture the "
           "function for each client";
  });
  const auto equal = [&](const char* what, double got, double expected) {
    require<InvalidArgument>(got == expected,
                             [&] { return unlike_example(index, what, got, expected); });
  };
  equal("number of parts", static_cast<double>(input.parts.size()),
        static_cast<double>(example.parts.size()));
  equal("level", input.level, example.level);
  equal("batch", static_cast<double>(input.batch()), static_cast<double>(example.batch()));
}

}  // namespace jali::rlwe
