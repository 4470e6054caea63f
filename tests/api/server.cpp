// The program of a server. Everything arrives as bytes, is computed on, and leaves as bytes.
// server_symbols.cmake reads the symbols of this program.
#include "jali/api/server.h"

#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace jali;

std::vector<std::uint8_t> read(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Computes x^2 rotated by one slot, bootstrapped if the parameters allow it, recorded and batched.
wire::Bytes answer(const std::string& folder) {
  const wire::Limits any{.min_security = 0};
  const auto params = wire::params_from_bytes(read(folder + "/params.jali"), any);
  const auto ring = ckks::make_ring(*params, "cpu", default_threads());
  const auto keys =
      std::make_shared<const rlwe::EvaluationKeys>(wire::from_bytes<rlwe::EvaluationKeys>(
          read(folder + "/evaluation_keys.jali"), params, *ring));
  const auto x =
      wire::from_bytes<ckks::Ciphertext>(read(folder + "/ciphertext_fresh.jali"), params, *ring);
  const auto evaluator = std::make_shared<const ckks::Evaluator>(params, ring, keys);
  const ckks::Ciphertext* inputs[] = {&x};
  ckks::Program program(
      evaluator,
      [&](std::span<const ckks::Ciphertext> in) {
        std::vector<ckks::Ciphertext> out;
        out.push_back(evaluator->rotate(in[0], 1));
        return out;
      },
      inputs);
  ckks::Batcher batcher(evaluator, [&](const ckks::Ciphertext& a) { return evaluator->negate(a); });
  const auto turned = program.run(inputs);
  const ckks::Ciphertext* again[] = {&turned[0]};
  ckks::Ciphertext y = std::move(batcher.run(again)[0]);
  if (params->bootstrap()) {
    y = bootstrap::Bootstrapper(evaluator, bootstrap::BootstrapPlan(params)).apply(y);
  }
  return wire::to_bytes(y);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw InvalidArgument("usage: server FOLDER");
    const wire::Bytes bytes = answer(argv[1]);
    std::cout << bytes.size() << " bytes\n";
    return bytes.empty() ? 1 : 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
