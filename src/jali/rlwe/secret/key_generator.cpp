// Key generation. Everything derived from the secret lives in memory that is wiped.
#include "jali/rlwe/secret/key_generator.h"

#include <algorithm>
#include <vector>

#include "jali/base/error.h"
#include "jali/rlwe/encryptor.h"
#include "jali/rlwe/key_demand.h"

namespace jali::rlwe {

namespace {

ring::Poly error_poly(const ring::Ring& ring, const random::SecretSeed& seed, std::uint64_t stream,
                      std::span<const PrimeIndex> primes) {
  return small_poly(ring, seed, stream, primes, 1, backend::Small::error);
}

// b = e - a s
ring::Poly rlwe_zero(const ring::Ring& ring, const ring::Poly& a, const ring::Poly& s,
                     const ring::Poly& e) {
  ring::Poly b = ring.make(a.primes());
  ring.ops().mul(b.view(), a.view(), s.view());
  ring.ops().sub(b.view(), e.view(), b.view());
  return b;
}

}  // namespace

KeyGenerator::KeyGenerator(ParamsPtr params, std::shared_ptr<const ring::Ring> ring,
                           const std::optional<random::Seed>& seed)
    : params_(std::move(params)),
      ring_(std::move(ring)),
      seeds_(seed, random::SeedSource::Order::streams) {}

SecretKey KeyGenerator::secret_key() {
  KeyId id;
  seeds_.fill_public(id.bytes);
  return SecretKey(
      params_,
      small_poly(*ring_, seeds_.next(), 0, params_->all_primes(), 1, backend::Small::ternary), id);
}

PublicKey KeyGenerator::public_key(const SecretKey& sk) {
  PublicKey pk{params_, sk.id(), seeds_.next().bytes(), {}};
  const ring::Poly s = sk.at(*ring_, params_->q_primes());
  const ring::Poly e = error_poly(*ring_, seeds_.next(), 0, params_->q_primes());
  pk.b = rlwe_zero(*ring_, expand_a(*ring_, *params_, pk), s, e);
  return pk;
}

SwitchKey KeyGenerator::switch_key(const ring::Poly& s_from, const SecretKey& sk, int level) {
  SwitchKey key{seeds_.next().bytes(), {}, level >= params_->top() ? -1 : level};
  const auto primes = params_->key_primes(key.level);
  const random::SecretSeed error_seed = seeds_.next();
  const ring::Poly s = sk.at(*ring_, primes);
  const auto p_mod_q = ring::product_residues(*ring_, primes, params_->p_primes());
  for (std::size_t d = 0; d < params_->key_digits(key.level); ++d) {
    const auto a = expand_uniform(*ring_, key.seed, static_cast<std::uint32_t>(d), primes);
    const auto e = error_poly(*ring_, error_seed, d, primes);
    ring::Poly b = rlwe_zero(*ring_, a, s, e);
    // P g_d is P modulo the digit's own primes and 0 modulo all others.
    const auto first = std::ranges::lower_bound(primes, params_->digit_begin(d));
    const auto last = std::min(std::ranges::lower_bound(primes, params_->digit_begin(d + 1)),
                               primes.end() - static_cast<std::ptrdiff_t>(params_->p_count()));
    const auto begin = static_cast<std::size_t>(first - primes.begin());
    const auto count = static_cast<std::size_t>(last - first);
    const auto own = std::span<const PrimeIndex>(primes).subspan(begin, count);
    ring::Poly from = ring_->make_secret(own);
    for (std::size_t i = 0; i < count; ++i) {
      ring_->memory().copy(from.row(i), s_from.row(own[i]), s_from.row_bytes());
    }
    ring_->ops().mul_scalar_add({b.row(begin), own, 1}, from.view(),
                                std::span(p_mod_q).subspan(begin, count));
    key.b.push_back(std::move(b));
  }
  return key;
}

SwitchKey KeyGenerator::relinearisation_key(const SecretKey& sk, int level) {
  ring::Poly s2 = ring_->make_secret(params_->all_primes());
  ring_->ops().mul(s2.view(), sk.poly().view(), sk.poly().view());
  return switch_key(s2, sk, level);
}

SwitchKey KeyGenerator::galois_key(std::uint64_t galois_element, const SecretKey& sk, int level) {
  require<InvalidArgument>(galois_element % 2 == 1 && galois_element < 2 * ring_->n(),
                           "a Galois element is odd and below 2N");
  ring::Poly s = ring_->make_secret(params_->all_primes());
  ring_->ops().automorphism_ntt(s.view(), sk.poly().view(), galois_element);
  return switch_key(s, sk, level);
}

EncapsulationKeys KeyGenerator::encapsulation_keys(const SecretKey& sk) {
  require<InvalidArgument>(params_->sparse_weight() > 0,
                           "these parameters have no levels for bootstrapping: create them with "
                           "bootstrap=True");
  const auto all = params_->all_primes();
  ring::Poly t = ring_->make_secret(all, ring::Form::coeff);
  ring_->ops().sample_sparse(t.view(), static_cast<std::size_t>(params_->sparse_weight()),
                             seeds_.next().bytes(), 0);
  ring_->to_ntt(t);
  const SecretKey sparse(params_, std::move(t), KeyId{});

  // b = -a s_to + e + F s_from over `primes`, where F is the product of the primes `factor`.
  const auto encrypt = [&](const SecretKey& to, const SecretKey& from,
                           std::span<const PrimeIndex> primes, std::span<const PrimeIndex> factor,
                           const random::Seed& seed) {
    const ring::Poly e = error_poly(*ring_, seeds_.next(), 0, primes);
    ring::Poly b =
        rlwe_zero(*ring_, expand_uniform(*ring_, seed, 0, primes), to.at(*ring_, primes), e);
    ring_->ops().mul_scalar_add(b.view(), from.at(*ring_, primes).view(),
                                ring::product_residues(*ring_, primes, factor));
    return b;
  };
  EncapsulationKeys keys;
  keys.to_sparse_seed = seeds_.next().bytes();
  keys.to_sparse = encrypt(sparse, sk, sparse_key_primes(*params_), params_->sparse_p_primes(),
                           keys.to_sparse_seed);
  keys.to_dense_seed = seeds_.next().bytes();
  keys.to_dense = encrypt(sk, sparse, all, params_->p_primes(), keys.to_dense_seed);
  return keys;
}

EvaluationKeys KeyGenerator::evaluation_keys(const SecretKey& sk, std::span<const int> rotations,
                                             bool conjugate, bool relinearise) {
  std::map<int, int> levels;
  for (const int steps : rotations) levels.emplace(steps, -1);
  return evaluation_keys(sk, levels, conjugate ? -1 : kNoKey, relinearise ? -1 : kNoKey);
}

EvaluationKeys KeyGenerator::evaluation_keys(const SecretKey& sk,
                                             const std::map<int, int>& rotations, int conjugate,
                                             int relinearise, const Progress& progress) {
  return keys_for(sk, demand_of(ring_->n(), rotations, conjugate, relinearise), progress);
}

void KeyGenerator::make(const SecretKey& sk, const KeyDemand& demand, const Each& each,
                        const Progress& progress) {
  const std::size_t total = demand.galois.size() + (demand.relinearise != kNoKey ? 1 : 0) +
                            (demand.encapsulation ? 1 : 0);
  std::size_t done = 0;
  const auto tell = [&] {
    ++done;
    if (progress) progress(done, total);
  };
  if (demand.relinearise != kNoKey) {
    each.relinearisation(relinearisation_key(sk, demand.relinearise));
    tell();
  }
  for (const auto& [element, level] : demand.galois) {
    each.galois(element, galois_key(element, sk, level));
    tell();
  }
  if (demand.encapsulation) {
    each.encapsulation(encapsulation_keys(sk));
    tell();
  }
}

EvaluationKeys KeyGenerator::keys_for(const SecretKey& sk, const KeyDemand& demand,
                                      const Progress& progress) {
  EvaluationKeys keys;
  keys.params = params_;
  keys.key_id = sk.id();
  make(sk, demand,
       {[&](SwitchKey key) { keys.relinearisation = std::move(key); },
        [&](std::uint64_t element, SwitchKey key) { keys.galois.emplace(element, std::move(key)); },
        [&](EncapsulationKeys made) { keys.encapsulation = std::move(made); }},
       progress);
  return keys;
}

}  // namespace jali::rlwe
