// A preset is read from the table [request] of src/jali/params/presets/NAME.toml. The other figures
// of that file and the table of docs/bootstrapping.md are for readers; they are compared here with
// the parameters that the request gives.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "jali/bootstrap/bootstrapper.h"
#include "jali/bootstrap/failure.h"
#include "jali/params/ckks/presets.h"

namespace jali::bootstrap {
namespace {

using params::BootstrapPreset;

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// The figures of a preset on one word.
struct Facts {
  ckks::ParamsPtr params;
  params::BootstrapLiteral circuit;
  double log_failure, log_sparse;
  struct Keys {
    std::size_t rotations, bytes, expanded;
  } full, fewest;

  Facts(const BootstrapPreset& preset, Word word)
      : params(ckks::Params::create(params::preset(preset.name, word))),
        circuit(*params->bootstrap()),
        log_failure(params::log2_bootstrap_failure(circuit.weight, circuit.range, params->n())),
        log_sparse(params->level(0).log_q),
        full(keys(/*minimum=*/false)),
        fewest(keys(/*minimum=*/true)) {
    for (const PrimeIndex i : params->sparse_p_primes()) {
      log_sparse += std::log2(static_cast<double>(params->primes()[i]));
    }
  }

  Keys keys(bool minimum) const {
    std::vector<BootstrapPlan> plans;
    plans.emplace_back(params, BootstrapperOptions{-1, /*real=*/false, minimum});
    return {plans[0].rotations().size(), key_bytes(*params, plans),
            expanded_key_bytes(*params, plans)};
  }
};

// The errors of a slot that rare integers cause, each with its probability.
std::string beyond(const ckks::Params& params) {
  std::string out;
  for (const int bits : {4, 8, 12, 16, 20}) {
    const double log = log2_beyond(params, std::exp2(-bits));
    out += (out.empty() ? "" : ", ") + ("\"2^-" + std::to_string(bits)) +
           "\" = " + (log <= -1e5 ? "-inf" : fixed(log, 1));
  }
  return "log2_beyond = {" + out + "}\n";
}

std::string section(const Facts& f) {
  std::ostringstream out;
  out << "\n[" << word_name(f.params->word()) << "]\n"
      << "log_qp = " << fixed(f.params->log_qp(), 1) << "\n"
      << "limbs = " << f.params->q_count() << "\n"
      << "special_primes = " << f.params->p_count() << "\n"
      << "digits = " << f.params->dnum() << "\n"
      << "sparse_weight = " << f.circuit.weight << "  # h\n"
      << "sparse_log_q0p = " << fixed(f.log_sparse, 1) << "  # log2 of the modulus of its key\n"
      << "range = " << f.circuit.range << "  # K\n"
      << "log2_failure = " << fixed(f.log_failure, 1) << "\n"
      << beyond(*f.params) << "degree = " << f.circuit.degree << "\n"
      << "doublings = " << f.circuit.doublings << "\n"
      << "inverse_sine = " << f.circuit.inverse_sine << "\n"
      << "levels = {coefficients_to_slots = " << f.circuit.cts_levels
      << ", reduction = " << f.circuit.mod_levels()
      << ", slots_to_coefficients = " << f.circuit.stc_levels << "}\n";
  for (const auto& [name, keys] : {std::pair{"keys", f.full}, {"fewest_keys", f.fewest}}) {
    out << name << " = {rotations = " << keys.rotations << ", bytes = " << keys.bytes
        << ", expanded_bytes = " << keys.expanded << "}\n";
  }
  return out.str();
}

std::string file_of(const BootstrapPreset& p, const Facts& w32, const Facts& w52) {
  const bool first = p.order == params::BootstrapOrder::slots_first;
  std::ostringstream out;
  out << "# The preset " << p.name
      << ". The build reads [request] and, for each word, limbs, special_primes and digits. "
         "tests/bootstrap\n"
         "# compares every line with what the request makes.\n"
      << "[request]\n"
      << "purpose = \"" << p.purpose << "\"\n"
      << "log_n = " << p.log_n << "\n"
      << "order = \"" << (first ? "slots_first" : "raise_first") << "\"\n"
      << "precision_bits = " << p.precision_bits << "\n"
      << "levels_after = " << p.levels_after << "\n";
  if (p.scale_bits > 0) out << "scale_bits = " << p.scale_bits << "\n";
  if (p.word) out << "word = \"" << word_name(*p.word) << "\"\n";
  out << "\n[made]\n"
      << "security = " << w52.params->security() << "\n"
      << "scale_bits = " << fixed(w52.params->scale_bits(), 2) << "\n"
      << "from_level = " << w52.circuit.input_level() << "\n"
      << "# failure bounds the probability that a coefficient of a raised ciphertext leaves [-K, "
         "K]. "
         "log2_failure is its log2.\n"
      << "# log2_beyond is log2 of a bound on the probability that the reduction is off by more "
         "than "
         "the given error in some slot,\n"
         "# because it is less exact for rare integers. -inf: this never happens. 0: it is usual.\n"
      << "failure = \"2 N min_t exp(-t K) (sinh(t/2) / (t/2))^(h+1)\"\n"
      << section(w32) << section(w52);
  return out.str();
}

std::string row_of(const BootstrapPreset& p, const Facts& f) {
  const auto gb = [](std::size_t bytes) { return fixed(static_cast<double>(bytes) / 1e9, 2); };
  std::ostringstream out;
  out << "| `" << p.name << "` | " << word_name(f.params->word()) << " | "
      << fixed(p.precision_bits, 0) << " | " << p.levels_after << " | "
      << fixed(f.params->log_qp(), 1) << " | " << fixed(f.log_sparse, 1) << " | 2^"
      << fixed(f.log_failure, 0) << " | " << gb(f.full.bytes) << " (" << f.full.rotations << ") | "
      << gb(f.fewest.bytes) << " (" << f.fewest.rotations << ") |\n";
  return out.str();
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream held;
  held << file.rdbuf();
  return held.str();
}

TEST(PresetFacts, FilesAndTableSayWhatThePresetsMake) {
  const std::string document = read(JALI_SOURCE "/docs/bootstrapping.md");
  std::string table;
  for (const BootstrapPreset& p : params::bootstrap_presets()) {
    const Facts w32(p, Word::w32), w52(p, Word::w52);
    EXPECT_EQ(w32.params->security(), w52.params->security());
    EXPECT_EQ(w32.params->scale_bits(), w52.params->scale_bits());
    for (const Facts* f : {&w32, &w52}) {
      EXPECT_EQ(f->circuit.order, p.order);
      EXPECT_EQ(f->params->log_n(), p.log_n);
      EXPECT_EQ(f->params->depth() - f->circuit.input_level(), p.levels_after);
      EXPECT_GE(f->params->security(), 128);
    }
    const std::string name = std::string(p.name) + ".toml", made = file_of(p, w32, w52);
    const bool same = read(JALI_SOURCE "/src/jali/params/presets/" + name) == made;
    if (!same) std::ofstream(name) << made;
    EXPECT_TRUE(same) << "src/jali/params/presets/" << name
                      << " is another; what it should be is now here, as " << name;
    table += row_of(p, w32) + row_of(p, w52);
  }
  EXPECT_NE(document.find("\n|---|---|---|---|---|---|---|---|---|\n" + table + "\n"),
            std::string::npos)
      << "write this into docs/bootstrapping.md:\n"
      << table;
}

}  // namespace
}  // namespace jali::bootstrap
