#include "jali/ring/recording.h"

#include <utility>

namespace jali::ring {

Recording::Recording(std::shared_ptr<const Ring> ring, std::string name, std::function<void()> work)
    : ring_(std::move(ring)),
      turns_(std::move(name), ring_->checkpoint()),
      captured_(ring_->engine().capture(std::move(work))) {}

void Recording::run(std::span<const Input> inputs, const std::function<void()>& collect) {
  const Turns::Turn turn = turns_.take();
  for (const Input& input : inputs) ring_->place(input.block->data(), *input.value);
  captured_->run();
  collect();
}

}  // namespace jali::ring
