#include <algorithm>
#include <bit>

#include "jali/base/error.h"
#include "jali/integers/arithmetic.h"
#include "jali/integers/operations/operation.h"

namespace jali::integers {

Integers Arithmetic::move(Move move, const Integers& x, Value amount) const {
  check_type(x.type());
  std::string key = "move";
  key += static_cast<char>('0' + static_cast<int>(move));
  if (const Integers* by = amount.encrypted()) {
    require<InvalidArgument>(!by->type().is_signed,
                             "amounts of shifts and rotations are unsigned: cast them first");
    return run_one(key, {{x, x.type()}, {*by, by->type()}}, 1,
                   [move](Builder& b, const Words& w, std::size_t) {
                     return moved_by(b, w[0], move, bits_of(b, w[1]));
                   });
  }
  const Clear& by = *amount.clear();
  const bool rotates = move == Move::rotate_left || move == Move::rotate_right;
  std::vector<Wide> amounts;
  for (const Wide value : by.values) {
    require<InvalidArgument>(value >= 0, [&] {
      return "the amount " + text(value) + " is negative: move by " + text(-value) +
             " in the other direction";
    });
    amounts.push_back(rotates ? value % x.type().bits : std::min(value, Wide{x.type().bits}));
  }
  if (by.scalar) {
    const int places = static_cast<int>(amounts[0]);
    return run_one(key + "by" + std::to_string(places), {{x, x.type()}}, 1,
                   [&](Builder& b, const Words& w, std::size_t) {
                     return moved(b, w[0], w[0].type, bits_from(w[0].type, move, places));
                   });
  }
  if (x.type().bits % space_.message_bits == 0) return moved_each(move, x, amounts);
  // One clear digit for each bit of the amount.
  std::vector<Clear> bits;
  std::vector<Input> inputs{{x, x.type()}};
  const int count = static_cast<int>(std::bit_width(static_cast<unsigned>(x.type().bits)));
  for (int i = 0; i < count; ++i) {
    std::vector<Wide> of;
    for (const Wide value : amounts) of.push_back(value >> i & 1);
    bits.push_back(Clear(std::move(of)));
  }
  for (const Clear& bit : bits) inputs.push_back({bit, boolean});
  return run(key + "each", inputs, 1, [move](Builder& b, const Words& w, std::size_t) {
    std::vector<Form> flags;
    for (std::size_t i = 1; i < w.size(); ++i) flags.push_back(w[i][0]);
    return Words{moved_by(b, w[0], move, flags)};
  })[0];
}

Integers Arithmetic::moved_each(Move move, const Integers& x, std::span<const Wide> amounts) const {
  // An amount is d digits and r bits. First the digits are gathered, with one more below (to the
  // left) or above (to the right), then one look-up of two neighbours moves the bits.
  const int m = space_.message_bits, q = 1 << m;
  const bool left = move == Move::left || move == Move::rotate_left;
  const bool rotates = move == Move::rotate_left || move == Move::rotate_right;
  const auto n = static_cast<std::size_t>(x.type().digits(m));
  const std::size_t lanes = x.count() == 1 ? amounts.size() : x.count();
  require<InvalidArgument>(amounts.size() == lanes || amounts.size() == 1, [&] {
    return "there are " + std::to_string(x.count()) + " integers and " +
           std::to_string(amounts.size()) + " amounts: give as many of each, or one";
  });
  std::shared_ptr<const Rows> from;
  const bool by_sign = move == Move::right && x.type().is_signed;
  if (by_sign) {  // what comes in from the left, after the integers
    const Integers sign = run_one(
        "sign digit", {{x, x.type()}}, 1, [&](Builder& b, const Words& w, std::size_t) -> Word {
          return {{m, false},
                  {b.look_up(w[0].digits.back(), [&](int v) { return v >= q / 2 ? q - 1 : 0; })},
                  {}};
        });
    from = machine_->concatenate(x.rows(), sign.rows());
  }
  std::vector<std::uint32_t> which;
  std::vector<Wide> bits;
  which.reserve(lanes * (n + 1));
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const auto amount = static_cast<std::int64_t>(amounts[amounts.size() == 1 ? 0 : lane]);
    const auto digits = static_cast<std::int64_t>(n), by = amount / m;
    const std::size_t of = x.count() == 1 ? 0 : lane;
    bits.push_back(amount % m);
    for (std::int64_t i = 0; i <= digits; ++i) {
      std::int64_t source = left ? i - 1 - by : i + by;
      if (rotates) source = ((source % digits) + digits) % digits;
      if (source >= 0 && source < digits) {
        which.push_back(static_cast<std::uint32_t>(of * n + static_cast<std::size_t>(source)));
      } else {
        which.push_back(by_sign ? static_cast<std::uint32_t>(x.count() * n + of) : Machine::none);
      }
    }
  }
  const IntegerType longer{x.type().bits + m, false};
  const std::size_t count = which.size() / (n + 1);
  const Integers gathered(longer, count, machine_->gather(by_sign ? *from : x.rows(), which),
                          x.noise());
  const IntegerType of_bits{
      std::max(1, static_cast<int>(std::bit_width(static_cast<unsigned>(m - 1)))), false};
  const Clear each{std::move(bits)};
  std::string key = left ? "bits left" : "bits right";
  append(key, x.type());
  return run_one(
      key, {{gathered, longer}, {each, of_bits}}, 1, [&](Builder& b, const Words& w, std::size_t) {
        Word out{x.type(), {}, {}};
        for (std::size_t i = 0; i < n; ++i) {
          if (m == 1) {  // an amount is digits alone
            out.digits.push_back(w[0][left ? i + 1 : i]);
            continue;
          }
          out.digits.push_back(
              b.look_up_keyed(w[0][i] + w[0][i + 1] * q, w[1][0], [&](int v, int r) {
                return left ? v << std::min(r, m) >> m & (q - 1) : v >> std::min(r, m) & (q - 1);
              }));
        }
        return out;
      });
}

}  // namespace jali::integers
