// Objects with valid checksums and hostile content, described by a few bytes: what a loader accepts
// although no honest program wrote it. Most fields are honest in most objects, so that operations
// get past their first checks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>

#include "jali/base/error.h"
#include "jali/wire/frame.h"
#include "objects.h"
#include "stream.h"

namespace jali::fuzz {

/// Keys, a hostile peer's parameters, and what reads what the peer sends.
class Forger {
 public:
  explicit Forger(const testing::Objects& objects) : o_(objects) {}

  /// Empty where the loader refuses it, as it does most often when bytes were changed.
  ckks::View view(Stream& in) const {
    constexpr std::uint32_t kCounts[] = {1, 2, 3, 30, 512, 513, 0, 1u << 31, 0xffffffff};
    constexpr std::int32_t kStrides[] = {1, 2, 32, 512, 0, -1, -32, 1 << 30, -(1 << 30)};
    ckks::View out;
    for (std::size_t k = in.below(4); k > 0; --k) {
      out.axes.push_back(
          {kCounts[in.below(std::size(kCounts))], kStrides[in.below(std::size(kStrides))]});
    }
    out.first = in.once_in(3) ? kCounts[in.below(std::size(kCounts))] : 0;
    out.period = in.once_in(4) ? kCounts[in.below(std::size(kCounts))] : 0;
    return out;
  }

  std::optional<ckks::Ciphertext> ciphertext(Stream& in) const {
    ckks::Ciphertext x;
    x.params = o_.params;
    x.key_id = key_id(in);
    x.level = level(in);
    x.log_slots = log_slots(in);
    x.scale = scale(in, x.level);
    x.estimate.variance = in.once_in(3) ? in.number() : 11;
    x.estimate.message = in.once_in(3) ? in.number() : 1;
    x.estimate.peak = in.once_in(3) ? in.number() : 8;
    x.estimate.error = in.once_in(3) ? in.number() : 5000;
    x.estimate.noise = in.once_in(3) ? in.number() : 3000;
    if (in.once_in(3)) {
      constexpr std::uint32_t kLengths[] = {1, 3, 100, 511, 512, 513, 0xffffffff};
      x.packing.length = kLengths[in.below(std::size(kLengths))];
      x.packing.batched = in.once_in(2);
      x.packing.complex_values = in.once_in(2);
      if (in.once_in(2)) x.packing.rest = in.once_in(2) ? 0 : in.number();
      if (in.once_in(2)) {
        constexpr std::uint32_t kSizes[] = {0, 1, 2, 3, 8, 64, 512, 0x80000000, 0xffffffff};
        const auto size = [&] { return kSizes[in.below(std::size(kSizes))]; };
        x.packing.tiling = {size(), size(), size(), size()};
      }
    }
    if (in.once_in(6)) {
      x.packing.view = view(in);
      x.packing.length = 0;
      x.packing.batched = true;
    }
    const std::size_t batch = in.once_in(4) ? 1 + in.below(5) : 1;
    const std::size_t parts = in.once_in(4) ? 3 : 2;
    const auto& primes = o_.params->level(x.level).primes;
    for (std::size_t i = 0; i < parts; ++i) x.parts.push_back(poly(in, primes, batch));
    if (parts == 2 && in.once_in(3)) {
      x.seed = in.seed();
      x.parts[1] = rlwe::expand_uniform(*o_.ring, *x.seed, 0, primes, batch);
    }
    return through_bytes(in, x);
  }

  std::optional<ckks::Plaintext> plaintext(Stream& in) const {
    ckks::Plaintext x;
    x.params = o_.params;
    x.level = level(in);
    x.log_slots = log_slots(in);
    x.scale = scale(in, x.level);
    x.message = in.once_in(3) ? in.number() : 1;
    x.peak = in.once_in(3) ? in.number() : 8;
    x.poly = poly(in, o_.params->level(x.level).primes, in.once_in(4) ? 1 + in.below(5) : 1);
    return through_bytes(in, x);
  }

  std::optional<rlwe::PublicKey> public_key(Stream& in) const {
    rlwe::PublicKey x;
    x.params = o_.params;
    x.key_id = key_id(in);
    x.seed = in.seed();
    x.b = poly(in, o_.params->q_primes(), 1);
    return through_bytes(in, x);
  }

