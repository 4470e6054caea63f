#include "jali/client/manifest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <stdexcept>

#include "jali/base/error.h"
#include "jali/client/checks.h"
#include "jali/client/text.h"

namespace jali::client {

namespace {

// Bytes in memory of a request or reply with the fewest examples. As a message it takes at least
// half as many, and 2^31 are read.
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 32;
constexpr std::uint64_t kMostTogether = std::uint64_t{1} << 26;  // numbers of all arrays
constexpr double kLargest = 1e150;  // of a number's scale, so that products of two are finite
constexpr double kRounding = 1e-9;
constexpr double kMostMagnitude = 1e6;
constexpr double kLeastNoiseBits = 1,
                 kMostNoiseBits = 64;  // with less than one bit, a result says nothing
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 53;

/// Whether x is a number from low to high; NaN is none.
bool within(double x, double low, double high) { return x >= low && x <= high; }

std::uint64_t ciphertext_bytes(const ckks::Params& params, int level) {
  return std::uint64_t{2} * params.level(level).primes.size() * params.n() *
         word_bytes(params.word());
}

void check_numbers(const Port& port) {
  const std::size_t size = port.size();
  std::size_t count = 1;
  for (const Numbers* numbers : {&port.centre, &port.radius, &port.low, &port.high}) {
    const auto kept = numbers->kept();
    check_that(kept.size() == 1 || kept.size() == size,
               "numbers: must be one number, or one for each of the array");
    count = std::max(count, kept.size());
    check_that(std::ranges::all_of(kept, [](double x) { return std::isfinite(x); }),
               "numbers: must be finite");
    check_that(std::ranges::all_of(kept, [](double x) { return std::fabs(x) <= kLargest; }),
               "numbers: must be at most 1e+150");
  }
  check_that(within(port.rms, 0, kMostMagnitude), "rms: must be a number from 0 to 1e+06");
  check_that(within(port.peak, 0, kMostMagnitude), "peak: must be a number from 0 to 1e+06");
  for (std::size_t k = 0; k < count; ++k) {
    check_that(port.radius[k] >= 1 / kLargest && port.low[k] <= port.high[k],
               "numbers: a radius or a range is empty");
  }
  check_that(port.rms > 0 && port.rms <= port.peak * (1 + kRounding),
             "rms: must be above 0 and at most peak");
  for (std::size_t k = 0; k < count; ++k) {
    const double centre = port.centre[k];
    const double most =
        port.peak * (1 + kRounding) * port.radius[k] + kRounding * std::fabs(centre);
    check_that(std::fabs(port.low[k] - centre) <= most && std::fabs(port.high[k] - centre) <= most,
               "peak: must hold for all numbers from low to high");
  }
}

void check_columns(const Port& port) {
  if (port.columns.empty()) return;
  const std::string_view all = port.columns;
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(all, '\n')) + 1;
  check_that(!port.shape.empty() && port.shape.back() == lines,
             "columns: must be a name for each number of the last axis");
  for (std::size_t at = 0; at <= all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    check_that(is_printable_name(all.substr(at, end - at)),
               "columns: must be texts of 1 to 1,000 characters without control characters");
    at = end + 1;
  }
}

void check_port(const Port& port, const Manifest& manifest) {
  const ckks::Params& params = *manifest.params;
  check_that(!port.name.empty() && port.name.size() <= 4000,
             "name: must be a text of 1 to 1,000 characters");
  check_that(is_printable_name(port.name), "name: must be a text without control characters");
  check_that(port.level >= 0 && port.level <= params.depth(),
             "level: must be a whole number from 0 to the depth");
  check_that(port.layout.slots == manifest.slots(), "laid: has other slots than a lane");
  port.layout.check(kMostMemory / ciphertext_bytes(params, port.level));
  std::uint64_t size = 1;
  check_that(port.shape.size() <= kMostAxes, "shape: has too many axes");
  for (const std::uint64_t x : port.shape) {
    check_that(x >= 1 && x <= kMostNumbers / size,
               "shape: has another number of numbers than laid, or too many");
    size *= x;
  }
  check_that(size == port.layout.size(),
             "shape: has another number of numbers than laid, or too many");
  check_columns(port);
  check_numbers(port);
}

void check_ports(const std::vector<Port>& ports, const Manifest& manifest, const char* what) {
  if (ports.empty() || ports.size() > kMostPorts) {
    fail(std::string(what) + ": must be a list of 1 to " + std::to_string(kMostPorts) + " entries");
  }
  for (std::size_t k = 0; k < ports.size(); ++k) {
    try {
      check_port(ports[k], manifest);
    } catch (const std::invalid_argument& error) {
      fail(std::string(what) + ": entry " + std::to_string(k) + ": " + error.what());
    }
  }
}

/// The work of checking a layout grows with its numbers, so that those of all are counted first.
void check_sizes(const Manifest& manifest) {
  std::uint64_t numbers = 0;
  for (const auto* ports : {&manifest.inputs, &manifest.outputs}) {
    for (const Port& port : *ports) {
      std::uint64_t size = 1;
      for (const std::uint64_t x : port.layout.shape) {
        if (x == 0) break;  // which check_port refuses
        check_that(size <= kMostTogether / x, "inputs and outputs: they have too many numbers");
        size *= x;
      }
      numbers += size;
      check_that(numbers <= kMostTogether, "inputs and outputs: they have too many numbers");
    }
  }
}

void check_demand(const Demand& demand, const ckks::Params& params) {
  const auto slots = static_cast<int>(params.slots());
  check_that(demand.rotations.size() <= 2 * params.slots(), "rotations: there are too many");
  for (const auto& [step, level] : demand.rotations) {
    check_that(step > -slots && step < slots && level >= 0 && level <= params.depth(),
               "rotations: a step or a level is out of range");
  }
  check_that(demand.product >= 0 && demand.product <= params.depth(), "product: must be a level");
  check_that(demand.conjugation >= -1 && demand.conjugation <= params.depth(),
             "conjugation: must be a level, or -1");
  check_that(!demand.noise_bits.empty() && demand.noise_bits.size() <= kMostPorts,
             "noise_bits: must be a list of 1 to 1024 entries");
  for (std::size_t k = 0; k < demand.noise_bits.size(); ++k) {
    if (!within(demand.noise_bits[k], kLeastNoiseBits, kMostNoiseBits)) {
      fail("noise_bits: entry " + std::to_string(k) + ": must be a number from 1 to 64");
    }
  }
  check_that(demand.bootstrap == BootstrapKeys::none || params.bootstrap().has_value(),
             "bootstrap: must be one of none");
  check_that(demand.bootstrap <= BootstrapKeys::within && demand.bootstrap_bytes <= kMostBytes,
             "bootstrap: must be one of none, all, fewest, or a number of bytes");
  check_that(demand.bootstrap == BootstrapKeys::within || demand.bootstrap_bytes == 0,
             "bootstrap: has a number of bytes that says nothing");
  check_that(within(demand.restored_bits, 0, 64), "restored_bits: must be a number from 0 to 64");
  if (demand.packings.empty() ||
      demand.packings.size() > static_cast<std::size_t>(params.log_n())) {
    fail("packings: must be a list of 1 to " + std::to_string(params.log_n()) + " entries");
  }
  check_that(std::ranges::all_of(demand.packings,
                                 [&](std::uint32_t x) {
                                   return x == 0 ||
                                          (x >= 2 && x < params.slots() && std::has_single_bit(x));
                                 }),
             "packings: must be 0, or powers of two from 2 to half of the slots");
}

/// What the fields must agree on.
void check_together(const Manifest& manifest) {
  const ckks::Params& params = *manifest.params;
  std::set<std::string_view> names;
  for (const Port& port : manifest.inputs) {
    check_that(names.insert(port.name).second, "inputs: two have one name");
  }
  check_that(manifest.demand.noise_bits.size() == manifest.outputs.size(),
             "noise_bits: must be a number for each output");
  check_that(std::ranges::none_of(
                 manifest.outputs,
                 [](const Port& port) { return port.layout.kind == Layout::Kind::gathered; }),
             "outputs: table: an output has none");
  check_that(
      std::ranges::all_of(manifest.outputs, [](const Port& port) { return port.columns.empty(); }),
      "outputs: columns: an output has none");
  for (const auto* ports : {&manifest.inputs, &manifest.outputs}) {
    int level = 0;
    std::uint64_t ciphertexts = 0;
    for (const Port& port : *ports) {
      level = std::max(level, port.level);
      ciphertexts += port.layout.ciphertexts();  // each is below 2^20
    }
    check_that(ciphertexts <= kMostMemory / ciphertext_bytes(params, level),
               ports == &manifest.inputs
                   ? "inputs: they have more ciphertexts than a message holds"
                   : "outputs: they have more ciphertexts than a message holds");
  }
  // Larger numbers than `room` wrap around at the last level, so that decryption would compare with
  // nothing.
  const double room = std::pow(2.0, params.level(0).log_q - std::log2(params.scale(0)) - 1);
  for (std::size_t k = 0; k < manifest.outputs.size(); ++k) {
    const double noise = kSigmas * std::pow(2.0, -manifest.demand.noise_bits[k]);
    check_that(manifest.outputs[k].peak * kTolerance + noise <= room,
               "outputs: peak: is larger than any number that decryption gives");
  }
}

/// As numpy.allclose(a, b, rtol=1e-9, atol=0).
bool are_close(const Numbers& a, const Numbers& b) {
  const std::size_t count = std::max(a.kept().size(), b.kept().size());
  for (std::size_t k = 0; k < count; ++k) {
    if (!(std::fabs(a[k] - b[k]) <= 1e-9 * std::fabs(b[k]))) return false;
  }
  return true;
}

bool are_alike(const std::vector<Port>& a, const std::vector<Port>& b) {
  return std::ranges::equal(a, b, [](const Port& x, const Port& y) { return x.is_like(y); });
}

}  // namespace

