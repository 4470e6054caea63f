// Tests whether the time of decrypting and decoding tells what was decrypted. It is a t-test on the
// cycles of two classes of ciphertexts in random order: the method of dudect, O. Reparaz, J.
// Balasch, I. Verbauwhede, "Dude, is my code constant time?", DATE 2017.
//
//   decrypt_time            ends with 0 if no difference was found, and with 1 if one was
//   decrypt_time --planted  the same with a delay that depends on the plaintext: it must end with 1
//
// If both classes have the same distribution, |t| > 10 has a probability below 2e-23. A difference
// is reported if |t| exceeds 10 with the same sign in all of three repetitions, each with fresh
// ciphertexts and in another order. What another process does to the machine does not follow the
// classes.
#include <x86intrin.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "../tfhe_literals.h"
#include "client.h"
#include "jali/lwe/secret/encrypt.h"
#include "jali/schemes/tfhe/secret/client.h"

namespace jali::timing {
namespace {

constexpr double kThreshold = 10;
constexpr int kRepetitions = 3;
constexpr std::size_t kRuns = 6000;  // of both classes together
constexpr std::size_t kSources = 8;  // ciphertexts of a class
constexpr int kLogN = 11;

/// The kinds of values that decryption gives.
enum class Content : std::uint8_t { message, garbage, zero };

const char* name(Content content) {
  switch (content) {
    case Content::message: return "a message";
    case Content::garbage: return "garbage";
    case Content::zero: return "zero";
  }
  return "";
}

/// The cycles of a call, which gives a number; planted: with a delay if that is large.
template <class Call>
double cycles_of(bool planted, const Call& call) {
  _mm_mfence();
  _mm_lfence();
  const std::uint64_t begin = __rdtsc();
  const double shown = call();
  if (planted && std::abs(shown) > 0x1p20) {
    // This takes some hundredths of the time of a decryption.
    for (int i = 0; i < 10000; ++i) asm volatile("" : : "r"(i));
  }
  unsigned core;
  const std::uint64_t end = __rdtscp(&core);
  _mm_lfence();
  return static_cast<double>(end - begin);
}

class Client {
 public:
  using Ciphertext = ckks::Ciphertext;

  explicit Client(const Scheme& scheme)
      : params_(make_params(scheme, kLogN)),
        ring_(ckks::make_ring(*params_, "cpu", 1)),
        sk_(std::make_shared<const rlwe::SecretKey>(
            rlwe::KeyGenerator(params_, ring_).secret_key())),
        encoder_(params_, ring_),
        encryptor_(sk_, ring_),
        decryptor_(sk_, ring_) {}

  std::string engine() const { return ring_->engine().name(); }
  int top() const { return params_->top(); }

  ckks::Ciphertext make(Content content, int level) {
    const auto values = uniform_vector(random_, params_->slots());
    ckks::Ciphertext c =
        encryptor_.encrypt(encoder_.encode(values, 1, level, params_->scale(level)));
    if (content == Content::message) return c;
    if (content == Content::garbage) {
      c.parts[0] = rlwe::expand_uniform(*ring_, fresh_seed(random_), 0, c.parts[1].primes());
      return c;
    }
    const ring::Poly s = sk_->at(*ring_, c.parts[1].primes());
    ring_->ops().mul(c.parts[0].view(), c.parts[1].view(), s.view());
    ring_->ops().neg(c.parts[0].view(), c.parts[0].view());
    return c;
  }

  /// The cycles of decrypting `from`. It is copied to `at` first, so that both classes are read
  /// from the same place.
  double cycles(ckks::Ciphertext& at, const ckks::Ciphertext& from, bool planted) {
    for (std::size_t i = 0; i < at.parts.size(); ++i) {
      std::memcpy(at.parts[i].data(), from.parts[i].data(), at.parts[i].bytes());
    }
    return cycles_of(planted, [&] { return std::abs(encoder_.decode(decryptor_.decrypt(at))[0]); });
  }

  std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_{std::random_device{}()};
  ckks::ParamsPtr params_;
  std::shared_ptr<const ring::Ring> ring_;
  std::shared_ptr<const rlwe::SecretKey> sk_;
  ckks::Encoder encoder_;
  ckks::SecretEncryptor encryptor_;
  ckks::Decryptor decryptor_;
};

/// The same of TFHE: vectors of 64 messages, whose phases are rounded to values.
class TfheClient {
 public:
  using Ciphertext = tfhe::Ciphertext;

  explicit TfheClient(const test::TfheShape& shape)
      : params_(test::insecure_params(shape)), client_(params_) {}

