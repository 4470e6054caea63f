// Times products and rotations of BGV and BFV by Phantom on a GPU, and decrypts every result.
// Prints a JSON object for each set of parameters. Times are medians over calls back to back.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <random>
#include <vector>

#include "phantom.h"

namespace {

using phantom::EncryptionParameters;
using phantom::mul_tech_type;
using phantom::scheme_type;
using Clock = std::chrono::steady_clock;

constexpr int kPlainBits = 20;

double median_us(const std::function<void()>& call) {
  constexpr int kWarm = 5, kRounds = 7, kCalls = 30;
  for (int i = 0; i < kWarm; ++i) call();
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    cudaDeviceSynchronize();
    const auto start = Clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    cudaDeviceSynchronize();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() /
                    kCalls);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// Sizes of primes that differ by at most one bit and multiply to so many bits.
std::vector<int> sizes(int count, int bits) {
  std::vector<int> out(count, bits / count);
  for (int i = 0; i < bits % count; ++i) ++out[i];
  return out;
}

/// primes: of all of Q P; special: of P.
void measure(const char* name, scheme_type scheme, mul_tech_type way, int log_n, int primes,
             int special, int bits) {
  const std::size_t n = std::size_t{1} << log_n;
  EncryptionParameters parms(scheme);
  parms.set_poly_modulus_degree(n);
  parms.set_coeff_modulus(phantom::arith::CoeffModulus::Create(n, sizes(primes, bits)));
  parms.set_plain_modulus(phantom::arith::PlainModulus::Batching(n, kPlainBits));
  if (scheme == scheme_type::bfv) parms.set_mul_tech(way);
  parms.set_special_modulus_size(special);
  parms.set_galois_elts({5});  // rotates rows by 1
  PhantomContext context(parms);
  PhantomSecretKey secret(context);
  auto relinearisation = secret.gen_relinkey(context);
  auto rotations = secret.create_galois_keys(context);
  PhantomBatchEncoder encoder(context);

  const std::uint64_t t = parms.plain_modulus().value();
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> a(n), b(n);
  for (auto* values : {&a, &b}) {
    for (auto& v : *values) v = random() % t;
  }
  const auto encrypted = [&](const std::vector<std::uint64_t>& values) {
    PhantomPlaintext plain;
    PhantomCiphertext cipher;
    encoder.encode(context, values, plain);
    secret.encrypt_symmetric(context, plain, cipher);
    return cipher;
  };
  const PhantomCiphertext x = encrypted(a), y = encrypted(b);
  PhantomCiphertext out;
  const auto wrong = [&](const std::function<std::uint64_t(std::size_t)>& right) {
    PhantomPlaintext plain;
    std::vector<std::uint64_t> got;
    secret.decrypt(context, out, plain);
    encoder.decode(context, plain, got);
    std::size_t count = 0;
    for (std::size_t i = 0; i < n; ++i) count += got[i] != right(i);
    return count;
  };

  const double multiply =
      median_us([&] { out = phantom::multiply_and_relin(context, x, y, relinearisation); });
  const std::size_t multiply_wrong = wrong([&](std::size_t i) { return a[i] * b[i] % t; });
  const double rotate = median_us([&] { out = phantom::rotate(context, x, 1, rotations); });
  const std::size_t rotate_wrong =
      wrong([&](std::size_t i) { return a[i / (n / 2) * (n / 2) + (i + 1) % (n / 2)]; });
  std::printf(
      "{\"way\": \"%s\", \"log_n\": %d, \"log_qp\": %d, \"primes\": %d, \"special\": %d, "
      "\"multiply_us\": %.1f, \"multiply_wrong\": %zu, \"rotate_us\": %.1f, \"rotate_wrong\": "
      "%zu}\n",
      name, log_n, bits, primes, special, multiply, multiply_wrong, rotate, rotate_wrong);
  std::fflush(stdout);
}

}  // namespace

int main() {
  struct Set {
    int log_n, primes, special, bits;
  };
  const Set many[] = {{13, 8, 2, 218}, {14, 16, 4, 438}, {15, 32, 8, 881}};
  const Set few[] = {{13, 5, 1, 218}, {14, 16, 4, 438}, {15, 17, 1, 881}};
  try {
    for (const Set& s : many) {
      measure("bgv", scheme_type::bgv, mul_tech_type::none, s.log_n, s.primes, s.special, s.bits);
    }
    for (const Set& s : few) {
      measure("bfv, HPS", scheme_type::bfv, mul_tech_type::hps, s.log_n, s.primes, s.special,
              s.bits);
    }
    for (const Set& s : many) {
      measure("bfv, BEHZ", scheme_type::bfv, mul_tech_type::behz, s.log_n, s.primes, s.special,
              s.bits);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "Phantom failed: %s\n", e.what());
    return 1;
  }
  return 0;
}
