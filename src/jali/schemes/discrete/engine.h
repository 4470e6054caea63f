// What the evaluators of all clients share: everything that depends on the parameters and the
// device, and on no key.
#pragma once

#include <memory>
#include <utility>

#include "jali/rlwe/key_switch.h"
#include "jali/schemes/discrete/encoder.h"

namespace jali::discrete {

/// A ring with the tables of encoding, key switching and noise for parameters. May be used from
/// several threads.
class Engine {
 public:
  static std::shared_ptr<const Engine> make(ParamsPtr params,
                                            std::shared_ptr<const ring::Ring> ring) {
    return std::shared_ptr<const Engine>(new Engine(std::move(params), std::move(ring)));
  }

  const ParamsPtr& params() const { return params_; }
  const std::shared_ptr<const ring::Ring>& ring() const { return ring_; }
  const Encoder& encoder() const { return encoder_; }
  const NoiseModel& noise() const { return noise_; }
  const std::shared_ptr<const rlwe::KeySwitcher>& switcher() const { return switcher_; }

 private:
  Engine(ParamsPtr params, std::shared_ptr<const ring::Ring> ring)
      : params_(std::move(params)),
        ring_(std::move(ring)),
        encoder_(params_, ring_),
        noise_(*params_),
        switcher_(std::make_shared<const rlwe::KeySwitcher>(params_, ring_)) {}

  const ParamsPtr params_;
  const std::shared_ptr<const ring::Ring> ring_;
  const Encoder encoder_;
  const NoiseModel noise_;
  const std::shared_ptr<const rlwe::KeySwitcher> switcher_;
};

}  // namespace jali::discrete
