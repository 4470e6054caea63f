// What the wrappers of tables on blocks of residues share: how a View becomes a shape and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "jali/backend/config.h"
#include "jali/backend/engine.h"
#include "jali/backend/trace/recorder.h"
#include "jali/backend/view.h"

namespace jali::backend::trace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Primes = std::span<const PrimeIndex>;

/// What the header of a trace says of an engine.
Shape header_of(const Engine& engine, const KeyLayout& keys);

/// A record of an operation between these primes, with the names that all shapes have and no
/// operands.
Record rns_record(const char* op, Primes in, Primes out, std::size_t batch);

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
                std::initializer_list<ConstView> writes, Kind writes_kind = Kind::unknown) const;
  /// `blocks` blocks of the shape of x, one after the other.
  void read(Record& r, ConstView x, Kind kind = Kind::unknown, std::size_t blocks = 1) const {
    recorder_.read(r, kind, x.data, blocks * limbs(x) * row_bytes());
  }
  void write(Record& r, ConstView x, Kind kind = Kind::unknown, std::size_t blocks = 1) const {
    recorder_.write(r, kind, x.data, blocks * limbs(x) * row_bytes());
  }
  /// Memory of the host, or of the engine if the operation allows it.
  template <class T>
  void read_host(Record& r, std::span<T> x) const {
    recorder_.read(r, Kind::host, x.data(), x.size_bytes());
  }
  template <class T>
  void write_host(Record& r, std::span<T> x) const {
    recorder_.write(r, Kind::host, x.data(), x.size_bytes());
  }
  template <class Call>
  void run(Record r, const Call& call) const {
    recorder_.run(std::move(r), call);
  }

  const Recorder& recorder_;
  const Config& config_;
};

}  // namespace jali::backend::trace
