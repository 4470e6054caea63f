// What the wrappers of tables on blocks of residues share: how a View becomes a shape and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "jali/backend/config.h"
#include "jali/backend/trace/recorder.h"
#include "jali/backend/view.h"

namespace jali::backend::trace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Primes = std::span<const PrimeIndex>;

class RnsTracer {
 protected:
  /// Both must outlive it.
  RnsTracer(const Config& config, const Recorder& recorder)
      : recorder_(recorder), config_(config) {}

  std::size_t n() const { return config_.n; }
  std::size_t row_bytes() const { return n() * word_bytes(config_.word); }
  static std::size_t limbs(ConstView x) { return x.primes.size() * x.batch; }
  std::size_t residues(ConstView x) const { return limbs(x) * n(); }

  /// A record of the whole of these blocks; the shape is that of out and of the first block read.
  Record record(const char* op, ConstView out, std::initializer_list<ConstView> reads,
                std::initializer_list<ConstView> writes) const;
  /// `blocks` blocks of the shape of x, one after the other.
  void read(Record& r, ConstView x, std::size_t blocks = 1) const {
    trace::read(r, x.data, blocks * limbs(x) * row_bytes());
  }
  void write(Record& r, ConstView x, std::size_t blocks = 1) const {
    trace::write(r, x.data, blocks * limbs(x) * row_bytes());
  }
  template <class Call>
  void run(Record r, const Call& call) const {
    recorder_.run(std::move(r), call);
  }

  const Recorder& recorder_;
  const Config& config_;
};

}  // namespace jali::backend::trace