  Ciphertext make(Content content, int /*level*/) {
    std::vector<std::uint64_t> values(64);
    for (auto& value : values) value = random_() % params_->message_modulus();
    Ciphertext c = client_.encrypt(values);
    const lwe::LweBlock& from = *c.data;
    auto block = std::make_shared<lwe::LweBlock>(
        lwe::make_lwe(*device::Pool::create(), from.torus, from.dimension, from.count));
    std::memcpy(block->data.data(), from.data.data(), from.bytes());
    auto* const words = static_cast<std::uint64_t*>(block->data.data());  // of a torus of 64 bits
    if (content == Content::garbage) {
      for (std::size_t i = 0; i < block->bytes() / sizeof(*words); ++i) words[i] = random_();
    } else if (content == Content::zero) {
      lwe::phases(values, from.view(), client_.secret_key().held());
      for (std::size_t i = 0; i < values.size(); ++i) {
        words[(i + 1) * block->row_words() - 1] -= values[i];
      }
    }
    c.data = std::move(block);
    c.seed.reset();
    return c;
  }

  double cycles(Ciphertext& at, const Ciphertext& from, bool planted) {
    // The constructor of `at` made the block, and nothing else holds it.
    std::memcpy(const_cast<void*>(at.data->data.data()), from.data->data.data(), at.data->bytes());
    return cycles_of(planted,
                     [&] { return static_cast<double>(client_.decrypt(at, tfhe::Check::no)[0]); });
  }

  std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_{std::random_device{}()};
  tfhe::ParamsPtr params_;
  tfhe::Client client_;
};

/// The mean of the faster half, which interrupts and other processes disturb least, and the square
/// of its standard error. The cut depends on the sample, too, so the error is that of the
/// winsorized sample (K. Yuen, Biometrika 61, 1974).
struct Moments {
  double mean = 0, error = 0;
  explicit Moments(std::vector<double> x) {
    std::ranges::sort(x);
    const std::size_t half = x.size() / 2;
    const auto h = static_cast<double>(half), n = static_cast<double>(x.size());
    for (std::size_t i = 0; i < half; ++i) mean += x[i] / h;
    std::fill(x.begin() + static_cast<std::ptrdiff_t>(half), x.end(), x[half - 1]);
    double all = 0, squares = 0;
    for (const double v : x) all += v / n;
    for (const double v : x) squares += (v - all) * (v - all);
    error = squares / (h * (h - 1));
  }
};

struct Difference {
  double t, percent;
};

template <class Client>
Difference compare(Client& client, Content a, Content b, int level, bool planted) {
  std::vector<typename Client::Ciphertext> sources[2];
  for (std::size_t i = 0; i < kSources; ++i) {
    sources[0].push_back(client.make(a, level));
    sources[1].push_back(client.make(b, level));
  }
  typename Client::Ciphertext at = client.make(a, level);
  std::vector<double> samples[2];
  for (std::size_t i = 0; i < kRuns + kRuns / 10; ++i) {
    const int which = static_cast<int>(client.random()() & 1);
    const auto& from = sources[which][client.random()() % kSources];
    const double cycles = client.cycles(at, from, planted);
    if (i >= kRuns / 10) samples[which].push_back(cycles);  // the first ones warm up
  }
  const Moments first(samples[0]), second(samples[1]);
  return {(second.mean - first.mean) / std::sqrt(first.error + second.error + 1e-9),
          100 * (second.mean / first.mean - 1)};
}

/// Whether no difference between a message and the other content was found.
template <class Client>
bool check(Client& client, const std::string& label, Content other, int level, bool planted) {
  int above = 0, below = 0;
  std::printf("%-35s level %d, %s against %s: t =", label.c_str(), level, name(Content::message),
              name(other));
  for (int i = 0; i < kRepetitions; ++i) {
    const Difference d = compare(client, Content::message, other, level, planted);
    above += d.t > kThreshold;
    below += d.t < -kThreshold;
    std::printf(" %.1f (%+.2f%%)", d.t, d.percent);
    std::fflush(stdout);
  }
  const bool found = above == kRepetitions || below == kRepetitions;
  std::puts(found ? "  DIFFERS" : "");
  return !found;
}

bool check(const Scheme& scheme, bool planted) {
  Client client(scheme);
  bool same = true;
  for (const Content other : {Content::garbage, Content::zero}) {
    for (const int level : {client.top(), 0}) {
      same = check(client, scheme.label + ", " + client.engine(), other, level, planted) && same;
    }
  }
  return same;
}

/// No value of TFHE is large, so that nothing can be planted.
bool check_tfhe() {
  test::TfheShape shape;
  shape.N = 1024;
  TfheClient client(shape);
  bool same = true;
  for (const Content other : {Content::garbage, Content::zero}) {
    same = check(client, "TFHE, " + test::name_of(shape), other, 0, false) && same;
  }
  return same;
}

}  // namespace
}  // namespace jali::timing

int main(int argc, char** argv) {
  using namespace jali::timing;
  const bool planted = argc > 1 && std::string_view(argv[1]) == "--planted";
  bool same = true;
  for (const Scheme& scheme : schemes()) {
    same = check(scheme, planted) && same;
    if (planted) break;
  }
  if (!planted) same = check_tfhe() && same;
  return same ? 0 : 1;
}
