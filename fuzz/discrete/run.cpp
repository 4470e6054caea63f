#include "run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace jali::fuzz {

using discrete::Ciphertext;
using discrete::Overflow;

namespace {

random::Seed seed_of(std::uint8_t k) {
  random::Seed seed{};
  seed[0] = k;
  return seed;
}

discrete::Literal literal_of(std::size_t k) {
  using discrete::Multiplication;
  using discrete::Packing;
  discrete::Literal l;
  l.name = "insecure_fuzz";
  l.security = 0;
  l.log_n = 10;
  l.depth = 2;
  switch (k) {
    case 0: l.word = Word::w32, l.modulus = 65537; break;
    case 1: l.word = Word::w52, l.integers = 59; break;
    case 2: l.word = Word::w64, l.integers = 32; break;
    case 3: l.word = Word::w64, l.modulus = 65537, l.multiplication = Multiplication::bfv; break;
    case 4: l.word = Word::w52, l.modulus = discrete::kTwoTo64; break;
    default: l.word = Word::w32, l.modulus = 1000; break;
  }
  if (k >= 4) l.packing = Packing::coefficients, l.depth = 1;
  return l;
}

bool is_unit(const discrete::PlainModulus& t, std::uint64_t factor) {
  return factor == t.reduce(factor) && t.inverse(factor) != 0;
}

}  // namespace

DiscreteWorld::DiscreteWorld(const discrete::Literal& literal)
    : params(discrete::Params::create(literal)),
      ring(discrete::make_ring(*params)),
      secret([&] {
        rlwe::KeyGenerator generator(params, ring, seed_of(1));
        return std::make_shared<const rlwe::SecretKey>(generator.secret_key());
      }()),
      public_key([&] {
        rlwe::KeyGenerator generator(params, ring, seed_of(2));
        return std::make_shared<const rlwe::PublicKey>(generator.public_key(*secret));
      }()),
      evaluator([&] {
        rlwe::KeyGenerator generator(params, ring, seed_of(3));
        return std::make_shared<const discrete::Evaluator>(
            discrete::Engine::make(params, ring),
            std::make_shared<const rlwe::EvaluationKeys>(
                generator.evaluation_keys(*secret, std::vector<int>{1, 2, -1}, true)));
      }()),
      decryptor(secret, ring, params) {}

const DiscreteWorld& discrete_world(std::size_t k) {
  static std::array<std::unique_ptr<const DiscreteWorld>, kDiscreteWorlds> worlds;
  if (!worlds[k]) worlds[k] = std::make_unique<const DiscreteWorld>(literal_of(k));
  return *worlds[k];
}

DiscreteRun::DiscreteRun(const DiscreteWorld& of, Stream& stream) : world(of), in(stream) {
  for (std::size_t k = 1 + in.below(3); k > 0; --k) {
    if (!in.once_in(3)) {
      pool.start(honest());
    } else if (auto x = hostile()) {
      pool.start(std::move(*x));
    }
  }
  if (pool.empty()) pool.start(honest());
}

const DiscreteKnown& DiscreteRun::beside(const DiscreteKnown& x) {
  const DiscreteKnown* y = &any();
  for (int k = 0; k < 3 && y->x.batch() != x.x.batch(); ++k) y = &any();
  return *y;
}

std::int64_t DiscreteRun::integer() {
  const std::size_t k = in.byte();
  if (k < 160) return static_cast<std::int64_t>(k % 16) - 7;
  const std::int64_t low = modulus().low(), high = modulus().high();
  const std::int64_t edges[] = {low, high, low / 2, high / 2, INT64_MIN, INT64_MAX, 1 << 16};
  return k < 224 ? edges[k % std::size(edges)] : in.read<std::int64_t>();
}

Numbers DiscreteRun::numbers(std::int64_t low, std::int64_t high, std::size_t count) {
  Numbers out(count);
  const auto width = static_cast<Wide>(high) - low;
  std::uint64_t x = in.read<std::uint32_t>();
  for (std::int64_t& v : out) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t r = x >> 3;
    v = x >> 62 == 0 ? (x & 1 ? low : high) : static_cast<std::int64_t>(low + r % (width + 1));
  }
  return out;
}

std::pair<Numbers, discrete::Plaintext> DiscreteRun::clear(const Ciphertext& x, Overflow overflow) {
  const std::int64_t a = integer(), b = in.once_in(2) ? a : integer();
  const std::size_t batch = in.once_in(6) ? in.below(4) : in.once_in(2) ? 1 : x.batch();
  const std::size_t length = in.once_in(6) ? in.below(255) * 8 : n();
  Numbers given = numbers(std::min(a, b), std::max(a, b), batch * length);
  auto plaintext = ev().encoder().encode_clear(given, batch, overflow);
  // The vectors of a batch of one meet every vector.
  Numbers out(x.batch() * n());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t vector = batch == 1 ? 0 : i / n(), at = i % n();
    if (at < length && vector < batch) out[i] = given[vector * length + at];
  }
  return {std::move(out), std::move(plaintext)};
}

