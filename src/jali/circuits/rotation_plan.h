// Baby-step giant-step plans for sums of rotated and weighted ciphertexts, and the cost model that
// chooses them. Nothing here touches a ciphertext.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "jali/params/ckks_params.h"

namespace jali::circuits {

/// How often the divisions by P are put off (Bossuat, Mouchet, Troncoso-Pastoriza, Hubaux 2021).
enum class Hoisting {
  automatic,  // whichever of the two the cost model finds cheaper
  single,     // one ModUp for all baby steps; every baby step is divided by P
  twice  // baby steps and their sums stay over QP; one division a giant step for c1, one in all
};

/// Predicted time of the parts of a key switch at one level, in transforms of one limb.
struct LevelCost {
  double hoist = 0;  // ModUp of all digits
  double product = 0;  // inner product with one key
  double mod_down = 0;  // division by P of one polynomial
  double multiply_q = 0;  // two polynomials times a diagonal over Q ...
  double multiply_qp = 0;  // ... over Q and P
  double encode_q = 0;  // encoding a diagonal over Q ...
  double encode_qp = 0;  // ... over Q and P

  LevelCost(const params::CkksParams& params, int level);
  double rotation() const { return hoist + product + 2 * mod_down; }
};

/// diagonals[output][input]: sorted distinct indices in [0, slots) of the non-zero diagonals of
/// that block; y_o[s] = sum over inputs i and d of diagonal_{o,i,d}[s] x_i[s + d].
using BlockDiagonals = std::vector<std::vector<std::vector<int>>>;

/// With d = giant + baby:  y_o = sum_g rot_g( sum_{i,b} rot_{-g}(diagonal_{o,i,g+b}) rot_b(x_i) ).
struct BsgsPlan {
  struct Term {
    std::size_t input = 0;
    std::size_t baby = 0;  // index in babies[input]
    int diagonal = 0;
  };
  struct Giant {
    int rotation = 0;
    std::vector<Term> terms;
  };

  std::size_t slots = 0;
  Hoisting hoisting = Hoisting::twice;  // single or twice
  std::vector<std::vector<int>> babies;  // [input], rotations in (-slots/2, slots/2]
  std::vector<std::vector<Giant>> giants;  // [output], rotation 0 first where there is one
  double cost = 0;  // by LevelCost
  /// One key for all: y_o = rot_offset( sum_g rot_g(..) ), every g a multiple of unit, by Horner's rule
  ///   sum_g rot_g(s_g) = s_0 + rot_unit(s_1 + rot_unit(s_2 + ..)),
  /// without baby steps. Giants ascend from 0 and are not wrapped.
  bool minimum = false;
  int unit = 0, offset = 0;

  /// Sorted, distinct, without 0.
  std::vector<int> rotations() const;
  std::size_t diagonal_count() const;
  /// Key switches: those that share a ModUp, and those that need one of their own.
  std::size_t hoisted_key_switches() const;
  std::size_t full_key_switches() const;
};

struct BsgsOptions {
  Hoisting hoisting = Hoisting::automatic;
  bool streaming = false;  // diagonals are encoded at each use: that counts too
  bool minimum = false;  // the fewest keys instead of the least time
  double launches = 0;  // what a giant step costs besides, in transforms: its launches on a GPU
  std::optional<int> baby_step{};  // giants are multiples of it; empty: chosen
};

BsgsPlan plan_bsgs(const params::CkksParams& params, int level, std::size_t slots,
                   const BlockDiagonals& diagonals, const BsgsOptions& options = {});

/// The index behind the widest gap of a set of diagonals, cyclically: counted from it they reach least
/// far.
int first_diagonal(const std::set<int>& indices, std::size_t slots);

/// The rotation modulo slots that lies in (-slots/2, slots/2].
int signed_rotation(long long steps, std::size_t slots);

}  // namespace jali::circuits
