#include "bench/engine/operands.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "jali/arith/primes.h"
#include "jali/base/error.h"

namespace jali::bench {

using backend::View;

std::vector<std::uint64_t> largest_primes(int bits, std::size_t n, std::size_t count) {
  const std::uint64_t top = std::uint64_t{1} << bits;
  arith::PrimesNear near(top, 2 * n, 1, top);
  std::vector<std::uint64_t> primes;
  while (primes.size() < count) {
    const auto q = near.next();
    require<InvalidArgument>(q.has_value(),
                             "there are not as many primes of this size for this ring degree");
    primes.push_back(*q);
  }
  return primes;
}

Operands::Operands(std::shared_ptr<const backend::Engine> made, const Shape& of)
    : shape(of), engine(std::move(made)), pool_(device::Pool::create(false, engine->memory())) {
  for (std::size_t i = 0; i < engine->config().primes.size(); ++i) {
    all.push_back(static_cast<PrimeIndex>(i));
  }
  q = std::span<const PrimeIndex>(all).first(static_cast<std::size_t>(shape.limbs));
  for (int left = shape.limbs; left > 0; left -= shape.alpha) {
    ids.push_back(static_cast<std::uint32_t>(ids.size()));
    digits.push_back(static_cast<std::uint32_t>(std::min(left, shape.alpha)));
  }
  for (const PrimeIndex i : q) scalars.push_back(engine->config().primes[i] / 3);
}

void Operands::start(const random::Seed& from) {
  blocks_.clear();
  results_.clear();
  seed = from;
  index_ = 0;
}

void Operands::release() {
  blocks_.clear();
  results_.clear();
  pool_->trim();
}

void Operands::finish() const {
  char byte = 0;
  engine->memory()->copy_out(&byte, blocks_.front().data(), 1);
}

std::size_t Operands::bytes(std::span<const PrimeIndex> primes) const {
  return primes.size() * shape.batch * engine->config().n * word_bytes(engine->config().word);
}

View Operands::empty(std::span<const PrimeIndex> primes) {
  return {blocks_.emplace_back(pool_->allocate(bytes(primes))).data(), primes, shape.batch};
}

View Operands::operand(std::span<const PrimeIndex> primes) {
  const View out = empty(primes);
  engine->ring().sample_uniform(out, seed, index_);
  index_ += static_cast<std::uint32_t>(shape.batch);
  return out;
}

View Operands::result(std::span<const PrimeIndex> primes) {
  const View out = empty(primes);
  const std::vector<std::byte> poison(bytes(primes), std::byte{0xff});
  engine->memory()->copy_in(out.data, poison.data(), poison.size());
  results_.emplace_back(out.data, poison.size());
  return out;
}

View Operands::changed(std::span<const PrimeIndex> primes) {
  const View out = operand(primes);
  results_.emplace_back(out.data, bytes(primes));
  return out;
}

View Operands::lifted(bool written) {
  const std::size_t one = bytes(all);
  const View out{blocks_.emplace_back(pool_->allocate(digits.size() * one)).data(), all,
                 shape.batch};
  for (std::size_t d = 0; d < digits.size(); ++d) {
    engine->ring().sample_uniform({static_cast<std::byte*>(out.data) + d * one, all, shape.batch},
                                  seed, index_ += static_cast<std::uint32_t>(shape.batch));
  }
  if (written) results_.emplace_back(out.data, digits.size() * one);
  return out;
}

backend::KeyView Operands::key() {
  const std::size_t half = all.size() * engine->config().n * word_bytes(engine->config().word);
  auto* data = static_cast<std::byte*>(
      blocks_.emplace_back(pool_->allocate(2 * digits.size() * half)).data());
  for (std::size_t i = 0; i < 2 * digits.size(); ++i) {
    engine->ring().sample_uniform({data + i * half, all, 1}, seed, index_++);
  }
  return {data, digits.size(), all};
}

std::size_t Operands::words_of_q() const {
  double bits = 0;
  for (const PrimeIndex i : q) bits += std::log2(static_cast<double>(engine->config().primes[i]));
  return static_cast<std::size_t>(bits / 64) + 1;
}

void Operands::host_operands() {
  std::mt19937_64 numbers(seed[0] + 256u * seed[1]);
  const std::size_t count = shape.batch * engine->config().n;
  integers.resize(count);
  doubles.resize(count);
  words.resize(count * words_of_q());
  for (auto& x : integers) x = static_cast<std::int64_t>(numbers());
  for (auto& x : doubles) x = std::nearbyint(static_cast<double>(numbers()) * 0x1p40);
  for (auto& x : words) x = numbers() >> 1;
  slots.resize(count / 2);
  const auto unit = [&] { return static_cast<double>(numbers()) * 0x1p-63 - 1; };
  for (auto& x : slots) x = {unit(), unit()};
  if (!embedding) embedding = std::make_unique<backend::Embedding>(engine->config().n / 2);
}

std::span<std::uint64_t> Operands::words_there(bool compared) {
  auto& block = blocks_.emplace_back(pool_->allocate(words.size() * 8));
  engine->memory()->copy_in(block.data(), words.data(), block.bytes());
  if (compared) results_.emplace_back(block.data(), block.bytes());
  return {static_cast<std::uint64_t*>(block.data()), words.size()};
}

}  // namespace jali::bench
