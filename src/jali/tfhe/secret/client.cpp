#include "jali/tfhe/secret/client.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/base/secret_vector.h"
#include "jali/lwe/secret/transfer.h"
#include "jali/params/tfhe_noise.h"

namespace jali::tfhe {

namespace {

// Bytes of ciphertexts that are on a device at once on their way to the host or from it.
constexpr std::size_t kPieceBytes = std::size_t{64} << 20;
// A normal error exceeds so many standard deviations with a probability below 2^-128.
constexpr double kDeviations = 13.2;

/// Seed `which` that follows from the root, if there is one. It is wiped.
class Derived {
 public:
  Derived(const std::optional<random::Seed>& root, int which) {
    if (!root) return;
    random::SeedSource seeds(root, random::SeedSource::Order::streams);
    for (int i = 0; i < which; ++i) seeds.next();
    seed_ = seeds.next().bytes();
  }
  Derived(const Derived&) = delete;
  Derived& operator=(const Derived&) = delete;
  ~Derived() {
    if (seed_) wipe(seed_->data(), seed_->size());
  }
  const std::optional<random::Seed>& seed() const { return seed_; }

 private:
  std::optional<random::Seed> seed_;
};

const lwe::SecretKey& not_null(const std::shared_ptr<const lwe::SecretKey>& secret) {
  require<InvalidArgument>(secret != nullptr, "a client needs a secret key");
  return *secret;
}

std::shared_ptr<const backend::TfheClientOps> cpu_engine(const ParamsPtr& params, int threads) {
  require<InvalidArgument>(params != nullptr, "a client needs parameters");
  return backend::make_cpu_tfhe_client(params->config(threads));
}

/// work(first, count) for pieces of `total` rows.
template <class Work>
void in_pieces(std::size_t total, std::size_t row_bytes, const Work& work) {
  const std::size_t piece = std::max<std::size_t>(kPieceBytes / row_bytes, 1);
  for (std::size_t first = 0; first < total; first += piece) {
    work(first, std::min(piece, total - first));
  }
}

}  // namespace

// Keys and encryptions take the first two seeds of the root as roots of their own, so that no seed of a mask, which is
// public, is one of a secret.
Client::Client(ParamsPtr params, std::shared_ptr<const backend::TfheClientOps> engine,
               const std::optional<random::Seed>& seed)
    : generator_(std::move(params), std::move(engine), Derived(seed, 0).seed()),
      seeds_(Derived(seed, 1).seed(), random::SeedSource::Order::streams),
      pool_(device::Pool::create()) {
  secret_ = std::make_shared<const lwe::SecretKey>(generator_.secret_key());
}

Client::Client(std::shared_ptr<const lwe::SecretKey> secret,
               std::shared_ptr<const backend::TfheClientOps> engine,
               const std::optional<random::Seed>& seed)
    : secret_(std::move(secret)),
      generator_(not_null(secret_).params(), std::move(engine), Derived(seed, 0).seed()),
      seeds_(Derived(seed, 1).seed(), random::SeedSource::Order::streams),
      pool_(device::Pool::create()) {}

Client::Client(const ParamsPtr& params, int threads, const std::optional<random::Seed>& seed)
    : Client(params, cpu_engine(params, threads), seed) {}

Client::Client(std::shared_ptr<const lwe::SecretKey> secret, int threads,
               const std::optional<random::Seed>& seed)
    : Client(secret, cpu_engine(not_null(secret).params(), threads), seed) {}

lwe::EvaluationKeys Client::evaluation_keys(bool packing, const Progress& progress,
                                            const Checkpoint& checkpoint) {
  return generator_.evaluation_keys(*secret_, packing, progress, checkpoint);
}

Ciphertext Client::encrypt(std::span<const std::uint64_t> values,
                           std::optional<std::uint64_t> largest) {
  const Params& params = *this->params();
  const std::uint64_t bound = largest.value_or(params.message_modulus() - 1);
  require<InvalidArgument>(bound < params.value_modulus(), [&] {
    return "values of up to " + std::to_string(bound) + " do not fit, there is room up to " +
           std::to_string(params.value_modulus() - 1) + ": use a preset with more bits";
  });
  std::uint64_t too_large = 0;
  for (const std::uint64_t value : values) too_large |= bound - value > bound ? 1 : 0;
  declassify(too_large);  // whoever gives such a value learns that it is one
  require<InvalidArgument>(too_large == 0, [&] {
    return "a value to encrypt is negative or above " + std::to_string(bound) +
           ": use values of 0 to " + std::to_string(bound) +
           (largest ? "" : ", or integers of several digits for larger ones");
  });
  SecretVector<std::uint64_t> messages(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) messages[i] = values[i] * params.step();

  const random::Seed seed = seeds_.next().bytes();
  declassify(seed);  // of the masks: it is sent with the ciphertext
  const random::SecretSeed errors = seeds_.next();
  auto data = std::make_shared<lwe::LweBlock>(
      lwe::make_lwe(*pool_, params.ciphertext_torus(), params.dimension(), values.size()));
  auto* const rows = static_cast<std::byte*>(data->data.data());
  const device::Device& device = *engine().device();
  const device::Buffer secret = lwe::secret_copy(device, secret_->held());
  in_pieces(values.size(), data->row_bytes(), [&](std::size_t first, std::size_t count) {
    const device::Buffer piece =
        lwe::secret_copy(device, std::span<const std::uint64_t>(messages).subspan(first, count));
    device::Buffer bodies = device.pool()->allocate(count * backend::torus_bytes(data->torus));
    const backend::Draws draws{seed, errors.bytes(), params.noise_bits(), first};
    engine().encrypt_bodies(bodies.data(), count, data->torus, data->dimension,
                            static_cast<const std::uint8_t*>(secret.data()),
                            static_cast<const std::uint64_t*>(piece.data()), draws);
    lwe::make_on_host(device, rows + first * data->row_bytes(), count * data->row_bytes(), false,
                      [&](void* out) {
                        engine().expand({out, data->torus, data->dimension, count}, bodies.data(),
                                        draws.masks, first);
                      });
  });
  return {this->params(),
          key_id(),
          std::move(data),
          std::vector<std::uint32_t>(values.size(), static_cast<std::uint32_t>(bound)),
          History::encrypted(seed, values.size()),
          seed};
}

SecretVector<std::uint64_t> Client::phases(const Ciphertext& ciphertext) const {
  const Params& params = *this->params();
  require<InvalidArgument>(ciphertext.params != nullptr && ciphertext.data != nullptr,
                           "a ciphertext is empty: encrypt or compute one first");
  require<ParamsMismatch>(ciphertext.params->hash() == params.hash(),
                          "the ciphertext has other parameters than the secret key: decrypt it "
                          "with the client who encrypted its operands");
  require<KeyMismatch>(agree(ciphertext.key_id, key_id()),
                       "the ciphertext belongs to another secret key: decrypt it with the client "
                       "who encrypted its operands");
  const lwe::LweBlock& data = *ciphertext.data;
  require<InvalidArgument>(
      data.torus == params.ciphertext_torus() && data.dimension == params.dimension() &&
          data.count == ciphertext.size() && ciphertext.history.rows() == ciphertext.size(),
      "the ciphertext has another shape than its parameters say");
  const device::Device& device = *engine().device();
  const bool here = data.count == 0 || data.data.memory() == device.memory().get();
  require<InvalidArgument>(
      here || data.data.host_accessible(),
      "the ciphertext is in another device's memory: take its host_copy first");
  SecretVector<std::uint64_t> out(data.count);
  const device::Buffer secret = lwe::secret_copy(device, secret_->held());
  in_pieces(out.size(), data.row_bytes(), [&](std::size_t first, std::size_t count) {
    const std::byte* rows =
        static_cast<const std::byte*>(data.data.data()) + first * data.row_bytes();
    device::Buffer copied;
    if (!here && !device.memory()->host_accessible()) {
      copied = device.pool()->allocate(count * data.row_bytes());
      device.memory()->copy_in(copied.data(), rows, count * data.row_bytes());
      rows = static_cast<const std::byte*>(copied.data());
    }
    lwe::make_on_host(device, &out[first], count * sizeof(out[0]), true, [&](void* phases) {
      engine().phases(static_cast<std::uint64_t*>(phases),
                      {rows, data.torus, data.dimension, count},
                      static_cast<const std::uint8_t*>(secret.data()));
    });
  });
  return out;
}

namespace {

/// A phase as value step + error. The step is a power of two, and nothing here divides by it: the time of a division may
/// depend on what is divided.
struct Split {
  std::uint64_t value;  // 0 to 2 value_modulus() - 1, because a bit of padding lies above
  std::uint64_t above;  // error + step / 2, 0 to step - 1
};
Split split(std::uint64_t phase, const Params& params) {
  const std::uint64_t step = params.step(), rounded = phase + step / 2;
  return {(rounded >> std::countr_zero(step)) & (2 * params.value_modulus() - 1),
          rounded & (step - 1)};
}

}  // namespace

std::vector<std::uint64_t> Client::decrypt(const Ciphertext& ciphertext, Check check) const {
  SecretVector<std::uint64_t> values = phases(ciphertext);
  const Params& params = *this->params();
  const std::uint64_t half = params.step() / 2;
  const NoiseModel model(params.literal());
  const double variance = model.bootstrapped(params.order());
  const double deviation =
      std::sqrt(variance) * std::ldexp(1.0, backend::torus_bits(params.ciphertext_torus()));
  // A look-up of a constant has no noise, but the roundings of its transforms if these are not exact.
  const double least = model.blind_rotation().transform / variance;
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto [value, above] = split(values[i], params);
    values[i] = value & (params.value_modulus() - 1);
    if (check == Check::yes) {
      const std::uint64_t error = above > half ? above - half : half - above;
      // The bound follows from public numbers.
      const double norm2 = std::max(ciphertext.history.norm2(i), least);
      const double bound = kDeviations * deviation * std::sqrt(norm2);
      const auto most = static_cast<std::uint64_t>(std::min(bound, static_cast<double>(half)));
      wrong |= static_cast<std::uint64_t>(error > most) |
               static_cast<std::uint64_t>(value > ciphertext.degree[i]);
    }
  }
  // Of all elements together, whether one is wrong.
  declassify(wrong);
  require<WrongDecryption>(
      wrong == 0,
      "the ciphertext does not decrypt to what it says of itself: it was damaged, belongs to "
      "another key of the same name, or was computed with more noise than was counted; "
      "check=False gives the values that its phases are nearest to");
  return {values.begin(), values.end()};
}

std::vector<double> Client::errors(const Ciphertext& ciphertext) const {
  const SecretVector<std::uint64_t> phase = phases(ciphertext);
  std::vector<double> out(phase.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    // The difference of integers is exact, and an error has few bits.
    const std::uint64_t error = split(phase[i], *params()).above - params()->step() / 2;
    out[i] = static_cast<double>(static_cast<std::int64_t>(error)) /
             static_cast<double>(params()->step());
  }
  return out;
}

}  // namespace jali::tfhe
