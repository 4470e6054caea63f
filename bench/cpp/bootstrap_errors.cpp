// Prints a table of the error of bootstrapping after each of its stages, measured and predicted, on
// a small ring with all slots in use.
//   bootstrap_errors [--log-n N] [--precision P] [--batch B] [--order raise_first] [--word w32]
// An error is given in bits: -log2 of the standard deviation that it would have in the real part of
// a slot of the result if all later stages were exact. Variances add, so that the error of one
// stage alone has the difference of the variances after and before it. The order is slots_first, as
// in most presets, unless --order says raise_first.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "jali/api/jali.h"

namespace {

using namespace jali;
using Complex = std::complex<double>;

std::size_t reversed(std::size_t k, int bits) {
  std::size_t out = 0;
  for (int i = 0; i < bits; ++i) out |= (k >> i & 1) << (bits - 1 - i);
  return out;
}

int run(int log_n, double precision, std::size_t batch, params::BootstrapOrder order,
        std::optional<Word> word) {
  params::BootstrapRequest request;
  request.precision_bits = precision;
  request.levels_after = 3;
  request.log_n = log_n;
  request.order = order;
  request.word = word;
  request.security = 0;
  request.name = "insecure_errors";
  const auto params = params::create_with_bootstrap(request);
  const auto ring = ckks::make_ring(*params, "cpu", 2);
  const auto& b = *params->bootstrap();
  bootstrap::BootstrapPlan plan(params);
  rlwe::KeyGenerator generator(params, ring);
  const auto sk = std::make_shared<const rlwe::SecretKey>(generator.secret_key());
  const auto evaluator = std::make_shared<const ckks::Evaluator>(
      params, ring,
      std::make_shared<const rlwe::EvaluationKeys>(
          bootstrap::evaluation_keys(generator, *sk, {&plan, 1})));
  const bootstrap::Bootstrapper bootstrapper(evaluator, std::move(plan));
  const ckks::Decryptor decryptor(sk, ring);
  const std::size_t n = params->n(), half = n / 2;

  std::mt19937_64 random(std::random_device{}());
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<Complex> v(batch * half);
  for (auto& z : v) z = {uniform(random), uniform(random)};
  const auto coefficients = [&](ring::Poly poly, double scale) {
    ring->to_coeff(poly);
    return ring::to_doubles(*ring, poly, scale);
  };
  // m: the exact coefficients that are raised, with far more bits than any stage keeps. With
  // raise_first they are the coefficients of the message. With slots_first they are its slots in
  // bit-reversed order: slot k is m_k + i m_{k + N/2}.
  const bool raise_first = order == params::BootstrapOrder::raise_first;
  std::vector<double> m(batch * n);
  if (raise_first) {
    const double fine = 0x1p60;
    m = coefficients(evaluator->encoder().encode(v, batch, params->depth(), fine).poly, fine);
  } else {
    for (std::size_t i = 0; i < batch; ++i) {
      for (std::size_t k = 0; k < half; ++k) {
        const Complex z = v[i * half + reversed(k, log_n - 1)];
        m[i * n + k] = z.real();
        m[i * n + k + half] = z.imag();
      }
    }
  }

  double q0 = 1;
  for (PrimeIndex i : params->level(0).primes) q0 *= static_cast<double>(params->primes()[i]);
  // The real part of a slot is a sum of N coefficients times cosines, so its variance is N/2 times
  // a coefficient's.
  const double slot = std::sqrt(static_cast<double>(n) / 2);
  const double sum = raise_first ? slot : 1;
  double entry = 0;  // the scale at level 0
  // The integers I of the raised coefficients I + D m / q_0, where D is `entry`.
  std::vector<double> whole;
  const auto show = [&](const char* stage, double measured, double predicted) {
    std::printf("%-24s %10.2f %10.2f\n", stage, -std::log2(measured), -std::log2(predicted));
  };
  const auto rms = [](const std::vector<double>& a) {
    double sum = 0;
    for (double x : a) sum += x * x;
    return std::sqrt(sum / static_cast<double>(a.size()));
  };
  // The predicted error of a ciphertext whose coefficients are those of m.
  const auto of_coefficients = [&](const ckks::Ciphertext& c, double scale) {
    return std::sqrt(c.estimate.variance) / scale * sum;
  };
  // The predicted error of a ciphertext whose slots are the coefficients of m.
  const auto of_slots = [&](const ckks::Ciphertext& c, double scale) {
    return slot * std::sqrt(c.estimate.variance) / scale * sum;
  };
  const auto shown = [&](const char* name, const ckks::Ciphertext& c) {
    const std::string stage = name;
    std::vector<double> error(m.size());
    if (stage == (raise_first ? "enter" : "slots_to_coefficients")) {
      entry = c.scale;
      const auto got = coefficients(decryptor.decrypt(c).poly, c.scale);
      for (std::size_t k = 0; k < m.size(); ++k) error[k] = got[k] - m[k];
      show(name, rms(error) * sum, of_coefficients(c, c.scale));
    } else if (stage == "raise") {
      const auto got = coefficients(decryptor.decrypt(c).poly, q0);
      whole.resize(m.size());
      for (std::size_t k = 0; k < m.size(); ++k) {
        whole[k] = std::round(got[k] - m[k] * (entry / q0));
        error[k] = (got[k] - whole[k]) * (q0 / entry) - m[k];
      }
      show(name, rms(error) * sum, of_coefficients(c, entry));
    } else if (stage == "coefficients_to_slots" || stage == "reduction") {
      const bool reduced = stage == "reduction";
      const auto got = evaluator->encoder().decode(decryptor.decrypt(c));
      // The slots hold x_k + i x_{k + N/2} in bit-reversed order, x the raised coefficients. Before
      // the reduction they are divided by 2 (K + 1/4).
      const double factor = reduced ? 1 : 2 * (b.range + 0.25) * (q0 / entry);
      for (std::size_t v_ = 0; v_ < batch; ++v_) {
        for (std::size_t k = 0; k < half; ++k) {
          const Complex w = got[v_ * half + reversed(k, log_n - 1)] * factor;
          const std::size_t at = v_ * n + k;
          const double i0 = reduced ? 0 : whole[at] * (q0 / entry);
          const double i1 = reduced ? 0 : whole[at + half] * (q0 / entry);
          error[at] = w.real() - i0 - m[at];
          error[at + half] = w.imag() - i1 - m[at + half];
        }
      }
      show(name, rms(error) * sum, of_slots(c, c.scale / factor));
    }
  };
  const int level = b.input_level() + 1;
  const auto x = evaluator->copy(ckks::SecretEncryptor(sk, ring).encrypt(
      evaluator->encoder().encode(v, batch, level, params->scale(level)), 0.82));
  std::printf(
      "N = 2^%d, %.0f bits asked for, %s, word %s, degree %d, %d doublings, head %d, %zu "
      "ciphertexts\n",
      log_n, precision, raise_first ? "raise_first" : "slots_first",
      std::string(word_name(params->word())).c_str(), b.degree, b.doublings, b.head_bits, batch);
  std::printf("%-24s %10s %10s\n", "after", "measured", "predicted");
  const auto y = bootstrapper.apply(x, -1, bootstrap::Done(shown));
  const auto got = evaluator->encoder().decode(decryptor.decrypt(y));
  std::vector<double> error;
  for (std::size_t j = 0; j < v.size(); ++j) {
    error.push_back(got[j].real() - v[j].real());
    error.push_back(got[j].imag() - v[j].imag());
  }
  show("result", rms(error), std::exp2(-evaluator->noise().precision_bits(y.estimate, y.scale)));
  std::printf("%-24s %10s %10.2f\n", "of which the sine", "",
              -std::log2(bootstrapper.plan().sine_error(0.82, 1.0, false) / std::sqrt(2.0)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int log_n = 12;
  double precision = 22;
  std::size_t batch = 4;
  auto order = params::BootstrapOrder::slots_first;
  std::optional<Word> word;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--log-n") {
      log_n = std::atoi(argv[i + 1]);
    } else if (option == "--precision") {
      precision = std::atof(argv[i + 1]);
    } else if (option == "--batch") {
      batch = std::strtoul(argv[i + 1], nullptr, 10);
    } else if (option == "--order" && std::string(argv[i + 1]) == "raise_first") {
      order = params::BootstrapOrder::raise_first;
    } else if (option == "--word" && std::string(argv[i + 1]) == "w32") {
      word = Word::w32;
    } else {
      std::fprintf(stderr, "unknown option %s\n", argv[i]);
      return 2;
    }
  }
  try {
    return run(log_n, precision, batch, order, word);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
