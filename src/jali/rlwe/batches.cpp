#include "jali/rlwe/batches.h"

#include <numeric>

#include "jali/ring/blocks.h"

namespace jali::rlwe {

Ciphertext stack(const ring::Ring& ring, std::span<const Ciphertext* const> inputs) {
  require<InvalidArgument>(!inputs.empty(), "stack needs at least one ciphertext");
  const Ciphertext& first = *inputs[0];
  require<InvalidArgument>(!first.parts.empty(), "an empty ciphertext cannot be batched");
  Ciphertext out{first.key_id, {}, first.level, {}};
  for (const Ciphertext* input : inputs) {
    require<InvalidArgument>(
        input->level == first.level && input->parts.size() == first.parts.size(),
        "ciphertexts of one batch need equal levels and numbers of parts");
    out.key_id = common_key(out.key_id, input->key_id);
  }
  for (std::size_t part = 0; part < first.parts.size(); ++part) {
    std::vector<const ring::Poly*> blocks;
    for (const Ciphertext* input : inputs) blocks.push_back(&input->parts[part]);
    out.parts.push_back(ring::stack(ring, blocks));
  }
  return out;
}

std::vector<Ciphertext> split(const ring::Ring& ring, const Ciphertext& a,
                              std::span<const std::size_t> batches) {
  require<InvalidArgument>(
      std::accumulate(batches.begin(), batches.end(), std::size_t{0}) == a.batch(),
      "the batches to split into must add up to the ciphertext's");
  std::vector<Ciphertext> out(batches.size());
  for (Ciphertext& one : out) {
    one.key_id = a.key_id;
    one.level = a.level;
  }
  for (const ring::Poly& from : a.parts) {
    std::vector<ring::Poly> parts = ring::split(ring, from, batches);
    for (std::size_t i = 0; i < parts.size(); ++i) out[i].parts.push_back(std::move(parts[i]));
  }
  return out;
}

}  // namespace jali::rlwe
