// Tests whether the time of decrypting and decoding tells what was decrypted. It is a t-test on the cycles of two classes
// of ciphertexts in random order: the method of dudect, O. Reparaz, J. Balasch, I. Verbauwhede, "Dude, is my code constant
// time?", DATE 2017.
//
//   decrypt_time            ends with 0 if no difference was found, and with 1 if one was
//   decrypt_time --planted  the same with a delay that depends on the plaintext: it must end with 1
//
// If both classes have the same distribution, |t| > 10 has a probability below 2e-23. A difference is reported if |t|
// exceeds 10 with the same sign in all of three repetitions, each with fresh ciphertexts and in another order. What another
// process does to the machine does not follow the classes.
#include <x86intrin.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "client.h"

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

class Client {
 public:
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

  /// The cycles of decrypting `from`. It is copied to `at` first, so that both classes are read from the same place.
  double cycles(ckks::Ciphertext& at, const ckks::Ciphertext& from, bool planted) {
    for (std::size_t i = 0; i < at.parts.size(); ++i) {
      std::memcpy(at.parts[i].data(), from.parts[i].data(), at.parts[i].bytes());
    }
    _mm_mfence();
    _mm_lfence();
    const std::uint64_t begin = __rdtsc();
    const auto values = encoder_.decode(decryptor_.decrypt(at));
    if (planted && std::abs(values[0]) > 0x1p20) delay();
    unsigned core;
    const std::uint64_t end = __rdtscp(&core);
    _mm_lfence();
    return static_cast<double>(end - begin);
  }

  std::mt19937_64& random() { return random_; }

 private:
  // This takes some hundredths of the time of a decryption.
  static void delay() {
    for (int i = 0; i < 10000; ++i) asm volatile("" : : "r"(i));
  }

  std::mt19937_64 random_{std::random_device{}()};
  ckks::ParamsPtr params_;
  std::shared_ptr<const ring::Ring> ring_;
  std::shared_ptr<const rlwe::SecretKey> sk_;
  ckks::Encoder encoder_;
  ckks::SecretEncryptor encryptor_;
  ckks::Decryptor decryptor_;
};

/// The mean of the faster half, which interrupts and other processes disturb least, and the square of its standard error.
/// The cut depends on the sample, too, so the error is that of the winsorized sample (K. Yuen, Biometrika 61, 1974).
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

Difference compare(Client& client, Content a, Content b, int level, bool planted) {
  std::vector<ckks::Ciphertext> sources[2];
  for (std::size_t i = 0; i < kSources; ++i) {
    sources[0].push_back(client.make(a, level));
    sources[1].push_back(client.make(b, level));
  }
  ckks::Ciphertext at = client.make(a, level);
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

/// Whether no difference was found.
bool check(const Scheme& scheme, bool planted) {
  Client client(scheme);
  bool same = true;
  for (const Content other : {Content::garbage, Content::zero}) {
    for (const int level : {client.top(), 0}) {
      int above = 0, below = 0;
      std::printf("%-24s %-10s level %d, %s against %s: t =", scheme.label.c_str(),
                  client.engine().c_str(), level, name(Content::message), name(other));
      for (int i = 0; i < kRepetitions; ++i) {
        const Difference d = compare(client, Content::message, other, level, planted);
        above += d.t > kThreshold;
        below += d.t < -kThreshold;
        std::printf(" %.1f (%+.2f%%)", d.t, d.percent);
        std::fflush(stdout);
      }
      const bool found = above == kRepetitions || below == kRepetitions;
      std::puts(found ? "  DIFFERS" : "");
      same = same && !found;
    }
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
  return same ? 0 : 1;
}
