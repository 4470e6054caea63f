// The search for parameters: of all that are secure and fail with probability at most 2^-128, those
// of least cost.
#pragma once

#include <string>
#include <vector>

#include "cost.h"
#include "jali/params/tfhe_params.h"

namespace jali::tfhe {

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
/// The parameters of least cost. At the same cost within a thousandth, the larger margin of failure
/// counts. Throws InvalidArgument if there are none.
Found search(const Request& request, const CostModel& model);

/// The parameters that a paper fixed, with gadgets and noise of least failure.
Found search_strix(const std::string& name, const CostModel& model);

/// A preset as it is published, and what the search would choose in its place.
struct Comparison {
  Found published, best;
  bool latency;
  /// How many times as much the preset costs.
  double ratio() const {
    return latency ? published.cost.latency_seconds / best.cost.latency_seconds
                   : published.cost.throughput_seconds / best.cost.throughput_seconds;
  }
};
std::vector<Comparison> comparisons(const CostModel& model);
/// The same as lines of text.
std::string compared(const CostModel& model);

/// presets/tfhe.toml: the presets that are published, and of requests without one what the search
/// finds.
std::string toml(const CostModel& model);

}  // namespace jali::tfhe