Numbers::Numbers(std::span<const double> values) {
  const bool equal = std::ranges::all_of(values, [&](double x) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(values[0]);
  });
  if (equal) values = values.first(std::min<std::size_t>(1, values.size()));
  values_.assign(values.begin(), values.end());
}

bool Port::is_like(const Port& other) const {
  return shape == other.shape && layout == other.layout && level == other.level &&
         are_close(centre, other.centre) && are_close(radius, other.radius);
}

bool Manifest::is_like(const Manifest& other) const {
  return params->hash() == other.params->hash() && are_alike(inputs, other.inputs) &&
         are_alike(outputs, other.outputs);
}

void check(const Manifest& manifest) {
  try {
    check_that(manifest.params != nullptr, "params: are missing");
    check_that(std::has_single_bit(manifest.lanes) && manifest.lanes <= manifest.params->slots(),
               "lanes: must be a power of two up to the slots");
    check_sizes(manifest);
    check_ports(manifest.inputs, manifest, "inputs");
    check_ports(manifest.outputs, manifest, "outputs");
    check_demand(manifest.demand, *manifest.params);
    check_together(manifest);
  } catch (const std::invalid_argument& error) {
    throw CorruptData(std::string("the bytes are no manifest: ") + error.what());
  }
}

Digest fingerprint(const Manifest& manifest) { return hash256(to_bytes(manifest)); }

}  // namespace jali::client
