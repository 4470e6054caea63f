#include "search.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "jali/base/error.h"
#include "jali/params/lwe_security.h"
#include "jali/params/tfhe_noise.h"
#include "jali/params/tfhe_presets.h"

namespace jali::tfhe {

namespace {

constexpr double kBits = 128;  // of security, and minus log2 of the probability of failure
/// Digits of a key switch fit 8 bits up to this base.
constexpr int kMostSwitchBase = 7;
/// Sums of products of digits with 8-bit parts of the key stay below 2^31.
constexpr double kMostSum = 0x1p23;
/// Kernels hold polynomials of at least 512 coefficients.
constexpr std::size_t kLeastN = 512, kMostN = 65536, kMostK = 6, kMostMask = 8192;

/// The smallest noise at which a large key of this dimension has kBits, if there is one.
std::optional<int> large_noise(std::size_t dimension, Torus torus) {
  const int bits = backend::torus_bits(torus);
  for (int noise = 0; noise <= bits - 6; ++noise) {
    if (lwe_security(1, dimension, log2_noise(noise, bits)) >= kBits) return noise;
  }
  return {};
}

struct SmallKey {
  std::size_t n;
  int noise_bits;
};

/// For each noise the smallest n, a multiple of `group`, at which a small key has kBits.
std::vector<SmallKey> small_keys(int block, int group) {
  std::vector<SmallKey> out;
  const std::size_t step = static_cast<std::size_t>(group);
  for (int noise = 4; noise <= 26; ++noise) {
    for (std::size_t n = 400 / step * step; n <= 1300; n += step) {
      // A quarter of the entropy of a block key has to reach kBits as well (docs/block-binary.md).
      const double entropy = static_cast<double>(n) / block * std::log2(block + 1);
      if (block > 1 && entropy / 4 < kBits) continue;
      if (lwe_security(block, n, log2_noise(noise, 32)) < kBits) continue;
      // A smaller n with more noise is another candidate; one with the same n is worse.
      if (out.empty() || n < out.back().n) out.push_back({n, noise});
      break;
    }
  }
  return out;
}

std::vector<Gadget> gadgets(int most_base, int most_levels, int most_bits) {
  std::vector<Gadget> out;
  for (int levels = 1; levels <= most_levels; ++levels) {
    for (int base = 1; base <= most_base && base * levels <= most_bits; ++base) {
      out.push_back({base, levels});
    }
  }
  return out;
}

/// p_fail of the mean key: less than that averaged over keys, and quick.
double quick_p_fail(const Literal& literal, double variance) {
  const double unit = 0.5 / static_cast<double>(literal.N.value);
  return log2_erfc((half_box(literal) - unit / 2) / std::sqrt(2 * variance)) - 1;
}

class Searcher {
 public:
  Searcher(const Request& request, const CostModel& model) : request_(request), model_(model) {}

  Found run() {
    for (const Torus torus : request_.tori) {
      for (const Order order : request_.orders) {
        for (const int group : request_.groups) with(torus, order, group);
      }
    }
    require<InvalidArgument>(found_.has_value(), [&] {
      return "no parameters for " + request_.name +
             " are secure and precise enough: ask for fewer bits or a smaller norm";
    });
    return *found_;
  }

 private:
  void with(Torus torus, Order order, int group) {
    Literal literal;
    literal.name = request_.name;
    literal.torus = torus;
    literal.order = order;
    literal.rotation = request_.rotation;
    literal.group = group;
    literal.message_bits = request_.message_bits;
    literal.carry_bits = request_.carry_bits;
    literal.max_norm2 = request_.max_norm2;
    const int block = request_.rotation == Rotation::block_binary ? group : 1;
    const std::vector<SmallKey> keys = small_keys(block, group);
    const std::size_t values = std::size_t{2} << (request_.message_bits + request_.carry_bits);
    for (std::size_t N = std::max(kLeastN, values); N <= kMostN; N *= 2) {
      for (std::size_t k = 1; k <= kMostK && (k == 1 || k * N <= kMostMask); ++k) {
        literal.N = PolynomialSize(N);
        literal.k = GlweDimension(k);
        const std::optional<int> noise = large_noise(k * N, torus);
        if (!noise) continue;
        literal.glwe_noise_bits = *noise;
        for (const SmallKey& key : keys) {
          literal.n = LweDimension(key.n);
          literal.lwe_noise_bits = key.noise_bits;
          over_gadgets(literal);
        }
      }
    }
  }

