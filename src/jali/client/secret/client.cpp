#include "jali/client/secret/client.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "jali/base/declassify.h"
#include "jali/base/error.h"
#include "jali/base/wipe.h"
#include "jali/client/text.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/schemes/ckks/packing.h"
#include "jali/schemes/ckks/range.h"
#include "jali/wire/key_writer.h"

namespace jali::client {

namespace {

/// "x[2, 3]": a number of an array, by its place in C order.
std::string place_text(const Port& port, std::size_t place) {
  std::vector<std::string> indices(port.shape.size());
  for (std::size_t a = port.shape.size(); a > 0; --a) {
    indices[a - 1] = std::to_string(place % port.shape[a - 1]);
    place /= port.shape[a - 1];
  }
  std::string out = port.name + "[";
  for (std::size_t a = 0; a < indices.size(); ++a) out += (a == 0 ? "" : ", ") + indices[a];
  return out + "]";
}

/// Numbers for all slots of so many ciphertexts. Memory of 32 bits may not hold them: a count that
/// has wrapped around would be that of fewer.
std::vector<double> all_slots(std::size_t chunks, std::size_t ciphertexts, std::size_t slots) {
  std::size_t count = 0;
  const bool fits = !__builtin_mul_overflow(chunks, ciphertexts, &count) &&
                    !__builtin_mul_overflow(count, slots, &count) &&
                    count <= std::numeric_limits<std::size_t>::max() / (4 * sizeof(double));
  require<OutOfMemory>(fits, "so many examples are larger than memory: send fewer at once");
  return std::vector<double>(count);
}

/// Which examples of several have results beyond the range, as a sentence and a space.
std::string which(std::span<const std::uint8_t> beyond) {
  const auto count = static_cast<std::uint64_t>(std::ranges::count(beyond, 1));
  if (beyond.size() == 1 || count == 0) return "";
  const auto first = std::ranges::find(beyond, 1) - beyond.begin();
  return "It concerns " + counted(count, "example") + " of " + std::to_string(beyond.size()) +
         "; the first is example " + std::to_string(first) +
         ". The others of the request may be wrong, too: send those again alone. ";
}

std::string calibrated(const Port& port) {
  return "The program was calibrated for results from " +
         number_text(std::ranges::min(port.low.kept())) + " to " +
         number_text(std::ranges::max(port.high.kept())) +
         ". If the reply is genuine, an example led outside of the ranges of the calibration: "
         "compile with examples like it, or with a larger margin=. check=False returns the numbers "
         "all the same";
}

ckks::Ciphertext on_host(const ring::Ring& ring, ckks::Ciphertext x) {
  for (ring::Poly& part : x.parts) {
    if (!part.buffer().host_accessible()) part = ring.host_copy(part);
  }
  return x;
}

}  // namespace

std::optional<std::string> outside(const Port& port, const Examples& examples) {
  const std::size_t size = port.size();
  std::uint64_t count = 0;
  std::size_t first = 0;
  for (std::size_t at = 0, place = 0; at < examples.numbers.size(); ++at) {
    const double x = examples.numbers[at];
    if (x < port.low[place] || x > port.high[place]) {
      if (count++ == 0) first = at;
    }
    if (++place == size) place = 0;
  }
  if (count == 0) return std::nullopt;
  const std::size_t place = first % size;
  return place_text(port, place) + " of example " + std::to_string(first / size) +
         " is not among the numbers for which the program was calibrated, " +
         number_text(port.low[place]) + " to " + number_text(port.high[place]) +
         ", so that its result would mean nothing. " + counted(count, "number") +
         (count == 1 ? " lies" : " lie") +
         " outside in all. Compile with examples like these in calibration=, or with input_range=";
}

void check_inside(const Port& port, const Examples& examples) {
  const std::size_t size = port.size();
  require<InvalidArgument>(
      examples.count >= 1 && examples.numbers.size() / size == examples.count &&
          examples.numbers.size() % size == 0 && (!examples.single || examples.count == 1),
      [&] {
        return port.name + " takes examples of " + counted(size, "number") + ", and was given " +
               counted(examples.numbers.size(), "number") + " for " +
               counted(examples.count, "example");
      });
  require<InvalidArgument>(
      std::ranges::all_of(examples.numbers, [](double x) { return std::isfinite(x); }),
      [&] { return port.name + " holds NaN or infinity: replace these numbers"; });
  const auto wrong = outside(port, examples);
  require<InvalidArgument>(!wrong, [&] { return *wrong; });
}

std::vector<std::uint8_t> beyond_range(const Port& port, std::span<const double> values,
                                       double noise_bits) {
  const std::size_t size = port.size();
  std::vector<double> low(size), high(size);
  double largest = 0;
  for (std::size_t k = 0; k < size; ++k) {
    low[k] = (port.low[k] - port.centre[k]) / port.radius[k];
    high[k] = (port.high[k] - port.centre[k]) / port.radius[k];
    largest = std::max({largest, std::fabs(low[k]), std::fabs(high[k])});
  }
  const double beyond = std::max(0.0, port.peak - largest);
  const double room = beyond + port.peak * (kTolerance - 1) + kSigmas * std::pow(2.0, -noise_bits);
  std::vector<std::uint8_t> refused(values.size() / size);
  for (std::size_t k = 0; k < size; ++k) low[k] -= room, high[k] += room;
  for (std::size_t example = 0; example < refused.size(); ++example) {
    int inside = 1;
    for (std::size_t k = 0; k < size; ++k) {
      const double x = values[example * size + k];
      inside &= static_cast<int>(low[k] <= x) & static_cast<int>(x <= high[k]);
    }
    refused[example] = static_cast<std::uint8_t>(1 - inside);
  }
  return refused;
}

Client::Client(Manifest manifest, Holder holder)
    : manifest_(std::move(manifest)), program_(fingerprint(manifest_)), holder_(std::move(holder)) {
  require<ParamsMismatch>(holder_.params->hash() == manifest_.params->hash(),
                          "the secret key has other parameters than the program");
}

KeyCost Client::key_cost() const {
  return client::key_cost(*manifest_.params, key_demand(manifest_.params, manifest_.demand));
}

void Client::make_keys(const wire::Sink& sink, std::uint64_t most_bytes, const Progress& progress,
                       const std::optional<random::Seed>& seed, const Allow& allow) const {
  const rlwe::KeyDemand demand =
      checked_demand(manifest_.params, manifest_.demand, most_bytes, allow);
  const ring::Ring& ring = *holder_.ring;
  const bool copied = !ring.memory().host_accessible();
  const auto host = [&](rlwe::SwitchKey key) {
    return copied ? rlwe::host_copy(ring, key) : std::move(key);
  };
  rlwe::KeyGenerator generator(manifest_.params, holder_.ring, seed);
  wire::KeyWriter writer(*manifest_.params, holder_.key->id(), demand, sink);
  generator.make(*holder_.key, demand,
                 {[&](rlwe::SwitchKey key) { writer.relinearisation(host(std::move(key))); },
                  [&](std::uint64_t element, rlwe::SwitchKey key) {
                    writer.galois(element, host(std::move(key)));
                  },
                  [&](rlwe::EncapsulationKeys keys) {
                    if (copied) {
                      keys.to_sparse = ring.host_copy(keys.to_sparse);
                      keys.to_dense = ring.host_copy(keys.to_dense);
                    }
                    writer.encapsulation(keys);
                  }},
                 progress);
  writer.finish();
}

Message Client::encrypt(std::span<const Examples> inputs) const {
  const auto& ports = manifest_.inputs;
  require<InvalidArgument>(inputs.size() == ports.size(), [&] {
    return "the program takes " + counted(ports.size(), "array") + ", and was given " +
           std::to_string(inputs.size());
  });
  for (std::size_t k = 0; k < ports.size(); ++k) check_inside(ports[k], inputs[k]);
  require<InvalidArgument>(std::ranges::all_of(inputs,
                                               [&](const Examples& x) {
                                                 return x.count == inputs[0].count &&
                                                        x.single == inputs[0].single;
                                               }),
                           "give every input the same number of examples");
  Message out{program_, inputs[0].count, inputs[0].single, Direction::request, {}};
  for (std::size_t k = 0; k < ports.size(); ++k)
    out.arrays.push_back(encrypted(ports[k], inputs[k]));
  return out;
}

std::vector<CiphertextPtr> Client::encrypted(const Port& port, const Examples& examples) const {
  const ckks::Params& params = *manifest_.params;
  const std::size_t lanes = manifest_.lanes, size = port.size(), slots = params.slots();
  const auto count = static_cast<std::size_t>(examples.count);  // the numbers are in memory
  const std::size_t chunks = (count + lanes - 1) / lanes;
  const auto ciphertexts = static_cast<std::size_t>(port.layout.ciphertexts());
  params::Declared declared(port.rms, std::max(port.peak, 1.0));
  declared.calibrated = true;
  const double scale = params.scale(port.level);
  ckks::require_peak(params, declared.peak, scale, port.level);
  std::vector<double> numbers(size), all = all_slots(chunks, ciphertexts, slots);
  const WipedAtEnd wiped_numbers(numbers), wiped_all(all);
  // Lanes that are left over repeat the last example: their numbers stay within the range, too.
  for (std::size_t k = 0; k < chunks * lanes; ++k) {
    const std::size_t example = std::min(k, count - 1);
    for (std::size_t i = 0; i < size; ++i) {
      numbers[i] = (examples.numbers[example * size + i] - port.centre[i]) / port.radius[i];
    }
    pack(port.layout, numbers, std::span(all).subspan(k / lanes * slots), chunks * slots, lanes,
         k % lanes);
  }
  const int log_slots = params.log_n() - 1;
  std::vector<CiphertextPtr> out;
  for (std::size_t c = 0; c < ciphertexts; ++c) {
    const auto rows = std::span<const double>(all).subspan(c * chunks * slots, chunks * slots);
    const ckks::Plaintext plaintext =
        holder_.encoder->encode(rows, chunks, port.level, scale, log_slots);
    ckks::Ciphertext made = on_host(*holder_.ring, holder_.encryptor->encrypt(plaintext, declared));
    made.packing = ckks::packing_of_fresh(slots, log_slots, chunks > 1, false);
    out.push_back(std::make_shared<const ckks::Ciphertext>(std::move(made)));
  }
  return out;
}

std::vector<std::vector<double>> Client::decrypt(const Message& reply, ckks::Check check) const {
  client::check(reply, manifest_, program_, Direction::reply);
  std::vector<std::vector<double>> out;
  try {
    for (std::size_t k = 0; k < manifest_.outputs.size(); ++k) {
      out.push_back(decrypted(k, reply, check));
    }
  } catch (...) {
    for (auto& values : out) wipe(values.data(), values.size() * sizeof(double));
    throw;
  }
  return out;
}

std::vector<double> Client::decrypted(std::size_t output, const Message& reply,
                                      ckks::Check check) const {
  const Port& port = manifest_.outputs[output];
  const auto& ciphertexts = reply.arrays[output];
  const std::size_t lanes = manifest_.lanes, size = port.size(), slots = manifest_.params->slots();
  const std::size_t chunks = ciphertexts[0]->batch();
  std::vector<double> all = all_slots(chunks, ciphertexts.size(), slots);
  const WipedAtEnd wiped_all(all);
  const auto fill = [&](ckks::Check how) {
    for (std::size_t c = 0; c < ciphertexts.size(); ++c) {
      auto values = ckks::decrypt(*holder_.decryptor, *holder_.encoder, *ciphertexts[c], how);
      const WipedAtEnd wiped(values);
      for (std::size_t k = 0; k < values.size(); ++k)
        all[c * chunks * slots + k] = values[k].real();
    }
  };
  std::string wrong = "a result is beyond the range of the calibration and may be wrong";
  bool refused = false;
  try {
    fill(check);
  } catch (const WrongDecryption& error) {  // a ciphertext cannot tell which example is wrong
    wrong = error.what();
    refused = true;
    fill(ckks::Check::no);
  }
  const auto examples = static_cast<std::size_t>(reply.examples);  // their slots are in memory
  std::vector<double> values(examples * size);
  for (std::size_t k = 0; k < examples; ++k) {
    unpack(port.layout, std::span<const double>(all).subspan(k / lanes * slots), chunks * slots,
           lanes, k % lanes, std::span(values).subspan(k * size, size));
  }
  auto beyond = beyond_range(port, values, manifest_.demand.noise_bits[output]);
  // What is told: which examples are beyond the range.
  declassify(beyond.data(), beyond.size());
  const bool any = std::ranges::find(beyond, 1) != beyond.end();
  if (check == ckks::Check::yes && (refused || any)) {
    wipe(values.data(), values.size() * sizeof(double));
    throw WrongDecryption(port.name + ": " + wrong + ". " + which(beyond) + calibrated(port));
  }
  for (std::size_t k = 0; k < values.size(); ++k) {
    values[k] = values[k] * port.radius[k % size] + port.centre[k % size];
  }
  return values;
}

}  // namespace jali::client
