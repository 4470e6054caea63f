#include "jali/backend/cpu/core.h"

#include <bit>
#include <utility>

#include "jali/arith/bit_reverse.h"
#include "jali/backend/cpu/isa.h"
#include "jali/base/error.h"

namespace jali::backend::cpu {

Core::Core(Config of)
    : config(validated(std::move(of))),
      kernels(select_kernels(config.isa, config.word)),
      row_bytes(config.n * word_bytes(config.word)),
      pool(config.threads) {
  const std::size_t vectors = config.n / kernels.lanes;
  rev.resize(vectors);
  for (std::uint32_t u = 0; u < vectors; ++u) {
    rev[u] = arith::bit_reverse(u, std::countr_zero(vectors));
  }
  primes.resize(config.primes.size());
  const std::size_t bytes = PrimeTables::table_bytes(config.n, kernels);
  tables = AlignedBlock(device::host_memory(), primes.size() * bytes);
  pool.parallel(primes.size(), [&](std::size_t i) {
    primes[i] = std::make_unique<const PrimeTables>(config.primes[i], config.n, kernels,
                                                    tables.data() + i * bytes);
  });
}

void RowAccess::check(ConstView v) const {
  require<InvalidArgument>(v.batch >= 1 && (v.data != nullptr || v.primes.empty()),
                           "a block of residues needs memory and a batch of at least 1");
  for (std::size_t i = 0; i < v.primes.size(); ++i) {
    require<InvalidArgument>(
        v.primes[i] < primes_.size() && (i == 0 || v.primes[i - 1] < v.primes[i]),
        "the prime indices of a block must ascend and be below the number of primes");
  }
}

void RowAccess::check_same(ConstView out, ConstView in, bool broadcast) const {
  require<InvalidArgument>(std::ranges::equal(out.primes, in.primes),
                           "the blocks of one operation must have the same primes");
  require<InvalidArgument>(in.batch == out.batch || (broadcast && in.batch == 1),
                           "the blocks of one operation must have the same batch");
  require<InvalidArgument>(in.data != nullptr || in.primes.empty(),
                           "a block of residues needs memory");
}

void RowAccess::check_apart(ConstView out, ConstView in) const {
  require<InvalidArgument>(out.data != in.data || out.primes.empty(),
                           "this operation cannot write its result over an input");
}

void RowAccess::check_scalars(ConstView out, std::span<const std::uint64_t> s) const {
  require<InvalidArgument>(s.size() == out.primes.size(), "one scalar is needed for each limb");
  for (std::size_t i = 0; i < s.size(); ++i) {
    require<InvalidArgument>(s[i] < prime(out.primes[i]).row.q,
                             "a scalar must be reduced modulo the prime of its limb");
  }
}

}  // namespace jali::backend::cpu
