// The noise that is followed through circuits: of operands that have nothing in common, and of
// those that do.
#include "jali/integers/tfhe_noise.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../seeded.h"
#include "every_operation.h"
#include "jali/base/error.h"

namespace jali::integers::test {
namespace {

using tfhe::History;

struct NoiseRows final : Rows {
  explicit NoiseRows(History of) : history(std::move(of)) {}
  std::size_t count() const override { return history.rows(); }
  History history;
};

const History& history_of(const Rows& rows) { return static_cast<const NoiseRows&>(rows).history; }

/// Follows the noise and computes nothing else. It counts the circuits whose operands must be made
/// independent.
class NoiseMachine final : public Machine {
 public:
  explicit NoiseMachine(const Space& space) : space_(space) {}
  const Space& space() const override { return space_; }
  std::size_t available_rows() const override { return std::size_t{1} << 40; }
  std::unique_ptr<Rows> allocate(std::size_t count) const override {
    EXPECT_EQ(count, 0u);
    return std::make_unique<NoiseRows>(History());
  }
  void copy(Rows&, std::size_t, const Rows&, std::size_t, std::size_t) const override { FAIL(); }
  void combine(Rows&, std::size_t, const Rows&, const RowCombination&) const override { FAIL(); }
  void look_up(Rows&, std::size_t, const Rows&, const RowLookUps&) const override { FAIL(); }

  std::unique_ptr<Rows> run(const Circuit& circuit, const Run& run) const override {
    NoiseRun noise{{}, {run.clear.begin(), run.clear.end()}, run.lanes};
    std::vector<History> operands;
    for (const Operand& operand : run.operands) {
      noise.broadcast.push_back(operand.broadcast);
      operands.push_back(history_of(*operand.rows));
    }
    auto found = noise_after(circuit, noise, operands, space_, Cancelling::refused);
    if (!found) {
      ++apart_;
      const Apart parting = apart(circuit, noise, operands);
      EXPECT_LE(parting.each, most_apart(space_));
      operands = set_apart(parting, operands, space_);
      found = noise_after(circuit, noise, operands, space_, Cancelling::counted);
    }
    if (!found) throw RangeExceeded("too much noise");
    EXPECT_LE(found->norm2(), space_.noise_budget);
    return std::make_unique<NoiseRows>(std::move(*found));
  }
  std::unique_ptr<Rows> gather(const Rows& in,
                               std::span<const std::uint32_t> which) const override {
    std::vector<std::uint32_t> begin{0}, column;
    for (const std::uint32_t row : which) {
      if (row != none) column.push_back(row);
      begin.push_back(static_cast<std::uint32_t>(column.size()));
    }
    const std::vector<std::int64_t> weight(column.size(), 1);
    return std::make_unique<NoiseRows>(history_of(in).combined({begin, column, weight}));
  }
  std::unique_ptr<Rows> concatenate(const Rows& a, const Rows& b) const override {
    const History* const parts[] = {&history_of(a), &history_of(b)};
    return std::make_unique<NoiseRows>(History::joined(parts));
  }
  std::unique_ptr<Rows> constants(std::span<const std::int64_t> halves) const override {
    return std::make_unique<NoiseRows>(History::clear(halves));
  }
  int made_apart() const { return apart_; }

