#include "jali/backend/tfhe_config.h"

#include <algorithm>
#include <bit>
#include <string>

#include "jali/backend/config.h"
#include "jali/base/error.h"

namespace jali::backend {

namespace {

constexpr std::size_t kMaxLwe = std::size_t{1} << 16;
constexpr std::size_t kMaxGlwe = 16;
constexpr std::size_t kMaxPolynomial = std::size_t{1} << 16;

void check_gadget(const char* name, const Gadget& gadget, int bits) {
  const std::string its = std::string("the ") + name + " gadget";
  require<InvalidArgument>(gadget.base_log >= 1 && gadget.base_log <= 31, [&] {
    return its + "'s base_log must be from 1 to 31, not " + std::to_string(gadget.base_log);
  });
  require<InvalidArgument>(gadget.levels >= 1 && gadget.levels <= bits / gadget.base_log, [&] {
    return its + " has " + std::to_string(gadget.levels) + " levels of " +
           std::to_string(gadget.base_log) + " bits: choose at least 1 level, and at most the " +
           std::to_string(bits) + " bits of the key's words in all";
  });
}

void check_rotation(const TfheConfig& config) {
  const auto group = [&](const char* kind, int least, int most) {
    require<InvalidArgument>(config.group >= least && config.group <= most, [&] {
      return std::string(kind) + " takes a group of " + std::to_string(least) +
             (least == most ? " bit" : " to " + std::to_string(most) + " bits") + ", not " +
             std::to_string(config.group);
    });
  };
  switch (config.rotation) {
    case Rotation::classic: group("the classic rotation", 1, 1); break;
    case Rotation::multi_bit: group("the multi-bit rotation", 2, 4); break;
    case Rotation::block_binary: group("the block-binary rotation", 2, 8); break;
    default:
      throw InvalidArgument("the rotation must be classic, multi_bit or block_binary, not " +
                            std::to_string(static_cast<int>(config.rotation)));
  }
  require<InvalidArgument>(config.n.value % static_cast<std::size_t>(config.group) == 0, [&] {
    return "the LWE dimension n must be a multiple of the group's " + std::to_string(config.group) +
           " bits, not " + std::to_string(config.n.value);
  });
}

void check_name(const char* what, const std::string& name,
                std::initializer_list<const char*> names) {
  if (name.empty() || std::ranges::find(names, name) != names.end()) return;
  std::string all;
  for (const char* known : names) all += std::string("\"") + known + "\", ";
  throw InvalidArgument(std::string(what) + " must be " + all + "or \"\" for the best, not \"" +
                        name + "\"");
}

}  // namespace

TfheConfig validated(TfheConfig config) {
  require<InvalidArgument>(config.torus == Torus::t32 || config.torus == Torus::t64, [&] {
    return "the torus must have 32 or 64 bits, not " + std::to_string(torus_bits(config.torus));
  });
  require<InvalidArgument>(config.n.value >= 1 && config.n.value <= kMaxLwe, [&] {
    return "the LWE dimension n must be from 1 to " + std::to_string(kMaxLwe) + ", not " +
           std::to_string(config.n.value);
  });
  require<InvalidArgument>(config.k.value >= 1 && config.k.value <= kMaxGlwe, [&] {
    return "the GLWE dimension k must be from 1 to " + std::to_string(kMaxGlwe) + ", not " +
           std::to_string(config.k.value);
  });
  require<InvalidArgument>(std::has_single_bit(config.N.value) && config.N.value >= 256 &&
                               config.N.value <= kMaxPolynomial,
                           [&] {
                             return "the polynomial size N must be a power of two from 2^8 to "
                                    "2^16, not " +
                                    std::to_string(config.N.value);
                           });
  check_gadget("rotation", config.rotation_gadget, torus_bits(config.torus));
  check_gadget("switch", config.switch_gadget, 32);
  check_rotation(config);
  require<InvalidArgument>(config.mean_bit >= 0 && config.mean_bit <= 1, [&] {
    return "the mean of a secret bit must be from 0 to 1, not " + std::to_string(config.mean_bit);
  });
  check_threads(config.threads);
  check_name("isa", config.isa, {"portable", "avx2", "avx512"});
  check_name("transform", config.transform, {"fft", "ntt"});
  return config;
}

}  // namespace jali::backend
