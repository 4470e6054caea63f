// tools/estimator/presets.json says what keys the presets hand out. It is data for an offline job, so it
// is held to the presets here.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "jali/params/presets.h"

namespace jali::params {
namespace {

std::string list(std::span<const std::uint64_t> values) {
  std::string out = "[";
  for (std::uint64_t v : values) out += (out.size() > 1 ? ", " : "") + std::to_string(v);
  return out + "]";
}

std::string describe() {
  std::string out = "[\n";
  for (std::size_t i = 0; i < presets().size(); ++i) {
    const auto p = CkksParams::create(preset(presets()[i].name));
    out += "  {\"name\": \"" + std::string(presets()[i].name) + "\",\n";
    out += "   \"n\": " + std::to_string(p->n()) + ", \"security\": 128,\n";
    out += "   \"secret\": \"uniform ternary\", \"error_variance\": 10.5,\n";
    out += "   \"q\": " + list(p->primes().first(p->q_count())) + ",\n";
    out += "   \"p\": " + list(p->primes().subspan(p->q_count())) + "}";
    out += i + 1 < presets().size() ? ",\n" : "\n";
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
