// Work on blocks of polynomials, recorded once and run again without the host's work.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "jali/base/turns.h"
#include "jali/ring/poly.h"

namespace jali::ring {

/// On a GPU the work is one graph with memory of its own, elsewhere it is done again at every run.
///
/// The work must do the same each time and use what it refers to as long as the recording lives. The blocks that it
/// reads and writes belong to the caller and stay where they are.
class Recording {
 public:
  /// Does the work once, recording it. name: for sentences, e.g. "this program".
  Recording(std::shared_ptr<const Ring> ring, std::string name, std::function<void()> work);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// A block that the work reads, and what it holds in the next run: a block of the same shape, in any memory.
  struct Input {
    Poly* block;
    const Poly* value;
  };
  /// Copies the inputs into their blocks, does the work, and calls `collect`, which copies the results out. Threads take
  /// turns. Throws InvalidArgument for a call from the work itself.
  void run(std::span<const Input> inputs, const std::function<void()>& collect);
  /// Memory of the device that the work keeps, without the caller's blocks.
  std::size_t bytes() const { return captured_->bytes(); }

 private:
  const std::shared_ptr<const Ring> ring_;
  Turns turns_;
  std::unique_ptr<backend::Captured> captured_;
};

}  // namespace jali::ring
