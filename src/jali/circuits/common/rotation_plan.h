// Baby-step giant-step (BSGS) plans for weighted sums of rotated ciphertexts, and the cost model
// that chooses among them. Nothing here touches a ciphertext.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "jali/params/rlwe_params.h"

namespace jali::circuits {

/// How long the divisions by P are postponed (Bossuat, Mouchet, Troncoso-Pastoriza, Hubaux 2021).
enum class Hoisting {
  automatic,  // the one of the two that the cost model finds cheaper
  single,  // hoisting: one ModUp for all baby steps; every baby step is divided by P
  twice  // double hoisting: baby steps and their sums stay over QP; c1 is divided once a giant
         // step, the result once
};

/// The predicted time of the parts of a key switching at one level. The unit is the time of the NTT
/// of one limb.
struct LevelCost {
  double hoist = 0;  // ModUp of all digits
  double product = 0;  // inner product with one key
  double mod_down = 0;  // division by P of one polynomial
  double multiply_q = 0;  // two polynomials times a diagonal over Q
  double multiply_qp = 0;  // two polynomials times a diagonal over Q and P
  double encode_q = 0;  // encoding a diagonal over Q
  double encode_qp = 0;  // encoding a diagonal over Q and P

  LevelCost(const rlwe::Params& params, int level);
  double rotation() const { return hoist + product + 2 * mod_down; }
};

/// Steps that are made one after the other, with few keys. The diagonals are d = offset + unit
/// (babies g + b), b < babies, so that
///   y = rot_offset( sum_g rot_{g unit babies}(s_g) ),  s_g = sum_b rot_{-(d - b unit)}(diagonal_d)
///   x_b,  x_b = rot_{b unit}(x).
/// One key serves all giant steps, by Horner's rule. Baby steps come in runs of `own`. The first of
/// each run is the first of the run before, rotated by unit own; the others of a run are rotated
/// from its first one, each with a key of its own, and share its ModUp. So own = 1 needs one key
/// for all baby steps (minimum key switching; Kim et al. 2022, ARK), and own = babies needs babies
/// - 1. babies = own = 1 is Horner's rule alone, with one key for any number of diagonals.
struct Sequence {
  int babies = 1, own = 1;
  bool operator==(const Sequence&) const = default;
};

/// diagonals[output][input] holds the indices of the non-zero diagonals of that block: sorted,
/// distinct, in [0, slots). y_o[s] = sum over inputs i and indices d of diagonal_{o,i,d}[s] x_i[s +
/// d].
using BlockDiagonals = std::vector<std::vector<std::vector<int>>>;

/// Every index is split as d = giant + baby, so that  y_o = sum_g rot_g( sum_{i,b}
/// rot_{-g}(diagonal_{o,i,g+b}) rot_b(x_i) ).
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
  std::vector<std::vector<Giant>> giants;  // [output]; rotation 0 comes first if there is one
  double cost = 0;  // predicted time, in the unit of LevelCost
  /// If it is set, the steps are made as Sequence says. The babies of every input are then 0, unit,
  /// 2 unit .. modulo slots, without gaps, and the giants ascend from 0 and lie in [0, slots)
  /// instead of (-slots/2, slots/2].
  std::optional<Sequence> sequence{};
  int unit = 0, offset = 0;
  int giant_step() const { return sequence ? unit * sequence->babies : 0; }

  /// The rotations for which keys are needed: sorted, distinct, without 0.
  std::vector<int> rotations() const;
  std::size_t diagonal_count() const;
  /// The numbers of key switchings that share a ModUp, and of those that need a ModUp of their own.
  std::size_t hoisted_key_switches() const;
  std::size_t full_key_switches() const;
};

struct BsgsOptions {
  Hoisting hoisting = Hoisting::automatic;
  bool streaming = false;  // diagonals are encoded at each use, and the cost counts that
  /// Few keys instead of the least time. hoisting and baby_step are then ignored.
  std::optional<Sequence> sequence{};
  /// A further cost of each key switching with a ModUp of its own, for its kernel launches on a
  /// GPU.
  double launches = 0;
  std::optional<int> baby_step{};  // giants are multiples of it; empty: it is chosen
};

/// The cheapest plan for these diagonals at `level`. Throws InvalidArgument if the blocks have no
/// input, if rows differ in length, if an index or baby_step is out of range, or unless 1 <= own <=
/// babies.
BsgsPlan plan_bsgs(const rlwe::Params& params, int level, std::size_t slots,
                   const BlockDiagonals& diagonals, const BsgsOptions& options = {});

/// The index that follows the widest cyclic gap in a set of diagonals. Counted from it, they span
/// the shortest range.
int first_diagonal(const std::set<int>& indices, std::size_t slots);

/// The rotation modulo slots that lies in (-slots/2, slots/2].
int signed_rotation(long long steps, std::size_t slots);

}  // namespace jali::circuits
