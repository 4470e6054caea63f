// Chooses the ring, the word, the levels and the moduli of key switching for a literal. See
// docs/math/levels.md.
#pragma once

#include "jali/base/checkpoint.h"
#include "jali/params/ckks/level_table.h"
#include "jali/params/ckks_params.h"
#include "jali/params/gadget.h"

namespace jali::params {

struct Choice {
  int log_n = 0;
  Word word = Word::w64;
  LevelTable table;
  Gadget gadget;
  std::optional<PlanNumbers> plan;  // ckks::Params::plan
};

/// Chooses the smallest ring that the security table allows and the word that serves it best,
/// unless the literal asks for others. Throws InvalidArgument or InsecureParams, which say what
/// would fit. Finding that out may take seconds, during which `checkpoint` is called.
Choice choose(const ckks::Literal& literal, const Checkpoint& checkpoint = {});

/// See ckks::Params::create_written.
Choice choose_written(const ckks::Literal& literal, std::optional<PlanNumbers> plan, bool search);

}  // namespace jali::params
