// Sums and products of encrypted integers of 64 bits: the time of one, the throughput of vectors,
// and the host's share.
//   bench_integers [--device cpu|cuda] [--preset NAME] [--threads T] [--batches 1,16,128,1024]
//   [--seconds S] [--bits 64]
//     [--commit HASH]
// For each operation and batch it prints one JSON object: the median, smallest and largest time of
// a call, and what a call looks up. All results of the last call are decrypted; "wrong" counts
// those that differ, and the exit status is 1 if one does. "host" objects tell the time that the
// host takes for a wave of look-ups on a machine that does nothing.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/cpp/json.h"
#include "jali/backend/tfhe_resolve.h"
#include "jali/base/error.h"
#include "jali/integers/arithmetic.h"
#include "jali/integers/tfhe_machine.h"
#include "jali/params/tfhe_presets.h"
#include "jali/schemes/tfhe/secret/client.h"

namespace {

using namespace jali;
using namespace jali::integers;
using bench::Json;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string device = "cpu", preset = "message_2_carry_2", commit = "unknown";
  int threads = 1, bits = 64;
  double seconds = 3;
  std::vector<std::size_t> batches = {1, 16, 128, 1024};
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Digits of nothing, on which nothing is done.
class IdleRows final : public Rows {
 public:
  explicit IdleRows(std::size_t count) : count_(count) {}
  std::size_t count() const override { return count_; }

 private:
  std::size_t count_;
};
class IdleMachine final : public Machine {
 public:
  explicit IdleMachine(const Space& space) : space_(space) {}
  const Space& space() const override { return space_; }
  std::size_t available_rows() const override { return std::size_t{1} << 30; }
  std::unique_ptr<Rows> allocate(std::size_t count) const override {
    return std::make_unique<IdleRows>(count);
  }
  void copy(Rows&, std::size_t, const Rows&, std::size_t, std::size_t) const override {}
  void combine(Rows&, std::size_t, const Rows&, const RowCombination&) const override {}
  void look_up(Rows&, std::size_t, const Rows&, const RowLookUps&) const override {}

 private:
  const Space space_;
};

Integers computed(const Arithmetic& a, bool product, const Integers& x, const Integers& y) {
  return product ? a.multiply(x, y) : a.add(x, y);
}

/// Times of calls, of which the first ones are not counted.
template <class Call>
std::vector<double> times(double seconds, const Call& call) {
  for (int i = 0; i < 3; ++i) call();
  std::vector<double> out;
  const auto start = Clock::now();
  do {
    const auto begin = Clock::now();
    call();
    out.push_back(seconds_since(begin));
  } while (out.size() < 3 || seconds_since(start) < seconds);
  std::ranges::sort(out);
  return out;
}

Json described(const Options& options, bool product, std::size_t batch,
               const Arithmetic::Cost& cost) {
  Json out;
  out.set("bench", "integers").set("operation", product ? "multiply" : "add");
  out.set("bits", options.bits).set("batch", batch).set("preset", options.preset);
  out.set("look_ups", cost.look_ups).set("waves", cost.depth);
  return out;
}

std::size_t measure(const Options& options) {
  const auto params = tfhe::Params::create(tfhe::preset(options.preset));
  tfhe::Client client(params, options.threads);
  const std::shared_ptr<const backend::TfheOps> engine =
      backend::make_tfhe_engine(params->config(options.threads), options.device);
  const auto evaluator = std::make_shared<const tfhe::Evaluator>(engine, client.evaluation_keys());
  const auto machine = std::make_shared<const TfheMachine>(evaluator);
  const Arithmetic arithmetic(machine);
  const Arithmetic idle(std::make_shared<const IdleMachine>(machine->space()));
  const IntegerType type{options.bits, false};
  const int m = params->message_bits();
  const auto n = static_cast<std::size_t>(type.digits(m));
  const std::uint64_t mask =
      options.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << options.bits) - 1;
  std::mt19937_64 rng(std::random_device{}());

