// Writes a set of evaluation keys one by one.
#pragma once

#include <cstdint>

#include "jali/rlwe/keys.h"
#include "jali/wire/keys.h"
#include "jali/wire/writer.h"

namespace jali::wire {

/// The bytes are those that to_bytes gives for all the keys together. The keys are given in the
/// order in which they are written: the one for products, those of Galois elements in ascending
/// order, and those of bootstrapping; exactly those of the demand, each for its level.
class KeyWriter {
 public:
  /// The parameters must outlive this. sink: gets the bytes as they are made; if it is null,
  /// finish() gives them.
  KeyWriter(const rlwe::Params& params, const rlwe::KeyId& id, const rlwe::KeyDemand& demand,
            const Sink& sink = {});

  void relinearisation(const rlwe::SwitchKey& key);
  void galois(std::uint64_t element, const rlwe::SwitchKey& key);
  void encapsulation(const rlwe::EncapsulationKeys& keys);
  /// Throws InternalError if the keys were not those of the demand and there is a sink.
  Bytes finish(const Checkpoint& checkpoint = {});

 private:
  void key(const rlwe::SwitchKey& key);

  const rlwe::Params& params_;
  bool levels_;
  Writer writer_;
};

}  // namespace jali::wire
