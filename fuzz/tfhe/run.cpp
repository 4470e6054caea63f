#include "run.h"

#include <array>
#include <cmath>

#include "../../tests/tfhe_literals.h"

namespace jali::fuzz {

namespace {

constexpr std::size_t kMostElements = 8;

random::Seed seed_of(std::uint8_t k) {
  random::Seed seed{};
  seed[0] = k;
  return seed;
}

tfhe::Literal literal_of(std::size_t k) {
  using tfhe::Order;
  using tfhe::Rotation;
  using tfhe::Torus;
  const test::TfheShape shapes[kWorlds] = {
      {Rotation::classic, 1, Order::switch_first, Torus::t64, 6, 1, 256, 1, 0},
      {Rotation::classic, 1, Order::switch_first, Torus::t64, 6, 1, 256, 2, 2},
      {Rotation::multi_bit, 3, Order::bootstrap_first, Torus::t64, 6, 1, 256, 2, 2},
      {Rotation::block_binary, 2, Order::switch_first, Torus::t32, 6, 2, 256, 2, 1},
  };
  return test::insecure_literal(shapes[k]);
}

}  // namespace

TfheWorld::TfheWorld(const tfhe::Literal& literal)
    : params(tfhe::Params::create(literal)),
      client(params, 1, seed_of(9)),
      evaluator(std::make_shared<const tfhe::Evaluator>(
          std::shared_ptr<const backend::TfheOps>(backend::make_cpu_tfhe(params->config())),
          client.evaluation_keys())) {
  if (literal.carry_bits == 0) {
    gates = std::make_unique<const tfhe::Gates>(evaluator);
  } else if (literal.carry_bits >= literal.message_bits) {
    arithmetic =
        std::make_unique<const integers::Arithmetic>(std::make_shared<const integers::TfheMachine>(
            evaluator, integers::TfheMachineOptions{.wave = 1}));
  }
}

const TfheWorld& tfhe_world(std::size_t k) {
  static std::array<std::unique_ptr<const TfheWorld>, kWorlds> worlds;
  if (!worlds[k]) worlds[k] = std::make_unique<const TfheWorld>(literal_of(k));
  return *worlds[k];
}

TfheRun::TfheRun(const TfheWorld& of, Stream& stream) : world(of), in(stream) {
  for (std::size_t k = 1 + in.below(3); k > 0; --k) {
    if (!in.once_in(3)) {
      pool.start(honest());
    } else if (auto x = hostile()) {
      pool.start(std::move(*x));
    }
  }
  if (pool.empty()) pool.start(honest());
}

std::uint64_t TfheRun::number() {
  const std::size_t k = in.byte();
  return k < 200 ? k % (params().value_modulus() + 1) : static_cast<std::uint64_t>(in.integer());
}

std::size_t TfheRun::index(std::size_t size) {
  return in.once_in(8) ? static_cast<std::uint32_t>(in.integer())
                       : in.below(std::max<std::size_t>(size, 1));
}

tfhe::LookUpTable TfheRun::table() {
  const std::uint64_t p = params().value_modulus();
  Values values(in.once_in(4) ? in.below(2 * p) : p);
  for (std::uint64_t& v : values) v = in.once_in(32) ? number() : in.byte() % p;
  return {world.params, std::span<const std::uint64_t>(values)};
}

Known TfheRun::honest() {
  const bool whole = in.once_in(3);  // with carries
  const std::uint64_t largest = (whole ? params().value_modulus() : params().message_modulus()) - 1;
  Values values(in.once_in(3) ? 1 : 1 + in.below(5));
  for (std::uint64_t& v : values) v = in.byte() % (largest + 1);
  tfhe::Ciphertext x = world.client.encrypt(values, largest);
  return {std::move(x), std::move(values)};
}

std::optional<Known> TfheRun::hostile() {
  const std::size_t count = in.below(kMostElements);
  const auto make = [&](std::size_t rows) {
    auto block = std::make_shared<lwe::LweBlock>(lwe::make_lwe(
        *device::Pool::create(), params().ciphertext_torus(), params().dimension(), rows));
    auto* at = static_cast<std::uint8_t*>(block->data.data());
    const std::uint8_t fill = in.byte();
    for (std::size_t i = 0; i < block->bytes(); ++i) at[i] = static_cast<std::uint8_t>(fill * i);
    return block;
  };
  tfhe::Ciphertext x;
  x.params = world.params;
  x.key_id = world.client.key_id();
  if (in.once_in(4)) x.key_id = {};
  x.data = make(count);
  x.degree.resize(count);
  for (std::uint32_t& d : x.degree) d = static_cast<std::uint32_t>(number());
  const double norm2 = in.once_in(2) ? in.number() : static_cast<double>(in.below(50));
  x.history = norm2 == 0 ? tfhe::History::clear(std::vector<std::int64_t>(count))
                         : tfhe::History::fresh(count, norm2);
  if (in.once_in(4)) {
    x.layout = tfhe::Layout{{static_cast<std::uint32_t>(in.below(9))},
                            static_cast<std::uint8_t>(in.byte() % 70),
                            in.once_in(2)};
  }
  try {
    wire::Bytes bytes = wire::to_bytes(x);
    for (std::size_t k = in.once_in(2) ? 1 + in.below(3) : 0; k > 0; --k) {
      bytes[wire::kHeaderBytes + in.below(40) % (bytes.size() - wire::kFrameBytes)] = in.byte();
    }
    wire::seal_frame(bytes);
    return Known{wire::tfhe_ciphertext_from_bytes(bytes, world.params), std::nullopt};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) stop(error.what());
    return std::nullopt;
  }
}

void TfheRun::keep(tfhe::Ciphertext x, std::optional<Values> expected, std::uint64_t modulus) {
  if (!x.data || x.data->count != x.size() || x.history.rows() != x.size()) {
    stop("the result has lost its parts");
  }
  if (x.max_degree() >= params().value_modulus()) stop("a value has no room");
  if (!(x.history.norm2() <= params().max_norm2())) stop("the noise is above what is allowed");
  const tfhe::Ciphertext there = ev().host_copy(x);
  const wire::Bytes bytes = wire::to_bytes(there);
  if (wire::to_bytes(wire::tfhe_ciphertext_from_bytes(bytes, world.params)) != bytes) {
    stop("the bytes are others after a round trip");
  }
  std::optional<Values> values;
  if (expected) {
    values = decrypted(there);
    if (values->size() != expected->size()) stop("the result has another size");
    for (std::size_t i = 0; i < values->size(); ++i) {
      const std::uint64_t have = (*values)[i], want = (*expected)[i];
      if (modulus == 0 ? have != want : have % modulus != want % modulus) {
        stop("element " + std::to_string(i) + " is " + std::to_string(have) + " instead of " +
             std::to_string(want));
      }
    }
  }
  if (x.size() <= 4 * kMostElements) pool.add({std::move(x), std::move(values)});
}

Values TfheRun::decrypted(const tfhe::Ciphertext& x) const {
  try {
    return world.client.decrypt(ev().host_copy(x));
  } catch (const WrongDecryption& error) {
    stop(error.what());
  }
}

}  // namespace jali::fuzz
