#include "jali/schemes/tfhe/secret/client.h"

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
#include "jali/schemes/tfhe/secret/messages.h"

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

// Keys and encryptions take the first two seeds of the root as roots of their own, so that no seed
// of a mask, which is public, is one of a secret.
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

lwe::PublicKey Client::public_key() { return generator_.public_key(*secret_); }

Ciphertext Client::encrypt(std::span<const std::uint64_t> values,
                           std::optional<std::uint64_t> largest) {
  const Params& params = *this->params();
  const std::uint32_t bound = checked_largest(params, largest);
  const SecretVector<std::uint64_t> messages =
      messages_of(params, values, bound, largest.has_value(), params.ciphertext_torus());

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
          std::vector<std::uint32_t>(values.size(), bound),
          History::encrypted(seed, values.size()),
          seed};
}

void Client::check_owner(const ParamsPtr& params, const KeyId& key_id) const {
  require<ParamsMismatch>(params->hash() == this->params()->hash(),
                          "the ciphertext has other parameters than the secret key: decrypt it "
                          "with the client who encrypted its operands");
  require<KeyMismatch>(agree(key_id, this->key_id()),
                       "the ciphertext belongs to another secret key: decrypt it with the client "
                       "who encrypted its operands");
}

SecretVector<std::uint64_t> Client::phases(const Ciphertext& ciphertext) const {
  const Params& params = *this->params();
  require<InvalidArgument>(ciphertext.params != nullptr && ciphertext.data != nullptr,
                           "a ciphertext is empty: encrypt or compute one first");
  check_owner(ciphertext.params, ciphertext.key_id);
  const lwe::LweBlock& data = *ciphertext.data;
  require<InvalidArgument>(
      data.torus == params.ciphertext_torus() && data.dimension == params.dimension() &&
          data.count == ciphertext.size() && ciphertext.history.rows() == ciphertext.size(),
      "the ciphertext has another shape than its parameters say");
  return phases(data, secret_->held());
}

SecretVector<std::uint64_t> Client::phases(const CompactCiphertext& ciphertext) const {
  require<InvalidArgument>(ciphertext.params != nullptr,
                           "a ciphertext is empty: encrypt or compute one first");
  check_owner(ciphertext.params, ciphertext.key_id);
  return phases(extracted(*pool_, ciphertext), secret_->large());
}

SecretVector<std::uint64_t> Client::phases(const lwe::LweBlock& data,
                                           std::span<const std::uint8_t> key) const {
  const device::Device& device = *engine().device();
  const bool here = data.count == 0 || data.data.memory() == device.memory().get();
  require<InvalidArgument>(
      here || data.data.host_accessible(),
      "the ciphertext is in another device's memory: take its host_copy first");
  SecretVector<std::uint64_t> out(data.count);
  const device::Buffer secret = lwe::secret_copy(device, key);
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

/// A phase as value step + error. The step is a power of two, and nothing here divides by it: the
/// time of a division may depend on what is divided.
struct Split {
  std::uint64_t value;  // 0 to 2 value_modulus() - 1, because a bit of padding lies above
  std::uint64_t above;  // error + step / 2, 0 to step - 1
};
Split split(std::uint64_t phase, const Params& params, Torus torus) {
  const std::uint64_t step = params.step(torus), rounded = phase + step / 2;
  return {(rounded >> std::countr_zero(step)) & (2 * params.value_modulus() - 1),
          rounded & (step - 1)};
}

/// The values of phases, in their place. With the check it throws WrongDecryption if an error is
/// above bound(i), in words of the torus, or a value above degree(i).
template <class Bound, class Degree>
void read(std::span<std::uint64_t> phases, const Params& params, Torus torus, Check check,
          const Bound& bound, const Degree& degree) {
  const std::uint64_t half = params.step(torus) / 2;
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const auto [value, above] = split(phases[i], params, torus);
    phases[i] = value & (params.value_modulus() - 1);
    if (check == Check::yes) {
      const std::uint64_t error = above > half ? above - half : half - above;
      // The bound follows from public numbers.
      const auto most = static_cast<std::uint64_t>(std::min(bound(i), static_cast<double>(half)));
      wrong |=
          static_cast<std::uint64_t>(error > most) | static_cast<std::uint64_t>(value > degree(i));
    }
  }
  // Of all elements together, whether one is wrong.
  declassify(wrong);
  require<WrongDecryption>(
      wrong == 0,
      "the ciphertext does not decrypt to what it says of itself: it was damaged, belongs to "
      "another key of the same name, or was computed with more noise than was counted; "
      "check=False gives the values that its phases are nearest to");
}

std::vector<double> errors_of(std::span<const std::uint64_t> phases, const Params& params,
                              Torus torus) {
  const std::uint64_t step = params.step(torus);
  std::vector<double> out(phases.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    // The difference of integers is exact, and an error has few bits.
    const std::uint64_t error = split(phases[i], params, torus).above - step / 2;
    out[i] = static_cast<double>(static_cast<std::int64_t>(error)) / static_cast<double>(step);
  }
  return out;
}

}  // namespace

std::vector<std::uint64_t> Client::decrypt(const Ciphertext& ciphertext, Check check) const {
  SecretVector<std::uint64_t> values = phases(ciphertext);
  const Params& params = *this->params();
  const Torus torus = params.ciphertext_torus();
  const NoiseModel model(params.literal());
  const double variance = model.bootstrapped(params.order());
  const double deviation = std::sqrt(variance) * std::ldexp(1.0, backend::torus_bits(torus));
  // A look-up of a constant has no noise, but the roundings of its transforms if these are not
  // exact.
  const double least = model.blind_rotation().transform / variance;
  read(
      values, params, torus, check,
      [&](std::size_t i) {
        return kDeviations * deviation * std::sqrt(std::max(ciphertext.history.norm2(i), least));
      },
      [&](std::size_t i) { return ciphertext.degree[i]; });
  return {values.begin(), values.end()};
}

std::vector<std::uint64_t> Client::decrypt(const CompactCiphertext& ciphertext, Check check) const {
  SecretVector<std::uint64_t> values = phases(ciphertext);
  const Params& params = *this->params();
  const double variance = 2 * NoiseModel(params.literal()).fresh_public();
  const double bound =
      kDeviations * std::sqrt(variance) * std::ldexp(1.0, backend::torus_bits(params.torus()));
  read(
      values, params, params.torus(), check, [&](std::size_t) { return bound; },
      [&](std::size_t) { return ciphertext.degree; });
  return {values.begin(), values.end()};
}

std::vector<double> Client::errors(const Ciphertext& ciphertext) const {
  return errors_of(phases(ciphertext), *params(), params()->ciphertext_torus());
}

std::vector<double> Client::errors(const CompactCiphertext& ciphertext) const {
  return errors_of(phases(ciphertext), *params(), params()->torus());
}

}  // namespace jali::tfhe
