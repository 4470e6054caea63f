// What several rotations share (hoisting; Halevi and Shoup 2018), and sums of them before their
// division by P (double hoisting; Bossuat et al. 2021).
#pragma once

#include <vector>

#include "jali/backend/rlwe_ops.h"
#include "jali/rlwe/ciphertext.h"

namespace jali::rlwe {

/// The ModUp of a ciphertext's key-switching digits, computed once and used by many rotations.
struct Lifted {
  std::vector<PrimeIndex> primes;  // of every digit: the level's primes, then those of P
  device::Buffer ext;  // digits x primes x batch x N
};

/// The same with the ciphertext: rlwe::Ciphertext, or a scheme's type that extends it.
template <class Source>
struct HoistedOf : Lifted {
  const Source* source = nullptr;  // must outlive this
  backend::ConstView view() const { return {ext.data(), primes, source->batch()}; }
};

/// A rotation times P that is not computed until Evaluator::rotated_sums uses it.
template <class Source>
struct RotationOf {
  const Source* source = nullptr;  // must outlive this, as its HoistedOf must
  backend::Rotated view;
};

using Hoisted = HoistedOf<Ciphertext>;
using Rotation = RotationOf<Ciphertext>;

/// A ciphertext over Q_level * P, before the division by P. A sum of many such rotations needs one
/// division only.
struct Extended {
  KeyId key_id;
  ring::Poly c0, c1;  // over the level's primes, then P; they hold P times the ciphertext
  int level = 0;

  Extended& body() { return *this; }
  const Extended& body() const { return *this; }
};

}  // namespace jali::rlwe
