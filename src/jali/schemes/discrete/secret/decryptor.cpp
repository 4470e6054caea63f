#include "jali/schemes/discrete/secret/decryptor.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jali/backend/embedding.h"
#include "jali/backend/ring_ops.h"
#include "jali/backend/rlwe_ops.h"
#include "jali/base/declassify.h"
#include "jali/base/error.h"

namespace jali::discrete {

namespace {

__extension__ using u128 = unsigned __int128;

std::vector<std::uint64_t> words_of_q(const ring::Ring& ring, std::span<const PrimeIndex> primes) {
  std::vector<std::uint64_t> q;
  for (const PrimeIndex i : primes) q.push_back(ring.prime(i));
  return backend::product_words(q);
}

/// The integers in [0, Q) of a polynomial in coefficient form, laid out (word, batch, coefficient).
SecretVector<std::uint64_t> integers_of(const ring::Ring& ring, const ring::Poly& x,
                                        std::size_t words) {
  SecretVector<std::uint64_t> out(words * x.batch() * x.n());
  ring.ops().icrt(out, words, x.view(), backend::IcrtMethod::automatic);
  return out;
}

/// floor(x) for 0 <= x < 2^1000, cut to its lowest words if it has more.
std::vector<std::uint64_t> floor_words(double x, std::size_t words) {
  std::vector<std::uint64_t> out(words, 0);
  int exponent = 0;
  auto mantissa = static_cast<std::uint64_t>(std::ldexp(std::frexp(x, &exponent), 53));
  exponent -= 53;
  if (exponent < 0) {
    mantissa = exponent > -64 ? mantissa >> -exponent : 0;
    exponent = 0;
  }
  const auto at = static_cast<std::size_t>(exponent / 64);
  const int shift = exponent % 64;
  if (at < words) out[at] = mantissa << shift;
  if (shift != 0 && at + 1 < words) out[at + 1] = mantissa >> (64 - shift);
  return out;
}

/// Whether a > b; words, the least significant first. No branch depends on them.
template <class A, class B>
bool above(std::size_t words, A a, B b) {
  std::uint64_t borrow = 0;
  for (std::size_t w = 0; w < words; ++w) {
    const u128 t = static_cast<u128>(b(w)) - a(w) - borrow;
    borrow = static_cast<std::uint64_t>(t >> 64) & 1;
  }
  return borrow != 0;
}

/// Q - w for one coefficient.
class Complement {
 public:
  Complement(std::span<const std::uint64_t> q) : q_(q), out_(q.size()) {}
  template <class W>
  void set(W w) {
    std::uint64_t borrow = 0;
    for (std::size_t i = 0; i < q_.size(); ++i) {
      const u128 t = static_cast<u128>(q_[i]) - w(i) - borrow;
      out_[i] = static_cast<std::uint64_t>(t);
      borrow = static_cast<std::uint64_t>(t >> 64) & 1;
    }
  }
  std::uint64_t operator()(std::size_t i) const { return out_[i]; }

