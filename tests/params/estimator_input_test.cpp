// tools/estimator/presets.json lists the keys that the presets hand out. It is input for a job that
// runs elsewhere, so this test compares it with the presets.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "jali/params/ckks/presets.h"
#include "jali/params/discrete/presets.h"

namespace jali::params {
namespace {

std::string list(std::span<const std::uint64_t> values) {
  std::string out = "[";
  for (std::uint64_t v : values) out += (out.size() > 1 ? ", " : "") + std::to_string(v);
  return out + "]";
}

std::string entry(std::string_view name, std::size_t n, std::string_view secret,
                  std::span<const std::uint64_t> q, std::span<const std::uint64_t> p) {
  return "  {\"name\": \"" + std::string(name) + "\",\n   \"n\": " + std::to_string(n) +
         ", \"security\": 128,\n   \"secret\": \"" + std::string(secret) +
         "\", \"error_variance\": 10.5,\n   \"q\": " + list(q) + ",\n   \"p\": " + list(p) + "}";
}

// The primes with these indices.
std::vector<std::uint64_t> primes_at(const ckks::Params& p, std::span<const PrimeIndex> indices) {
  std::vector<std::uint64_t> out;
  for (PrimeIndex i : indices) out.push_back(p.primes()[i]);
  return out;
}

std::string describe() {
  std::string out = "[\n";
  std::vector<std::string> entries;
  const auto labelled = [](std::string name, std::optional<Word> word) {
    return word ? name.append(" ").append(word_name(*word)) : name;
  };
  const auto add = [&](std::string name, std::optional<Word> word = {}) {
    const auto p = ckks::Params::create(preset(name, word));
    name = labelled(name, word);
    entries.push_back(entry(name, p->n(), "uniform ternary", p->primes().first(p->q_count()),
                            p->primes().subspan(p->q_count())));
    if (!p->bootstrap()) return;
    // The key to the sparse secret of bootstrapping, at a modulus of its own.
    entries.push_back(entry(
        name + " sparse", p->n(), "ternary of weight " + std::to_string(p->bootstrap()->weight),
        primes_at(*p, p->level(0).primes), primes_at(*p, p->sparse_p_primes())));
  };
  for (const Preset& p : presets()) add(std::string(p.name));
  for (const BootstrapPreset& p : bootstrap_presets()) {
    add(std::string(p.name));
    add(std::string(p.name), Word::w32);
  }
  for (const discrete::Preset& preset : discrete::presets()) {
    for (const std::optional<Word> word : {std::optional<Word>{}, std::optional(Word::w32)}) {
      if (word && preset.name == "f65537_d18") continue;  // too deep for that word
      const auto p = discrete::Params::create(discrete::preset(preset.name, word));
      const auto primes = p->primes();  // those of T and of the conversions are in no key
      entries.push_back(entry(labelled(std::string(preset.name), word), p->n(), "uniform ternary",
                              primes.first(p->q_count()),
                              primes.subspan(p->q_count(), p->p_count())));
    }
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    out += entries[i] + (i + 1 < entries.size() ? ",\n" : "\n");
  }
  return out + "]\n";
}

TEST(EstimatorInput, IsWhatThePresetsMake) {
  std::ifstream file(JALI_ESTIMATOR_INPUT);
  std::stringstream held;
  held << file.rdbuf();
  EXPECT_EQ(held.str(), describe()) << "write the second into tools/estimator/presets.json";
}

}  // namespace
}  // namespace jali::params