DiscreteKnown DiscreteRun::honest() {
  const std::size_t batch = in.once_in(3) ? 2 : 1;
  const bool wraps = in.once_in(4);
  std::int64_t low = modulus().low(), high = modulus().high();
  if (!wraps && !in.once_in(4)) {
    const std::int64_t a = integer(), b = integer();
    const auto width = static_cast<Wide>(std::max(a, b)) - std::min(a, b);
    if (width <= static_cast<Wide>(modulus().largest()))
      low = std::min(a, b), high = std::max(a, b);
  }
  const auto range = wraps ? ev().noise().residues() : ev().noise().range(low, high);
  Numbers given = numbers(low, high, batch * n());
  const auto plaintext = ev().encoder().encode(given, batch, range);
  const int at = in.once_in(3) ? static_cast<int>(in.below(params().depth() + 1)) : -1;
  Ciphertext x;
  if (in.once_in(2)) {
    discrete::SecretEncryptor encryptor(world.secret, world.ring, world.params, in.seed());
    x = encryptor.encrypt(plaintext, at);
  } else {
    discrete::PublicEncryptor encryptor(world.public_key, world.ring, world.params, in.seed());
    x = encryptor.encrypt(plaintext, at);
  }
  for (std::int64_t& v : given) v = represented(v, x);
  examine(x);
  compare(x, given);
  return {std::move(x), std::move(given)};
}

std::optional<DiscreteKnown> DiscreteRun::hostile() {
  wire::DiscreteArray array;
  Ciphertext& x = array.block;
  x.params = world.params;
  x.level = static_cast<int>(in.below(params().depth() + 2));
  if (!in.once_in(4)) x.key_id = world.secret->id();
  x.factor = in.once_in(2) && x.level <= params().depth()
                 ? params().factor(x.level)
                 : modulus().reduce(static_cast<std::uint64_t>(integer()));
  x.estimate.slot = in.once_in(2) ? in.number() : 1e4;
  x.estimate.coefficient = in.once_in(2) ? in.number() : 100;
  x.estimate.range = in.once_in(4)   ? ev().noise().residues()
                     : in.once_in(2) ? discrete::Range{integer(), integer(), in.once_in(8)}
                                     : discrete::Range{-7, 8, false};
  const std::size_t batch = 1 + in.below(3);
  try {
    const auto& primes = params().level(x.level).primes;
    for (int part = 0; part < 2; ++part) {
      x.parts.push_back(in.once_in(4)
                            ? world.ring->zero(primes, batch)
                            : rlwe::expand_uniform(*world.ring, in.seed(), 0, primes, batch));
    }
    if (in.once_in(4)) {
      x.seed = in.seed();
      x.parts[1] = rlwe::expand_uniform(*world.ring, *x.seed, 0, primes, batch);
    }
    if (in.once_in(2)) {
      constexpr std::uint32_t kCounts[] = {1, 2, 3, 30, 512, 513, 0, 1u << 31, 0xffffffff};
      constexpr std::int32_t kStrides[] = {1, 2, 32, 512, 0, -1, -32, 1 << 30, -(1 << 30)};
      ckks::View& view = array.view.emplace();
      for (std::size_t k = in.below(4); k > 0; --k) {
        view.axes.push_back(
            {kCounts[in.below(std::size(kCounts))], kStrides[in.below(std::size(kStrides))]});
      }
      view.first = in.once_in(3) ? kCounts[in.below(std::size(kCounts))] : 0;
      view.period = in.once_in(4) ? kCounts[in.below(std::size(kCounts))] : 0;
      array.padded = in.once_in(2);
    }
    wire::Bytes bytes = wire::to_bytes(array);
    for (std::size_t k = in.once_in(2) ? 1 + in.below(3) : 0; k > 0; --k) {
      bytes[wire::kHeaderBytes + in.below(96)] = in.byte();
    }
    wire::seal_frame(bytes);
    array = wire::discrete_array_from_bytes(bytes, world.params, *world.ring);
    if (wire::to_bytes(array) != bytes) stop("an array has other bytes after a round trip");
    return DiscreteKnown{std::move(array.block)};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) stop(error.what());
    return std::nullopt;
  }
}

void DiscreteRun::examine(const Ciphertext& x) const {
  if (x.params != world.params || x.parts.size() != 2) stop("the result has lost its parts");
  if (x.level < 0 || x.level > params().depth()) stop("the level does not exist");
  if (!is_unit(modulus(), x.factor)) stop("the factor is no unit modulo T");
  const auto& e = x.estimate;
  const auto range = ev().noise().received(e.range.low, e.range.high, e.range.wraps);
  if (!range) stop("the range has more numbers than T");
  if (!ev().noise().received(e.slot, e.coefficient, *range)) stop("the noise is no bound");
  if (std::isnan(ev().noise_budget(x))) stop("the budget is not a number");
  const wire::Bytes bytes = wire::to_bytes(x);
  const Ciphertext back = wire::discrete_ciphertext_from_bytes(bytes, world.params, *world.ring);
  if (wire::to_bytes(back) != bytes) stop("the bytes are others after a round trip");
}

std::int64_t DiscreteRun::represented(Wide number, const Ciphertext& x) const {
  const discrete::Range& range = x.estimate.range;
  if (!range.wraps) {
    if (number < range.low || number > range.high) stop("a number is outside of its range");
    return static_cast<std::int64_t>(number);
  }
  const auto t = static_cast<Wide>(modulus().largest()) + 1;
  const Wide r = number % t;
  return modulus().centred(static_cast<std::uint64_t>(r < 0 ? r + t : r));
}

void DiscreteRun::compare(const Ciphertext& x, const Numbers& expected) const {
  if (!ev().noise().fits(x.estimate, x.level)) stop("a result has no budget");
  const auto noise = world.decryptor.measure(x);
  if (!(noise.slot <= x.estimate.slot)) stop("the noise of a slot is above its bound");
  if (!(noise.coefficient <= x.estimate.largest())) stop("the noise is above its bound");
  const auto numbers = world.decryptor.decrypt(x);
  if (numbers.size() != expected.size()) stop("there is another number of numbers");
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != expected[i]) {
      stop("number " + std::to_string(i) + " is " + std::to_string(numbers[i]) + " instead of " +
           std::to_string(expected[i]));
    }
  }
}

}  // namespace jali::fuzz
