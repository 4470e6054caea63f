// From a literal to a ring, a word, levels and key-switching moduli. See docs/math/levels.md.
#pragma once

#include "jali/base/checkpoint.h"
#include "jali/params/ckks_params.h"
#include "jali/params/gadget.h"
#include "jali/params/level_table.h"

namespace jali::params {

struct Choice {
  int log_n = 0;
  Word word = Word::w64;
  LevelTable table;
  Gadget gadget;
  std::optional<PlanNumbers> plan;  // ckks::Params::plan
};

/// The smallest ring that the security table allows and the word that serves it best, or those that
/// the literal asks for. Throws InvalidArgument or InsecureParams with what would fit; finding that out may take
/// seconds, in which `checkpoint` is called.
Choice choose(const ckks::Literal& literal, const Checkpoint& checkpoint = {});

/// See ckks::Params::create_written.
Choice choose_written(const ckks::Literal& literal, std::optional<PlanNumbers> plan, bool search);

}  // namespace jali::params
