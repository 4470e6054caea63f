// The owner of the data, who has the manifest of a program and the secret key.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jali/base/progress.h"
#include "jali/client/key_cost.h"
#include "jali/client/manifest.h"
#include "jali/client/message.h"
#include "jali/client/secret/holder.h"
#include "jali/schemes/ckks/secret/decryption.h"
#include "jali/wire/stream.h"

namespace jali::client {

/// Examples of one input: `count` of them, one after the other, each in C order.
struct Examples {
  std::span<const double> numbers;
  std::uint64_t count = 1;
  bool single = false;  // one example that was given without the axis of the batch
};

class Client {
 public:
  /// manifest: one that was checked, as manifest_from_bytes gives it. Throws ParamsMismatch for a
  /// key of other parameters.
  Client(Manifest manifest, Holder holder);

  const Manifest& manifest() const { return manifest_; }
  /// The manifest's fingerprint.
  const Digest& program() const { return program_; }
  const Holder& holder() const { return holder_; }

  /// What the program's keys cost. Nothing is made.
  KeyCost key_cost() const;
  /// Makes the public keys that the program uses, and no others, each for the levels at which it is
  /// used, and writes them as they are made: one lies in memory at a time. The bytes are those of a
  /// set of evaluation keys. progress: called after each key. seed: of the keys, for tests only.
  /// Throws LimitExceeded, before any key is made, if they would take more than most_bytes of
  /// memory together. allow: see checked_demand.
  void make_keys(const wire::Sink& sink, std::uint64_t most_bytes = kMostKeyBytes,
                 const Progress& progress = {},
                 const std::optional<random::Seed>& seed = std::nullopt,
                 const Allow& allow = {}) const;

  /// Examples of every input. Throws InvalidArgument, before anything is encrypted, for other
  /// counts, for numbers that are not finite, and for numbers outside of the range for which the
  /// program was calibrated: its results would mean nothing. The text says which number it is, and
  /// not its value.
  Message encrypt(std::span<const Examples> inputs) const;

  /// The results for the examples of a request: of every output (examples, size). They are the
  /// caller's to wipe (base/wipe.h). Check::yes compares the numbers with the ranges of the
  /// calibration. Numbers beyond them mean that an example was unlike those, and that results may
  /// be wrong. Check::no returns them all the same. Numbers beyond 512 times the range have wrapped
  /// around, and may look like right ones. Throws WrongDecryption for such numbers, KeyMismatch for
  /// another client's, and what check(Message) throws.
  std::vector<std::vector<double>> decrypt(const Message& reply,
                                           ckks::Check check = ckks::Check::yes) const;

 private:
  std::vector<CiphertextPtr> encrypted(const Port& port, const Examples& examples) const;
  std::vector<double> decrypted(std::size_t output, const Message& reply, ckks::Check check) const;

  Manifest manifest_;
  Digest program_;
  Holder holder_;
};

/// What is wrong with numbers of an input that lie outside of its range; nothing if none does. It
/// says which of them it is, and not the number: that was to be encrypted. numbers: whole examples.
std::optional<std::string> outside(const Port& port, const Examples& examples);
/// Throws InvalidArgument for other counts, for numbers that are not finite, and for those that lie
/// outside.
void check_inside(const Port& port, const Examples& examples);

/// For each example, 1 if decryption refuses it: a number is beyond the range of the calibration by
/// more than noise explains, or is NaN. values: of this output (examples, size), in the scale in
/// which they are sent. noise_bits: see Demand. Branches and addresses do not depend on the values.
std::vector<std::uint8_t> beyond_range(const Port& port, std::span<const double> values,
                                       double noise_bits);

}  // namespace jali::client
