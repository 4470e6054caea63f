// Prints presets/tfhe.toml. Usage: tfhe_search COST_TOML > src/jali/params/presets/tfhe.toml
#include <cstdio>
#include <exception>

#include "search.h"

int main(int argc, char** argv) {
  try {
    std::fputs(
        jali::tfhe::toml(jali::tfhe::read_cost_model(argc > 1 ? argv[1] : "cost.toml")).c_str(),
        stdout);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
