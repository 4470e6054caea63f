#include "jali/schemes/tfhe/gates.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "jali/base/error.h"

namespace jali::tfhe {

namespace {

/// w_a, w_b, and the constant in units of half a step.
struct Combined {
  std::int64_t a, b;
  int half_steps;
};

// In units of half a step a bit is 0 or 2. False results must be -1, 0 or 1 modulo 8, and true ones
// 3, 4 or 5.
constexpr std::array<Combined, 10> kGates{{
    {1, 1, -1},  // and: -1, 1, 3
    {-1, -1, 5},  // nand: 5, 3, 1
    {1, 1, 1},  // or: 1, 3, 5
    {-1, -1, 3},  // nor: 3, 1, -1
    {2, 2, 0},  // xor: 0, 4, 8
    {2, 2, 4},  // xnor: 4, 8, 12
    {-1, 1, 1},  // andny: 1, 3 (a 0, b 1), -1 (a 1, b 0)
    {1, -1, 1},  // andyn
    {-1, 1, 3},  // orny: 3, 5, 1 (a 1, b 0)
    {1, -1, 3}  // oryn
}};

/// The squared norm that counts against a margin of half a step. Weights of 2 come with a margin of
/// a whole step.
double norm2_of(const Combined& gate, const History& combined) {
  return combined.norm2() / static_cast<double>(gate.a * gate.a);
}

}  // namespace

Gates::Gates(std::shared_ptr<const Evaluator> evaluator) : evaluator_(std::move(evaluator)) {
  require<InvalidArgument>(evaluator_ != nullptr, "gates need an evaluator");
  const Params& params = *evaluator_->params();
  require<InvalidArgument>(params.value_modulus() == 2,
                           "gates need parameters of 1 message bit and no carry bits: use the "
                           "preset boolean, or look gates up in tables of two inputs");
  // -s in the boxes of phases from -2s to 2s, +s from 2s to 6s: the polynomial has the phases 0 to
  // 4s.
  const std::size_t n = params.N().value, bytes = backend::torus_bytes(params.torus());
  const std::uint64_t half = params.step(params.torus()) / 2;
  std::vector<std::uint8_t> words(n * bytes);
  for (std::size_t t = 0; t < n; ++t) {
    const std::uint64_t word = t < n / 2 ? 0 - half : half;
    for (std::size_t i = 0; i < bytes; ++i) {
      words[t * bytes + i] = static_cast<std::uint8_t>(word >> (8 * i));
    }
  }
  const auto& device = *evaluator_->engine().device();
  device::Buffer data = device.pool()->allocate(words.size());
  device.memory()->copy_in(data.data(), words.data(), words.size());
  sign_ = std::make_shared<const device::Buffer>(std::move(data));
}

namespace {

Linear each(std::size_t count, std::span<const std::pair<std::size_t, std::int64_t>> terms) {
  // terms: the size of each operand, whose elements follow those of the operand before, and its
  // weight.
  Linear matrix;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t first = 0;
    for (const auto& [size, weight] : terms) {
      matrix.add(static_cast<std::uint32_t>(first + (size == 1 ? 0 : i)), weight);
      first += size;
    }
    matrix.end_row();
  }
  return matrix;
}

/// The sign's table has -1/2 in its boxes, which lie half a box higher than those of other tables.
/// Half a step is added to the result. Entries of other tables are whole, so that their origins are
/// others. Of a constant, the gate is 1 from 2 half steps on to 5, of 8.
TableOrigin sign_origin(std::size_t, std::int64_t half_steps) {
  constexpr std::int64_t kHalves[] = {-1, -1};
  TableOrigin out = table_origin(kHalves, 1, half_steps);
  out.polynomial.half_steps += 1;
  const std::uint64_t turn = static_cast<std::uint64_t>(half_steps) % 8;
  out.entry = 2 <= turn && turn <= 5 ? 2 : 0;
  return out;
}

void require_bits(const Ciphertext& a) {
  require<RangeExceeded>(a.max_degree() <= 1, "a gate takes bits, and an operand could be larger");
}

}  // namespace

