// The search for parameters: of all that are secure and fail with probability at most 2^-128, those of least cost.
#pragma once

#include <string>
#include <vector>

#include "jali/params/tfhe_params.h"

namespace jali::tfhe {

/// The constants of cost.toml.
struct CostModel {
  double fma_per_second, fma_butterfly, fma_conversion, fma_product;
  double cache_bytes_per_second, ciphertexts_per_tile;
  double int8_products_per_second, int8_parts;
  double ciphertexts_per_switch_tile, memory_bytes_per_second;
  double step_seconds, latency_multiprocessors, fma_per_second_multiprocessor;
};
/// Throws InvalidArgument if the file lacks a constant.
CostModel read_cost_model(const std::string& path);

struct Cost {
  double fma = 0;  // multiply-adds of a rotation
  double key_bytes = 0;  // of the bootstrapping key as transforms in double precision
  double throughput_seconds = 0;  // of one bootstrapping with its key switch in a large batch
  double latency_seconds = 0;  // of one alone
};
Cost cost(const CostModel& model, const Literal& literal);

/// What a preset is for. The search chooses what is not in it.
struct Request {
  std::string name, purpose;
  int message_bits, carry_bits;
  double max_norm2;
  Rotation rotation = Rotation::classic;
  std::vector<int> groups = {1};
  std::vector<Torus> tori = {Torus::t64};
  std::vector<Order> orders = {Order::switch_first};
  bool latency = false;  // least latency, not least time in a batch
};
/// The presets that the search makes, in the order of presets/tfhe.toml.
std::vector<Request> requests();

struct Found {
  Literal literal;  // with log2_p_fail and security
  Cost cost;
};
/// The parameters of least cost. At the same cost within a thousandth, the larger margin of failure counts. Throws
/// InvalidArgument if there are none.
Found search(const Request& request, const CostModel& model);

/// The parameters that a paper fixed, with gadgets and noise of least failure.
Found search_strix(const std::string& name, const CostModel& model);

/// presets/tfhe.toml.
std::string toml(const CostModel& model);

}  // namespace jali::tfhe
