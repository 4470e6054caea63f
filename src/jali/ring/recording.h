// Records work on blocks of polynomials once, and runs it again without the host's share of it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "jali/base/turns.h"
#include "jali/ring/poly.h"

namespace jali::ring {

/// On a GPU the recorded work is one graph, which has memory of its own. On other devices every run
/// calls the work again.
///
/// The work must do the same each time. Everything that it refers to must live as long as the
/// recording. The blocks that it reads and writes belong to the caller and must stay where they
/// are.
class Recording {
 public:
  /// Does the work and records it. name: used in error messages, e.g. "this program".
  Recording(std::shared_ptr<const Ring> ring, std::string name, std::function<void()> work);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// block: one that the work reads. value: what it shall hold in the next run; it has the same
  /// shape and may lie in any memory.
  struct Input {
    Poly* block;
    const Poly* value;
  };
  /// Copies the inputs into their blocks, does the work, and calls `collect`, which copies the
  /// results out. Several threads may call this; they take turns. Throws InvalidArgument if the
  /// work itself calls it.
  void run(std::span<const Input> inputs, const std::function<void()>& collect);
  /// Bytes of the device's memory that the recording keeps, without the caller's blocks.
  std::size_t bytes() const { return captured_->bytes(); }

 private:
  const std::shared_ptr<const Ring> ring_;
  Turns turns_;
  std::unique_ptr<backend::Captured> captured_;
};

}  // namespace jali::ring