  void over_gadgets(Literal& literal) {
    const double rows = static_cast<double>(literal.k.value * literal.N.value);
    const double bound = 0.999;  // of the best cost: below it the cost decides
    for (const Gadget& rotation : gadgets(30, 4, backend::torus_bits(literal.torus) - 1)) {
      literal.rotation_gadget = rotation;
      literal.switch_gadget = {1, 1};
      // The key switch makes it dearer still.
      if (found_ && seconds(literal) * bound > seconds_) continue;
      const double bootstrapped = NoiseModel(literal).blind_rotation().total();
      if (quick_p_fail(literal, literal.max_norm2 * bootstrapped) > -kBits) continue;
      for (const Gadget& gadget : gadgets(kMostSwitchBase, 12, 24)) {
        if (rows * gadget.levels * std::exp2(gadget.base_log - 1) > kMostSum) continue;
        literal.switch_gadget = gadget;
        offer(literal, bootstrapped);
      }
    }
  }

  void offer(Literal& literal, double bootstrapped) {
    const NoiseModel noise(literal);
    const double switched = noise.key_switch();
    const double variance =
        literal.max_norm2 *
            (bootstrapped + (literal.order == Order::bootstrap_first ? switched : 0)) +
        (literal.order == Order::switch_first ? switched : 0) + noise.modulus_switch();
    if (quick_p_fail(literal, variance) > -kBits) return;
    const double spent = seconds(literal);
    if (found_ && spent * 0.999 > seconds_) return;
    literal.log2_p_fail = log2_p_fail(literal);
    if (literal.log2_p_fail > -kBits) return;
    if (found_ && spent > seconds_ * 0.999 && literal.log2_p_fail >= found_->literal.log2_p_fail) {
      return;
    }
    literal.security = static_cast<int>(key_security(literal).bits());
    found_ = Found{literal, cost(model_, literal)};
    seconds_ = spent;
  }

  double seconds(const Literal& literal) const {
    const Cost all = cost(model_, literal);
    return request_.latency ? all.latency_seconds : all.throughput_seconds;
  }