  std::optional<rlwe::EvaluationKeys> evaluation_keys(Stream& in) const {
    rlwe::EvaluationKeys x;
    x.params = o_.params;
    x.key_id = key_id(in);
    if (!in.once_in(4)) x.relinearisation = switch_key(in);
    for (std::size_t k = in.below(4); k > 0; --k) {
      const auto element = in.once_in(3) ? 2 * std::uint64_t{in.read<std::uint16_t>()} + 1
                                         : ring::galois_element(o_.params->n(), in.integer());
      x.galois.insert_or_assign(element, switch_key(in));
    }
    return through_bytes(in, x);
  }

 private:
  // The honest client's, none, or anybody's.
  rlwe::KeyId key_id(Stream& in) const {
    if (!in.once_in(8)) return o_.sk->id();
    rlwe::KeyId id;
    for (auto& byte : id.bytes) byte = in.byte();
    return id;
  }
  int level(Stream& in) const { return o_.params->depth() - static_cast<int>(in.below(5)) / 2; }

  int log_slots(Stream& in) const {
    const int most = o_.params->log_n() - 1;
    return in.once_in(4) ? static_cast<int>(in.below(static_cast<std::size_t>(most) + 2)) : most;
  }

  double scale(Stream& in, int level) const {
    const rlwe::Level& l = o_.params->level(level);
    const double edge = std::exp2(l.log_q + 64), scale = o_.params->scale(level);
    const double scales[] = {scale * scale,
                             0x1p-64,
                             0x1p-63,
                             edge * (1 - 0x1p-40),
                             1,
                             scale / 2,
                             scale * 2,
                             scale * (1 + 0x1p-21),
                             edge,
                             std::exp2(l.log_q),
                             scale * (1 + 0x1p-19),
                             scale * 0x1p-70,
                             0x1p-65,
                             5e-324};
    const std::size_t k = in.byte();
    if (k < 144) return scale;
    return k < 240 ? scales[k % std::size(scales)] : in.number();
  }

  // Zero, the largest residues, or anything.
  ring::Poly poly(Stream& in, std::span<const PrimeIndex> primes, std::size_t batch) const {
    const std::size_t kind = in.below(8);
    ring::Poly x = o_.ring->zero(primes, batch);
    if (kind >= 2) return rlwe::expand_uniform(*o_.ring, in.seed(), 0, primes, batch);
    if (kind == 1) {
      ring::Poly one = o_.ring->zero(primes, batch);
      o_.ring->ops().add_scalar(x.view(), one.view(),
                                ring::residues(*o_.ring, primes, std::int64_t{-1}));
    }
    return x;
  }

  rlwe::SwitchKey switch_key(Stream& in) const {
    if (!in.once_in(3)) {  // an honest one, perhaps for another element
      return wire::from_bytes<rlwe::SwitchKey>(wire::to_bytes(o_.switch_key, *o_.params), o_.params,
                                               *o_.ring);
    }
    rlwe::SwitchKey x;
    if (in.once_in(2))
      x.level = static_cast<int>(in.below(static_cast<std::size_t>(o_.params->top()) + 1));
    x.seed = in.seed();
    if (x.level >= o_.params->top()) return x;
    for (std::size_t d = 0; d < o_.params->key_digits(x.level); ++d) {
      x.b.push_back(poly(in, o_.params->key_primes(x.level), 1));
    }
    return x;
  }

  // Written, changed here and there among the fields, sealed again, and read.
  template <class T>
  std::optional<T> through_bytes(Stream& in, const T& x) const {
    try {
      wire::Bytes bytes = wire::to_bytes(x);
      if (in.once_in(4)) {
        for (std::size_t changes = 1 + in.below(3); changes > 0; --changes) {
          const std::size_t room = bytes.size() - wire::kFrameBytes;
          const std::size_t at = in.byte() % std::min<std::size_t>(room, 96);
          const double value = in.number();
          const std::size_t width = std::min(std::size_t{1} << in.below(4), room - at);
          std::memcpy(bytes.data() + wire::kHeaderBytes + at, &value, width);
        }
        wire::seal_frame(bytes);
      }
      return wire::from_bytes<T>(bytes, o_.params, *o_.ring, {std::size_t{1} << 22});
    } catch (
        const Error&) {  // what writing and reading may throw is held by the loaders' own targets
      return std::nullopt;
    }
  }

  const testing::Objects& o_;
};

}  // namespace jali::fuzz