 private:
  std::span<const std::uint64_t> q_;
  SecretVector<std::uint64_t> out_;
};

/// Whether the centred residues of all integers are at most `bound`.
bool all_small(std::span<const std::uint64_t> integers, std::span<const std::uint64_t> q,
               double bound) {
  const std::size_t words = q.size(), count = integers.size() / words;
  const std::vector<std::uint64_t> most = floor_words(bound, words);
  const auto limit = [&](std::size_t i) { return most[i]; };
  Complement complement(q);
  int small = 1;
  for (std::size_t k = 0; k < count; ++k) {
    const auto w = [&](std::size_t i) { return integers[i * count + k]; };
    complement.set(w);
    const bool far_up = above(words, w, limit), far_down = above(words, complement, limit);
    small &= static_cast<int>(!far_up) | static_cast<int>(!far_down);
  }
  declassify(small);  // one bit is told: whether the noise is what the ciphertext says
  return small != 0;
}

}  // namespace

Decryptor::Decryptor(std::shared_ptr<const rlwe::SecretKey> sk,
                     std::shared_ptr<const ring::Ring> ring, ParamsPtr params)
    : bodies_(std::move(sk), ring),
      ring_(std::move(ring)),
      encoder_(params, ring_),
      noise_(*params),
      params_(std::move(params)) {
  require<ParamsMismatch>(bodies_.key().params()->hash() == params_->hash(),
                          "the secret key belongs to other parameters");
}

void Decryptor::check_origin(const Ciphertext& ciphertext) const {
  require<InvalidArgument>(ciphertext.params != nullptr && !ciphertext.parts.empty(),
                           "an empty ciphertext holds nothing to decrypt");
  require<ParamsMismatch>(ciphertext.params->hash() == params_->hash(),
                          "the ciphertext and the key belong to different parameters");
  require<InvalidArgument>(params_->modulus().inverse(ciphertext.factor) != 0,
                           "the factor of a ciphertext is a unit modulo T: it was altered");
}

ring::Poly Decryptor::scaled_phase(const rlwe::Plaintext& phase) const {
  std::vector<std::uint64_t> t;
  for (const PrimeIndex i : phase.poly.primes()) {
    const arith::Modulus q(ring_->prime(i));
    t.push_back(q.add(q.reduce(params_->modulus().largest()), 1));
  }
  ring::Poly out = ring_->make_secret(phase.poly.primes(), ring::Form::ntt, phase.poly.batch());
  ring_->ops().mul_scalar(out.view(), phase.poly.view(), t);
  ring_->to_coeff(out);
  return out;
}

// w = f m modulo T.
SecretVector<std::uint64_t> Decryptor::residues_of_w(const Ciphertext& ciphertext,
                                                     std::span<const std::uint64_t> w,
                                                     std::span<const std::uint64_t> q) const {
  const PlainModulus& t = params_->modulus();
  const std::uint64_t factor = t.inverse(ciphertext.factor);
  const std::uint64_t q_mod_t = params_->q_mod_t(ciphertext.level);
  const std::size_t words = q.size(), count = w.size() / words;
  SecretVector<std::uint64_t> out(count);
  Complement complement(q);
  for (std::size_t k = 0; k < count; ++k) {
    const auto word = [&](std::size_t i) { return w[i * count + k]; };
    complement.set(word);
    const auto negative = static_cast<std::uint64_t>(above(words, word, complement));
    std::uint64_t r = 0;
    for (std::size_t i = words; i-- > 0;) r = t.shift_in(r, word(i));
    out[k] = t.mul(t.sub(r, q_mod_t & (0 - negative)), factor);
  }
  return out;
}

// scale_down gives -w / Q modulo T, and m = w / f.
SecretVector<std::uint64_t> Decryptor::residues_of_slots(const Ciphertext& ciphertext,
                                                         const ring::Poly& phase) const {
  const PlainModulus& t = params_->modulus();
  ring::Poly y = ring_->make_secret(params_->modulus_primes(), ring::Form::ntt, phase.batch());
  ring_->engine().rlwe().scale_down(y.view(), phase.view(), nullptr);
  const std::uint64_t s =
      t.neg(t.mul(params_->q_mod_t(ciphertext.level), t.inverse(ciphertext.factor)));
  std::vector<std::uint64_t> residues;
  for (const PrimeIndex i : y.primes()) residues.push_back(s % ring_->prime(i));
  ring_->ops().mul_scalar(y.view(), y.view(), residues);
  return encoder_.residues(y);
}

SecretVector<std::int64_t> Decryptor::decrypt(const Ciphertext& ciphertext, Check check) const {
  check_origin(ciphertext);
  const Estimate& known = ciphertext.estimate;
  if (check == Check::yes) noise_.require_budget(known, ciphertext.level);
  const rlwe::Plaintext phase = bodies_.decrypt(ciphertext);
  const bool slots = params_->packing() == Packing::slots;
  SecretVector<std::uint64_t> residues;
  bool small = true;
  if (check == Check::yes || !slots) {
    const ring::Poly w = scaled_phase(phase);
    const auto q = words_of_q(*ring_, w.primes());
    const SecretVector<std::uint64_t> integers = integers_of(*ring_, w, q.size());
    // Bounds are sums and products of doubles.
    const double most =
        params_->modulus().as_double() * std::max(known.largest(), 0.0) * (1 + 0x1p-20) + 1;
    if (check == Check::yes) small = all_small(integers, q, most);
    if (!slots) residues = residues_of_w(ciphertext, integers, q);
  }
  if (slots) residues = residues_of_slots(ciphertext, phase.poly);
  bool within = true;
  SecretVector<std::int64_t> out = encoder_.read(residues, known.range, within);
  if (check == Check::yes) {
    if (!small || !within) wipe(out.data(), out.size() * sizeof(out[0]));
    require<WrongDecryption>(small && within, [&] {
      return "this is not what the ciphertext says it holds, numbers from " +
             std::to_string(known.range.low) + " to " + std::to_string(known.range.high) +
             " with a noise that its level holds: it was decrypted with another key, altered on "
             "its "
             "way, or encrypted from numbers outside the range that was declared. check=False "
             "gives "
             "the numbers all the same. Do not tell an untrusted peer of this error";
    });
  }
  return out;
}

Decryptor::Noise Decryptor::measure(const Ciphertext& ciphertext) const {
  check_origin(ciphertext);
  const ring::Poly w = scaled_phase(bodies_.decrypt(ciphertext));
  auto eps = ring::to_doubles(*ring_, w, params_->modulus().as_double());
  const std::size_t n = params_->n();
  Noise out;
  for (const double e : eps) out.coefficient = std::max(out.coefficient, std::fabs(e));
  const backend::Embedding embedding(n / 2);
  std::vector<std::complex<double>> slots(w.batch() * n / 2);
  backend::unembed(embedding, eps, w.batch(), n, params_->log_n() - 1, slots);
  for (const auto z : slots) out.slot = std::max(out.slot, std::abs(z));
  wipe(eps.data(), eps.size() * sizeof(eps[0]));  // noise and ciphertext give the key
  wipe(slots.data(), slots.size() * sizeof(slots[0]));
  return out;
}

}  // namespace jali::discrete
