// Prints presets/tfhe.toml, or, with --compare, every preset beside what the search would choose
// today. Usage: tfhe_search COST_TOML [--compare] > src/jali/params/presets/tfhe.toml
#include <cstdio>
#include <cstring>
#include <exception>

#include "search.h"

int main(int argc, char** argv) {
  try {
    const jali::tfhe::CostModel model =
        jali::tfhe::read_cost_model(argc > 1 ? argv[1] : "cost.toml");
    const bool compare = argc > 2 && std::strcmp(argv[2], "--compare") == 0;
    std::fputs((compare ? jali::tfhe::compared(model) : jali::tfhe::toml(model)).c_str(), stdout);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
