#include "jali/ring/blocks.h"

#include <algorithm>
#include <numeric>

#include "jali/base/error.h"

namespace jali::ring {

Poly stack(const Ring& ring, std::span<const Poly* const> blocks) {
  require<InvalidArgument>(!blocks.empty(), "stack needs at least one block");
  const Poly& first = *blocks[0];
  std::size_t batch = 0;
  for (const Poly* block : blocks) {
    require<InternalError>(
        std::ranges::equal(block->primes(), first.primes()) && block->form() == first.form(),
        "stack: blocks of one batch must have the same primes and the same form");
    batch += block->batch();
  }
  Poly all = ring.make(first.primes(), batch, first.form());
  const std::size_t row = all.row_bytes(), limbs = all.limbs();
  if (std::ranges::all_of(blocks,
                          [&](const Poly* x) { return x->batch() == 1 && ring.holds(*x); })) {
    std::vector<const void*> rows;
    for (const Poly* block : blocks) rows.push_back(block->data());
    ring.copies().gather(all.data(), rows, row, limbs);
    return all;
  }
  std::size_t b = 0;
  for (const Poly* block : blocks) {
    const Poly fetched = ring.holds(*block) ? Poly() : ring.import(*block);
    const Poly& here = fetched.empty() ? *block : fetched;
    ring.copies().copy_rows(all.row(0, b), batch * row, here.data(), here.batch() * row,
                            here.batch() * row, limbs);
    b += here.batch();
  }
  return all;
}

std::vector<Poly> split(const Ring& ring, const Poly& x, std::span<const std::size_t> batches) {
  require<InvalidArgument>(
      std::accumulate(batches.begin(), batches.end(), std::size_t{0}) == x.batch(),
      "split: the batches must add up to the batch of the ciphertext");
  const bool singles = std::ranges::all_of(batches, [](std::size_t n) { return n == 1; });
  std::vector<Poly> out;
  std::vector<void*> rows;
  for (std::size_t i = 0, b = 0; i < batches.size(); b += batches[i++]) {
    Poly& part = out.emplace_back(ring.make(x.primes(), batches[i], x.form()));
    const std::size_t bytes = batches[i] * part.row_bytes();
    if (singles) {
      rows.push_back(part.data());
    } else {
      ring.copies().copy_rows(part.data(), bytes, x.row(0, b), x.batch() * part.row_bytes(), bytes,
                              part.limbs());
    }
  }
  if (singles) ring.copies().scatter(rows, x.data(), x.row_bytes(), x.limbs());
  return out;
}

}  // namespace jali::ring
