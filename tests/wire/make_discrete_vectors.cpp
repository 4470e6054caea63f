// make_discrete_vectors FOLDER writes the objects of exact integers in vectors/v1, from fixed
// seeds. It is run once for each version of the format. The files are kept for ever and never
// written again.
#include <fstream>
#include <string>

#include "discrete_objects.h"

int main(int argc, char** argv) {
  using namespace jali;
  using discrete::Packing;
  const std::string folder = argc > 1 ? argv[1] : ".";
  const auto write = [&](const std::string& name, const auto& bytes) {
    std::ofstream out(folder + "/" + name + ".jali", std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  };
  const testing::DiscreteObjects slots(testing::discrete_literal(Word::w52, Packing::slots));
  for (const auto& loader : testing::all_loaders(slots)) write(loader.name, loader.valid);
  write("discrete_secret_key", wire::secret_to_bytes(*slots.sk, *slots.ring));
  write("discrete_public_key", wire::to_bytes(slots.public_key));
  write("discrete_evaluation_keys", wire::to_bytes(*slots.keys));
  const testing::DiscreteObjects coefficients(
      testing::discrete_literal(Word::w64, Packing::coefficients));
  write("discrete_params_coefficients", wire::to_bytes(*coefficients.params));
  write("discrete_ciphertext_coefficients", wire::to_bytes(coefficients.fresh()));
  write("discrete_secret_key_coefficients",
        wire::secret_to_bytes(*coefficients.sk, *coefficients.ring));
  return 0;
}
