// Runs random programs on ciphertexts and, in long double, on the plain numbers. Tests compare
// estimates and bounds of the error with the difference.
#pragma once

#include <complex>
#include <random>
#include <string>
#include <vector>

#include "fixture.h"
#include "jali/schemes/ckks/bounds.h"
#include "jali/schemes/ckks/secret/release.h"

namespace jali::testing {

using Exact = std::vector<std::complex<long double>>;

/// A vector in plain and its encryption.
struct Pair {
  ckks::Ciphertext encrypted;
  Exact exact;
};

/// What the result of one program claims, and what was measured.
struct Outcome {
  std::string steps;
  bool refused = false;  // an operation said that its result may leave the range of its level
  double bound = 0;  // worst_case_error
  double precision = 0;  // the bits that the estimate claims
  double largest_error = 0;
  double measured = 0;  // the bits of the root mean square error of real and imaginary parts
  double magnitude = 0;  // the largest number of the result
};

/// Draws numbers of many kinds, declares them truthfully, and applies a few random operations.
class RandomPrograms {
 public:
  RandomPrograms(World& world, std::uint64_t seed) : world_(world), random_(seed) {}

  Outcome run() {
    steps_.clear();
    std::vector<Pair> values;
    const int inputs = pick(1, 3);
    for (int i = 0; i < inputs; ++i) values.push_back(input());
    const int operations = pick(1, 12);
    try {
      for (int i = 0; i < operations; ++i) values.push_back(operation(values));
      return outcome(values.back());
    } catch (const RangeExceeded&) {
      Outcome out;
      out.steps = steps_;
      out.refused = true;
      return out;
    }
  }

 private:
  using Complex64 = std::complex<long double>;

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  void say(const std::string& step) { steps_ += step + "; "; }
  template <class F>
  Exact each(const Exact& a, F f) {
    Exact out(a.size());
    for (std::size_t j = 0; j < a.size(); ++j) out[j] = f(a[j], j);
    return out;
  }

  Pair input() {
    const std::size_t slots = world_.params->slots();
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(-1, 1);
    std::vector<Complex> v(slots);
    const int kind = pick(0, 5);
    // A quarter is far larger than what products of it leave room for.
    const double size = std::exp2(pick(0, 3) == 0 ? pick(3, 14) : pick(-5, 2));
    double rms = 1, peak = 0;
    const double one = uniform(random_) < 0 ? -1 : 1;
    for (Complex& z : v) {
      switch (kind) {
        case 0:  // normal: one of 512 slots exceeds 8 standard deviations with probability 2^-40
          z = normal(random_);
          break;
        case 1: z = uniform(random_), rms = std::sqrt(1.0 / 3), peak = 1; break;
        case 2:  // all equal
          z = one, peak = 1;
          break;
        case 3:
          z = {uniform(random_), uniform(random_)}, rms = std::sqrt(2.0 / 3), peak = std::sqrt(2.0);
          break;
        case 4:  // signs
          z = uniform(random_) < 0 ? -1 : 1, peak = 1;
          break;
        default:  // all positive
          z = std::fabs(uniform(random_)), rms = std::sqrt(1.0 / 3), peak = 1;
      }
    }
    for (Complex& z : v) z *= size;
    // Half of the inputs declare no peak, which stands for 8 times the magnitude.
    const bool usual = peak == 0 || pick(0, 1) == 0;
    const params::Declared declared =
        usual ? params::Declared(rms * size) : params::Declared(rms * size, peak * size);
    say("input " + std::to_string(kind) + " x " + std::to_string(size) + (usual ? "" : " peak"));
    const int level = world_.params->depth();
    Exact exact(v.begin(), v.end());
    return {world_.encryptor->encrypt(
                world_.encoder().encode(v, 1, level, world_.params->scale(level)), declared),
            exact};
  }

  /// The levels that are left after the pending relinearisation and rescaling.
  int levels_left(const Pair& a) { return world_.automatic->effective_level(a.encrypted); }