Ciphertext Gates::rotated(std::span<const Ciphertext* const> inputs, const Linear& matrix,
                          int half_steps) const {
  const Evaluator& evaluator = *evaluator_;
  const Params& params = *evaluator.params();
  const Ciphertext all = evaluator.concatenate(inputs);
  const std::uint64_t half = params.step() / 2;
  const std::vector<std::uint64_t> constants(
      matrix.rows(), half * static_cast<std::uint64_t>(std::int64_t{half_steps}));
  const auto sum = evaluator.combined(*all.data, matrix, constants);
  const auto signs = evaluator.bootstrapped(*sum, {sign_->data(), 1, false, {}, 0});
  Linear same;
  for (std::uint32_t i = 0; i < matrix.rows(); ++i) {
    same.add(i, 1);
    same.end_row();
  }
  const std::vector<std::uint64_t> shift(matrix.rows(), half);
  const std::vector<std::int64_t> added(matrix.rows(), half_steps);
  const History history = all.history.combined({matrix.begin, matrix.column, matrix.weight, added});
  return evaluator.made(evaluator.combined(*signs, same, shift), evaluator.key_id(),
                        std::vector<std::uint32_t>(matrix.rows(), 1),
                        history.looked_up(sign_origin));
}

Ciphertext Gates::apply(Gate gate, const Ciphertext& a, const Ciphertext& b) const {
  const Evaluator& evaluator = *evaluator_;
  require<InvalidArgument>(static_cast<std::size_t>(gate) < kGates.size(), "this is not a gate");
  const Combined& weights = kGates[static_cast<std::size_t>(gate)];
  evaluator.check(a);
  evaluator.check(b);
  require_bits(a);
  require_bits(b);
  require<InvalidArgument>(a.size() == b.size() || a.size() == 1 || b.size() == 1,
                           "the operands of a gate have one length, or one of them one element");
  const std::size_t count = a.size() == 1 ? b.size() : a.size();
  const std::pair<std::size_t, std::int64_t> terms[] = {{a.size(), weights.a},
                                                        {b.size(), weights.b}};
  const Linear matrix = each(count, terms);
  const auto norm2 = [&](const Ciphertext& x, const Ciphertext& y) {
    const History* const histories[] = {&x.history, &y.history};
    return norm2_of(
        weights, History::joined(histories).combined({matrix.begin, matrix.column, matrix.weight}));
  };
  const double most = evaluator.params()->max_norm2();
  if (norm2(a, b) <= most) {
    const Ciphertext* const inputs[] = {&a, &b};
    return rotated(inputs, matrix, weights.half_steps);
  }
  const Ciphertext fresh = evaluator.refresh(b);
  require<RangeExceeded>(norm2(a, fresh) <= most,
                         "the noise of the operands is too large for a gate: these parameters "
                         "allow no combination of two fresh bits, or refresh the first operand");
  const Ciphertext* const inputs[] = {&a, &fresh};
  return rotated(inputs, matrix, weights.half_steps);
}

Ciphertext Gates::not_gate(const Ciphertext& a) const {
  require_bits(a);
  Linear matrix;
  for (std::uint32_t i = 0; i < a.size(); ++i) {
    matrix.add(i, -1);
    matrix.end_row(1);
  }
  return evaluator_->linear(a, matrix);
}

// With v = (not a) and c: if v is 1, a is 0, so that 2 v + a + b is 2 or 3 if a ? b : c, else 0
// or 1. In half steps and with the constant -1 these are 3 and 5, and -1 and 1.
Ciphertext Gates::mux(const Ciphertext& a, const Ciphertext& b, const Ciphertext& c) const {
  const Evaluator& evaluator = *evaluator_;
  const Ciphertext v = apply(Gate::andny_gate, a, c);
  evaluator.check(b);
  require_bits(b);
  const std::size_t count = std::max({v.size(), a.size(), b.size()});
  for (const std::size_t size : {a.size(), b.size(), v.size()}) {
    require<InvalidArgument>(size == count || size == 1,
                             "the operands of a gate have one length, or one of them one element");
  }
  const std::pair<std::size_t, std::int64_t> terms[] = {
      {v.size(), 2}, {a.size(), 1}, {b.size(), 1}};
  const Linear matrix = each(count, terms);
  const History* const histories[] = {&v.history, &a.history, &b.history};
  const double norm2 =
      History::joined(histories).combined({matrix.begin, matrix.column, matrix.weight}).norm2();
  if (norm2 <= evaluator.params()->max_norm2()) {
    const Ciphertext* const inputs[] = {&v, &a, &b};
    return rotated(inputs, matrix, -1);
  }
  return apply(Gate::or_gate, v, apply(Gate::and_gate, a, b));
}

}  // namespace jali::tfhe