  const Request& request_;
  const CostModel& model_;
  std::optional<Found> found_;
  double seconds_ = 0;
};

const char* name_of(Rotation rotation) {
  return rotation == Rotation::classic     ? "classic"
         : rotation == Rotation::multi_bit ? "multi_bit"
                                           : "block_binary";
}

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// The estimator's row for exactly this key.
const LweSecurityRow* row_of(int block, std::size_t n, int noise_bits, int modulus_bits) {
  for (const LweSecurityRow& row : lwe_security_rows()) {
    if (row.block == block && row.n == n &&
        std::fabs(log2_noise(row.noise_bits, row.modulus_bits) -
                  log2_noise(noise_bits, modulus_bits)) < 1e-6) {
      return &row;
    }
  }
  return nullptr;
}

std::string estimate(const char* key, int block, std::size_t n, int noise_bits, int modulus_bits) {
  std::string out = std::string(key) + " = {security = ";
  out += number("%.1f", lwe_security(block, n, log2_noise(noise_bits, modulus_bits)));
  if (const LweSecurityRow* row = row_of(block, n, noise_bits, modulus_bits)) {
    out += ", usvp = " + number("%.1f", row->usvp) + ", bdd = " + number("%.1f", row->bdd) +
           ", dual_hybrid = " + number("%.1f", row->dual_hybrid);
    if (row->guess_dual > 0) out += ", guess_dual = " + number("%.1f", row->guess_dual);
    if (row->guess_mitm > 0) out += ", guess_mitm = " + number("%.1f", row->guess_mitm);
  } else {
    out += ", from = \"weaker keys\"";
  }
  return out + "}\n";
}

std::string table(const Found& found, const std::string& purpose) {
  const Literal& l = found.literal;
  const ParamsPtr params = Params::create(l);
  const int block = l.rotation == Rotation::block_binary ? l.group : 1;
  const auto line = [](const char* key, double value, const char* format = "%.0f") {
    return std::string(key) + " = " + number(format, value) + "\n";
  };
  std::string out = std::string("[").append(l.name) + "]\npurpose = \"" + purpose + "\"\n";
  out += line("torus", backend::torus_bits(l.torus));
  out += line("n", static_cast<double>(l.n.value));
  out += line("k", static_cast<double>(l.k.value));
  out += line("polynomial_size", static_cast<double>(l.N.value));
  out += std::string("rotation = \"") + name_of(l.rotation) + "\"\n";
  out += line("group", l.group);
  out += line("rotation_base_log", l.rotation_gadget.base_log);
  out += line("rotation_levels", l.rotation_gadget.levels);
  out += line("switch_base_log", l.switch_gadget.base_log);
  out += line("switch_levels", l.switch_gadget.levels);
  out += line("lwe_noise_bits", l.lwe_noise_bits);
  out += line("glwe_noise_bits", l.glwe_noise_bits);
  out += line("message_bits", l.message_bits);
  out += line("carry_bits", l.carry_bits);
  out += std::string("first = \"") +
         (l.order == Order::switch_first ? "switch_first" : "bootstrap_first") + "\"\n";
  out += line("max_norm2", l.max_norm2);
  out += line("log2_p_fail", l.log2_p_fail, "%.2f");
  out += line("security", l.security);
  out += estimate("small_key", block, l.n.value, l.lwe_noise_bits, 32);
  out += estimate("large_key", 1, l.k.value * l.N.value, l.glwe_noise_bits,
                  backend::torus_bits(l.torus));
  out += line("key_bytes", static_cast<double>(params->key_bytes()));
  out += line("expanded_key_bytes", static_cast<double>(params->expanded_key_bytes()));
  out += line("ciphertext_bytes", static_cast<double>(params->ciphertext_bytes()));
  out += line("fma", found.cost.fma);
  out += line("predicted_throughput", 1 / found.cost.throughput_seconds);
  out += line("predicted_latency_microseconds", 1e6 * found.cost.latency_seconds, "%.0f");
  out += line("predicted_cpu_milliseconds", 1e3 * found.cost.cpu_seconds, "%.2f");
  return out;
}

}  // namespace

std::vector<Request> requests() {
  // (2^m + 1)^2 for equal bits of message and carry. Sums of clean values fit 2^(2m) - 1 if their
  // weights add up to at most 2^m + 1, which they do at most when all are of one ciphertext. For
  // booleans see docs/tfhe-parameters.md.
  const auto norm2 = [](int bits) { return std::pow(std::exp2(bits) + 1, 2); };
  const std::vector<Torus> any = {Torus::t32, Torus::t64};
  const std::vector<Order> either = {Order::switch_first, Order::bootstrap_first};
  const Rotation block = Rotation::block_binary;
  const std::vector<int> blocks = {2, 3};  // as in the paper: eprint 2023/958
  std::vector<Request> out;
  out.push_back({"boolean", "gates", 1, 0, 8, Rotation::classic, {1}, any, either, false});
  out.push_back({"boolean_block", "gates, with block-binary keys", 1, 0, 8, block, blocks, any,
                 either, false});
  for (int bits = 1; bits <= 4; ++bits) {
    const std::string b = std::to_string(bits);
    Request request;
    request.name = std::string("message_").append(b).append("_carry_").append(b);
    request.purpose = b + (bits == 1 ? " bit" : " bits") + " of message and as many of carry";
    request.message_bits = request.carry_bits = bits;
    request.max_norm2 = norm2(bits);
    out.push_back(request);
    if (bits > 2) continue;
    request.name += "_block";
    request.purpose += ", with block-binary keys";
    request.rotation = block;
    request.groups = blocks;
    out.push_back(request);
  }
  Request multi;
  multi.name = "message_2_carry_2_multi_bit";
  multi.purpose = "one bootstrapping at a time in the least time";
  multi.message_bits = multi.carry_bits = 2;
  multi.max_norm2 = norm2(2);
  multi.rotation = Rotation::multi_bit;
  multi.groups = {2, 3, 4};
  multi.latency = true;
  out.push_back(multi);
  return out;
}

Found search(const Request& request, const CostModel& model) {
  return Searcher(request, model).run();
}

std::vector<Comparison> comparisons(const CostModel& model) {
  std::vector<Comparison> out;
  for (const Request& request : requests()) {
    const Literal published = preset(request.name);
    out.push_back({{published, cost(model, published)}, search(request, model), request.latency});
  }
  return out;
}

std::string toml(const CostModel& model) {
  std::string out =
      "# The presets of TFHE, which tools/tfhe_search found by the noise formulas "
      "(params/tfhe_noise.h), the security table\n"
      "# (params/lwe_security.h) and the cost of operations. Only a decision changes them. The "
      "tool "
      "prints them with what\n"
      "# tools/tfhe_search/cost.toml predicts, and a test makes them again. "
      "docs/tfhe-parameters.md "
      "explains the keys. The\n"
      "# security of small_key and large_key is log2 of the cost of the attacks that follow, as "
      "the "
      "lattice-estimator has\n"
      "# them at commit " +
      std::string(kEstimatorCommit.substr(0, 7)) + ".\n";
  const auto known = [](const std::string& name) {
    return std::ranges::any_of(presets(), [&](const Preset& p) { return p.name == name; });
  };
  for (const Request& request : requests()) {
    Found found;
    if (known(request.name)) {
      found.literal = preset(request.name);
      found.cost = cost(model, found.literal);
    } else {
      found = search(request, model);
    }
    out += std::string("\n").append(table(found, request.purpose));
  }
  for (const char* name : {"strix_i", "strix_ii", "strix_iii", "strix_iv"}) {
    const Found found = search_strix(name, model);
    out += std::string("\n").append(
        table(found, std::string("the sizes of the Strix paper's set ").append(name + 6)));
  }
  return out;
}

std::string compared(const CostModel& model) {
  std::string out;
  for (const Comparison& c : comparisons(model)) {
    const Literal& l = c.best.literal;
    char line[400];
    std::snprintf(
        line, sizeof line,
        "%-28s %9.2f us in a batch, %7.0f alone, %8.2f ms on a CPU; best %9.2f, %7.0f, %8.2f, %.2f "
        "times: n %zu, k %zu, N %zu, 2^%d x %d, 2^%d x %d, log2 p %.1f\n",
        c.published.literal.name.c_str(), 1e6 * c.published.cost.throughput_seconds,
        1e6 * c.published.cost.latency_seconds, 1e3 * c.published.cost.cpu_seconds,
        1e6 * c.best.cost.throughput_seconds, 1e6 * c.best.cost.latency_seconds,
        1e3 * c.best.cost.cpu_seconds, c.ratio(), l.n.value, l.k.value, l.N.value,
        l.rotation_gadget.base_log, l.rotation_gadget.levels, l.switch_gadget.base_log,
        l.switch_gadget.levels, l.log2_p_fail);
    out += line;
  }
  return out;
}

}  // namespace jali::tfhe
