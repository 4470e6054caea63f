// A circuit over digits: waves of look-ups, each of a linear combination of what earlier waves
// left. One circuit serves every integer of a vector, its lanes.
//
// A circuit is made by a Builder, once for each operation and type, and is not changed afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "jali/integers/digits.h"

namespace jali::integers {

class Circuit : public std::enable_shared_from_this<Circuit> {
 public:
  /// A digit that a combination may read: digit `index` of operand `operand`, or, if operand is
  /// negative, result `index` of the rotation whose results begin at `slot` of the arena, `results`
  /// of them.
  struct Column {
    std::int32_t operand = -1;
    std::uint32_t slot = 0;
    std::uint32_t index = 0;
    std::uint32_t results = 1;
  };
  /// Linear combinations of columns, of clear digits and of a constant, in rows. Constants are in
  /// halves.
  struct Combinations {
    std::vector<std::uint32_t> begin{0}, column;
    std::vector<std::int32_t> weight;
    std::vector<std::uint32_t> clear_begin{0}, clear_column;
    std::vector<std::int32_t> clear_weight;
    std::vector<std::int32_t> constant;
    std::size_t rows() const { return constant.size(); }
  };
  /// The look-ups of a wave, sorted by their kind. Rotation r takes the table `table[r]`, plus the
  /// value of the clear combination key[r] if that is not negative.
  struct Wave {
    Combinations inputs;
    std::vector<std::uint32_t> table;
    std::vector<std::int32_t> key;
    std::vector<RowLookUps::Group> groups;
    std::uint32_t slot = 0;  // the wave's results begin here in the arena
  };

  std::vector<std::uint32_t> operands;  // digits of each operand
  std::uint32_t clear_digits = 0;  // of each lane
  std::vector<Column> columns;
  std::vector<Wave> waves;
  std::vector<std::int16_t> tables;  // 2^p entries each, in halves
  Combinations keys;  // combinations of clear digits alone, which choose tables
  Combinations outputs;
  double output_noise = 0;  // the largest of an output
  std::uint32_t arena = 0;  // slots; a slot holds one digit of every lane
  std::uint32_t widest = 0;  // rotations of the largest wave

  std::size_t look_ups() const;
  std::size_t depth() const { return waves.size(); }
  /// The time of a run in times of one look-up, if `wave` look-ups take as long as one.
  double time(std::size_t lanes, std::size_t wave) const;
};

}  // namespace jali::integers
