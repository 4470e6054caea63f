// LWE ciphertexts that copies share.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "jali/lwe/blocks.h"

namespace jali::lwe {

/// LWE ciphertexts that copies share and nothing changes. It is used like a std::shared_ptr<const
/// LweBlock>. Ciphertexts that were given as a seed and bodies stay that until somebody asks for
/// their words.
class SharedLwe {
 public:
  SharedLwe() = default;
  SharedLwe(std::shared_ptr<const LweBlock> block) : block_(std::move(block)) {}
  SharedLwe(std::shared_ptr<LweBlock> block) : block_(std::move(block)) {}
  explicit SharedLwe(SeededLwe rows);

  /// What it was made of, if that is a seed and bodies; else null.
  const SeededLwe* seeded() const;
  /// The words. The first use of any copy expands the masks in host memory, and the words are kept.
  /// Threads may use copies at once.
  std::shared_ptr<const LweBlock> block() const;
  const LweBlock& operator*() const { return lazy_ == nullptr ? *block_ : expanded(); }
  const LweBlock* operator->() const { return &**this; }

  explicit operator bool() const { return lazy_ != nullptr || block_ != nullptr; }
  bool operator==(std::nullptr_t) const { return !*this; }

 private:
  struct Lazy;
  const LweBlock& expanded() const;
  std::shared_ptr<const LweBlock> block_;  // null if there is a seed
  std::shared_ptr<const Lazy> lazy_;
};

}  // namespace jali::lwe