  std::size_t wrong_in_all = 0;
  for (const std::size_t batch : options.batches) {
    // A batch repeats its first numbers, with other partners.
    const std::size_t fresh = std::min<std::size_t>(batch, 61);
    std::vector<std::uint64_t> numbers[2];
    std::vector<Integers> operands;
    for (int side = 0; side < 2; ++side) {
      std::vector<std::uint64_t> digits;
      std::vector<std::uint8_t> of_one(n);
      std::vector<std::uint64_t> own;
      for (std::size_t i = 0; i < fresh; ++i) {
        own.push_back(rng() & mask);
        split(static_cast<Wide>(own.back()), type, m, of_one);
        digits.insert(digits.end(), of_one.begin(), of_one.end());
      }
      const Integers encrypted(type, fresh,
                               TfheMachine::rows_of(evaluator->bind(client.encrypt(digits))));
      std::vector<std::size_t> indices;
      for (std::size_t i = 0; i < batch; ++i) {
        indices.push_back((i + (side ? i / fresh : 0)) % fresh);
        numbers[side].push_back(own[indices.back()]);
      }
      operands.push_back(arithmetic.take(encrypted, indices));
    }
    for (const bool product : {false, true}) {
      const Integers &x = operands[0], &y = operands[1];
      const auto cost =
          arithmetic.cost_of([&](const Arithmetic& a) { computed(a, product, x, y); });
      Integers result = computed(arithmetic, product, x, y);
      const auto took = times(options.seconds, [&] {
        result = computed(arithmetic, product, x, y);
        engine->device()->memory()->synchronize();
      });
      const tfhe::Ciphertext ciphertext =
          machine->ciphertext(result.rows(), largest_digits(type, m));
      const auto digits = client.decrypt(evaluator->host_copy(ciphertext));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < batch; ++i) {
        const std::vector<std::uint8_t> of_one(
            digits.begin() + static_cast<std::ptrdiff_t>(i * n),
            digits.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
        const std::uint64_t u = numbers[0][i], v = numbers[1][i];
        wrong += static_cast<std::uint64_t>(joined(of_one, type, m)) !=
                 ((product ? u * v : u + v) & mask);
      }
      wrong_in_all += wrong;
      const double median = took[took.size() / 2];
      described(options, product, batch, cost)
          .set("ms", median * 1e3)
          .set("smallest_ms", took.front() * 1e3)
          .set("largest_ms", took.back() * 1e3)
          .set("per_second", static_cast<double>(batch) / median)
          .set("look_ups_per_second", static_cast<double>(cost.look_ups) / median)
          .set("wrong", wrong)
          .set("recorded", machine->recorded())
          .set("engine", engine->name())
          .set("threads", options.threads)
          .set("width", machine->space().wave)
          .set("commit", options.commit)
          .print();

      const Integers nothing(type, batch, std::make_shared<const IdleRows>(batch * n));
      const auto host = times(0.1, [&] { computed(idle, product, nothing, nothing); });
      described(options, product, batch, cost)
          .set("what", "host")
          .set("us_a_wave", host[host.size() / 2] * 1e6 / static_cast<double>(cost.depth))
          .set("commit", options.commit)
          .print();
    }
  }
  return wrong_in_all;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--device")
      options.device = value;
    else if (name == "--preset")
      options.preset = value;
    else if (name == "--commit")
      options.commit = value;
    else if (name == "--threads")
      options.threads = std::stoi(value);
    else if (name == "--bits")
      options.bits = std::stoi(value);
    else if (name == "--seconds")
      options.seconds = std::stod(value);
    else if (name == "--batches") {
      options.batches.clear();
      for (std::size_t at = 0; at < value.size();) {
        const std::size_t end = std::min(value.find(',', at), value.size());
        options.batches.push_back(std::stoul(value.substr(at, end - at)));
        at = end + 1;
      }
    } else {
      std::fprintf(stderr, "there is no option %s; the first lines of the source list them\n",
                   argv[i]);
      return 2;
    }
  }
  try {
    return measure(options) == 0 ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