 private:
  Space space_;
  mutable int apart_ = 0;
};

/// What parameters of m message and m carry bits allow: every combination of messages that fits the
/// range.
Space space_of(int m, std::size_t wave) {
  return {.message_bits = m,
          .carry_bits = m,
          .noise_budget = double((1 << m) + 1) * ((1 << m) + 1),
          .max_log_many = 2 * m - 1,
          .negacyclic = true,
          .wave = wave};
}

/// count integers whose digits are encryptions, or all of them the same one.
Integers given(IntegerType type, std::size_t count, int m, bool equal) {
  const std::size_t rows = count * static_cast<std::size_t>(type.digits(m));
  History history = History::fresh(equal ? 1 : rows);
  if (equal) {
    std::vector<std::uint32_t> begin{0}, column(rows, 0);
    for (std::uint32_t r = 0; r < rows; ++r) begin.push_back(r + 1);
    history = history.combined({begin, column, std::vector<std::int64_t>(rows, 1)});
  }
  return {type, count, std::make_shared<NoiseRows>(std::move(history))};
}

/// Runs every operation, and returns the names of those whose operands were made independent.
std::set<std::string> run_all(const Space& space, IntegerType type, bool equal,
                              std::mt19937_64& rng) {
  const auto machine = std::make_shared<NoiseMachine>(space);
  const Arithmetic arithmetic(machine);
  const Operands in = operands_of(type, rng);
  const Integers x = given(type, in.x.size(), space.message_bits, equal),
                 y = equal ? x : given(type, in.x.size(), space.message_bits, false);
  std::set<std::string> out;
  const EveryOperation operations(in);
  for (const Operation& operation : operations.all()) {
    SCOPED_TRACE(operation.name);
    const int before = machine->made_apart();
    EXPECT_NO_THROW(operation.run(arithmetic, x, y)) << operation.name;
    if (machine->made_apart() > before) out.insert(operation.name);
  }
  return out;
}

std::string text(const std::set<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += name + "; ";
  return out;
}

// Builders count as if the digits of operands were independent. Where they are, the count holds,
// and costs nothing.
TEST(TfheNoise, OfIndependentDigitsIsAsBuildersCountIt) {
  JALI_SEEDED(rng);
  for (int m = 1; m <= 4; ++m) {
    for (const std::size_t wave : {std::size_t{1}, std::size_t{4096}}) {
      for (const IntegerType type : {IntegerType{8, false}, {13, true}, {32, false}}) {
        SCOPED_TRACE(std::to_string(m) + " bits a digit, " + std::to_string(type.bits) + " bits");
        // Where a divisor is 0, the quotient is clear: its digits have no errors that could tell
        // look-ups apart.
        auto found = run_all(space_of(m, wave), type, false, rng);
        found.erase("divide by clear ones");
        found.erase("divide and truncate by clear ones");
        EXPECT_EQ(text(found), "");
      }
    }
  }
}

TEST(TfheNoise, OfEqualDigitsStaysWithinTheBudget) {
  JALI_SEEDED(rng);
  for (int m = 1; m <= 4; ++m) {
    for (const std::size_t wave : {std::size_t{1}, std::size_t{4096}}) {
      for (const IntegerType type : {IntegerType{8, false}, {13, true}}) {
        SCOPED_TRACE(std::to_string(m) + " bits a digit, " + std::to_string(type.bits) + " bits");
        run_all(space_of(m, wave), type, true, rng);
      }
    }
  }
}

// Fifteen flags that are one and the same have the squared norm 225 and not 15.
TEST(TfheNoise, OfManyEqualTermsIsMoreThanThatOfDifferentOnes) {
  const Space space = space_of(2, 1);
  for (const bool equal : {false, true}) {
    const auto machine = std::make_shared<NoiseMachine>(space);
    const Arithmetic arithmetic(machine);
    const Integers flags = given({1, false}, 15, 2, equal);
    arithmetic.sum(flags, 15, {8, false});
    EXPECT_EQ(machine->made_apart(), equal ? 1 : 0);
  }
}

TEST(TfheNoise, TablesThatSetApartGiveTheMessageAndDiffer) {
  for (int m = 1; m <= 4; ++m) {
    const Space space = space_of(m, 1);
    const auto size = static_cast<std::size_t>(space.size());
    Apart apart;
    apart.each = static_cast<std::uint32_t>(std::min<std::size_t>(most_apart(space), 300));
    EXPECT_GE(apart.each, 255u);
    const auto tables = tables_of(apart, space);
    ASSERT_EQ(tables.size(), 2 * apart.each * size);
    std::set<std::uint64_t> ids;
    for (std::size_t k = 0; k < 2 * apart.each; ++k) {
      for (std::size_t v = 0; v < (std::size_t{1} << m); ++v) {
        EXPECT_EQ(tables[k * size + v], k < apart.each ? static_cast<int>(2 * v) : 0);
      }
      const std::vector<std::int64_t> one(
          tables.begin() + static_cast<std::ptrdiff_t>(k * size),
          tables.begin() + static_cast<std::ptrdiff_t>((k + 1) * size));
      ids.insert(tfhe::table_origin(one, space.bits(), 0).polynomial.id);
    }
    // Of tables of zeros, some pairs of two entries are minus each other; 0 is not among them.
    EXPECT_GE(ids.size(), apart.each + apart.each / 3);
    EXPECT_EQ(ids.count(0), 0u);
  }
}

}  // namespace
}  // namespace jali::integers::test
