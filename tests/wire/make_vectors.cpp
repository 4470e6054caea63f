// make_vectors FOLDER writes the objects of vectors/v1, from fixed seeds. It is run once for each
// version of the format. The files are kept for ever and never written again.
#include <fstream>
#include <string>

#include "objects.h"

int main(int argc, char** argv) {
  using namespace jali;
  const std::string folder = argc > 1 ? argv[1] : ".";
  const testing::Objects o(testing::small_literal(Word::w52, 30, 0), {1}, /*conjugate=*/false);
  for (const auto& loader : testing::all_loaders(o)) {
    if (loader.name == "plaintext" || loader.name.ends_with("_stream") ||
        loader.name == "ciphertext_product")
      continue;  // batches of 2
    std::ofstream out(folder + "/" + loader.name + ".jali", std::ios::binary);
    out.write(reinterpret_cast<const char*>(loader.valid.data()),
              static_cast<std::streamsize>(loader.valid.size()));
  }
  const auto write = [&](const std::string& name, const wire::Bytes& bytes) {
    std::ofstream out(folder + "/" + name + ".jali", std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  };
  write("plaintext", wire::to_bytes(o.plaintext(0, 1, 4)));
  // At scale 2^60 it does not fit level 0, so that nothing may be claimed of its factors.
  const ckks::Evaluator unchecked(o.params, *o.evaluator, /*checks_range=*/false);
  auto unclaimed = o.ciphertext(0);
  unclaimed.estimate.peak = unclaimed.estimate.error = unclaimed.estimate.noise = 0;
  write("ciphertext_product", wire::to_bytes(unchecked.square(unclaimed)));
  for (const Word word : {Word::w32, Word::w64}) {
    const testing::Objects other(testing::small_literal(word, 40, 0), {}, false);
    const std::string suffix = std::string("_") + std::string(word_name(word));
    write("params" + suffix, wire::to_bytes(*other.params));
    write("ciphertext_fresh" + suffix, wire::to_bytes(other.ciphertext(0)));
  }
  return 0;
}
