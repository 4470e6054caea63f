// Parameters of every word with honest keys, and plans of circuits that these keys serve.
#pragma once

#include <memory>

#include "../hostile.h"
#include "jali/api/jali.h"

namespace jali::fuzz {

/// Whether bootstrapping is among the operations: what main.cpp is compiled for.
extern const bool kBootstrap;

struct World {
  testing::Objects o;
  Forger forger;
  circuits::LinearTransform transform, prepared;
  circuits::MatVec product;
  std::shared_ptr<const ckks::Evaluator> evaluator;
  ckks::Decryptor decryptor;
  std::unique_ptr<bootstrap::Bootstrapper> bootstrapper;
  std::unique_ptr<bootstrap::Packings> packings;

  explicit World(Word word);

 private:
  circuits::Diagonals diagonals() const;
};

/// The k-th of three, one a word, made at its first use.
const World& world(std::size_t k);

}  // namespace jali::fuzz