  Pair operation(const std::vector<Pair>& values) {
    const auto& ev = *world_.automatic;
    // Three times out of four the first operand is the newest value, so that programs become deep.
    const int newest = static_cast<int>(values.size()) - 1;
    const auto index = static_cast<std::size_t>(pick(0, 3) == 0 ? pick(0, newest) : newest);
    const auto other = static_cast<std::size_t>(pick(0, static_cast<int>(values.size()) - 1));
    const Pair &a = values[index], &b = values[other];
    std::uniform_real_distribution<double> uniform(-2, 2);
    const std::string names = std::to_string(index) + " " + std::to_string(other);
    const bool deep = levels_left(a) > 0 && levels_left(b) > 0;
    switch (pick(0, 13)) {
      case 0:
      case 1:
        say("add " + names);
        return {ev.add(a.encrypted, b.encrypted),
                each(a.exact, [&](auto z, std::size_t j) { return z + b.exact[j]; })};
      case 2:
        say("sub " + names);
        return {ev.sub(a.encrypted, b.encrypted),
                each(a.exact, [&](auto z, std::size_t j) { return z - b.exact[j]; })};
      case 3:
      case 4:
        if (!deep) break;
        say("mul " + names);
        return {ev.normalise(ev.multiply(a.encrypted, b.encrypted)),
                each(a.exact, [&](auto z, std::size_t j) { return z * b.exact[j]; })};
      case 12: {  // a sum of a value's rotations, in which equal numbers add up
        static constexpr int kDoubling[] = {1, 2, 4, 8};
        Pair sum{world_.evaluator->copy(ev.normalise(a.encrypted)), a.exact};
        const int terms = pick(1, 4);
        say("sum of rotations " + std::to_string(index) + " " + std::to_string(terms));
        for (int t = 0; t < terms; ++t) {
          const auto k = static_cast<std::size_t>(kDoubling[t]);
          sum.encrypted = ev.add(sum.encrypted, ev.rotate(sum.encrypted, static_cast<int>(k)));
          const Exact before = sum.exact;
          sum.exact = each(
              before, [&](auto z, std::size_t j) { return z + before[(j + k) % before.size()]; });
        }
        return sum;
      }
      case 13: {  // a power, by repeated squaring
        if (levels_left(a) < 2) break;
        const int squares = pick(2, levels_left(a));
        say("power " + std::to_string(index) + " by squares " + std::to_string(squares));
        Pair power{ev.normalise(a.encrypted), a.exact};
        for (int t = 0; t < squares; ++t) {
          power.encrypted = ev.normalise(ev.square(power.encrypted));
          power.exact = each(power.exact, [](auto z, std::size_t) { return z * z; });
        }
        return power;
      }
      case 5:
        if (levels_left(a) == 0) break;
        say("square " + std::to_string(index));
        return {ev.normalise(ev.square(a.encrypted)),
                each(a.exact, [](auto z, std::size_t) { return z * z; })};
      case 6: {
        static constexpr int kSteps[] = {1, 2, 4, 8, -3, 17};
        const int k = kSteps[pick(0, 5)];
        say("rotate " + std::to_string(index) + " by " + std::to_string(k));
        const std::size_t n = a.exact.size();
        return {ev.rotate(a.encrypted, k), each(a.exact, [&](auto, std::size_t j) {
                  return a.exact[(j + n + static_cast<std::size_t>(k + static_cast<int>(n))) % n];
                })};
      }
      case 7:
        say("conjugate " + std::to_string(index));
        return {ev.conjugate(a.encrypted),
                each(a.exact, [](auto z, std::size_t) { return std::conj(z); })};
      case 8: {
        if (levels_left(a) == 0) break;
        const double c = uniform(random_);
        say("times number " + std::to_string(index));
        return {
            ev.normalise(ev.multiply_scalar(a.encrypted, c)),
            each(a.exact, [&](auto z, std::size_t) { return z * static_cast<long double>(c); })};
      }
      case 9: {
        const double c = uniform(random_);
        say("plus number " + std::to_string(index));
        return {ev.add_scalar(a.encrypted, c), each(a.exact, [&](auto z, std::size_t) {
                  return z + static_cast<long double>(c);
                })};
      }
      case 10: {
        if (levels_left(a) == 0) break;
        std::vector<Complex> v(a.exact.size());
        for (Complex& z : v) z = uniform(random_);
        say("times vector " + std::to_string(index));
        return {ev.normalise(ev.multiply_vector(a.encrypted, v, 1)),
                each(a.exact, [&](auto z, std::size_t j) { return z * Complex64(v[j]); })};
      }
      default: {
        std::vector<Complex> v(a.exact.size());
        for (Complex& z : v) z = uniform(random_);
        const ckks::Ciphertext x = ev.normalise(a.encrypted);
        say("plus vector " + std::to_string(index));
        return {ev.add_vector(x, v, 1),
                each(a.exact, [&](auto z, std::size_t j) { return z + Complex64(v[j]); })};
      }
    }
    say("negate " + std::to_string(index));
    return {ev.negate(a.encrypted), each(a.exact, [](auto z, std::size_t) { return -z; })};
  }

  Outcome outcome(const Pair& result) {
    const ckks::Ciphertext c = world_.automatic->normalise(result.encrypted);
    const auto got = world_.decrypt(c);
    Outcome out;
    out.steps = steps_;
    out.bound = ckks::worst_case_error(c);
    out.precision = world_.evaluator->noise().precision_bits(c.estimate, c.scale);
    long double sum = 0;
    for (std::size_t j = 0; j < got.size(); ++j) {
      const auto error = std::abs(Complex64(got[j]) - result.exact[j]);
      sum += error * error;
      out.largest_error = std::max(out.largest_error, static_cast<double>(error));
      out.magnitude = std::max(out.magnitude, static_cast<double>(std::abs(result.exact[j])));
    }
    const auto count = static_cast<long double>(got.size());
    out.measured = -std::log2(static_cast<double>(std::sqrt(sum / (2 * count))));
    return out;
  }

  World& world_;
  std::mt19937_64 random_;
  std::string steps_;
};

}  // namespace jali::testing
