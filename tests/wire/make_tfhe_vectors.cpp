// make_tfhe_vectors FOLDER writes the objects of TFHE in vectors/v1, from fixed seeds. It is run
// once for each version of the format. The files are kept for ever and never written again.
#include <fstream>
#include <string>

#include "tfhe_objects.h"

int main(int argc, char** argv) {
  using namespace jali;
  const std::string folder = argc > 1 ? argv[1] : ".";
  const testing::TfheObjects objects(
      testing::tfhe_literal(tfhe::Torus::t32, tfhe::Order::switch_first, tfhe::Rotation::classic));
  for (const auto& loader : testing::all_loaders(objects)) {
    if (loader.name.ends_with("_stream") || loader.name.ends_with("_packing")) continue;
    std::ofstream out(folder + "/" + loader.name + ".jali", std::ios::binary);
    out.write(reinterpret_cast<const char*>(loader.valid.data()),
              static_cast<std::streamsize>(loader.valid.size()));
  }
  return 0;
}
