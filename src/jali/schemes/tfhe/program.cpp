#include "jali/schemes/tfhe/program.h"

#include <string>
#include <utility>

#include "jali/base/error.h"

namespace jali::tfhe {

namespace {

std::vector<const History*> histories(std::span<const Ciphertext> of) {
  std::vector<const History*> out;
  for (const Ciphertext& a : of) out.push_back(&a.history);
  return out;
}

std::string named(std::size_t index) {
  return "input " + std::to_string(index) + " of the captured function ";
}

}  // namespace

Program::Program(std::shared_ptr<const Evaluator> evaluator, CiphertextFunction function,
                 std::span<const Ciphertext* const> examples)
    : evaluator_(std::move(evaluator)),
      function_(std::move(function)),
      turns_("this captured function") {
  for (const Ciphertext* example : examples) {
    Ciphertext input = evaluator_->copy(evaluator_->bind(*example));
    input.seed.reset();
    input.history = History::example(input.size(), example->history.norm2());
    inputs_.push_back(std::move(input));
  }
  const device::Device& device = *evaluator_->engine().device();
  graph_ = device.record([this] { outputs_ = function_(std::as_const(inputs_)); });
  for (const Ciphertext& a : outputs_) {
    require<InvalidArgument>(
        a.data != nullptr && (a.size() == 0 || a.data->data.memory() == device.memory().get()),
        "the results of a captured function must be ciphertexts of its own evaluator");
  }
}

void Program::check(std::span<const Ciphertext> inputs) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Ciphertext &input = inputs[i], &example = inputs_[i];
    require<KeyMismatch>(input.key_id == example.key_id, [&] {
      return named(i) +
             "belongs to another secret key than its example: capture the function for each client";
    });
    require<InvalidArgument>(input.size() == example.size(), [&] {
      return named(i) + "has " + std::to_string(input.size()) + " elements, and its example has " +
             std::to_string(example.size()) + ": capture the function for such inputs";
    });
    for (std::size_t j = 0; j < input.size(); ++j) {
      require<InvalidArgument>(input.degree[j] <= example.degree[j], [&] {
        return named(i) + "has values of up to " + std::to_string(input.degree[j]) +
               ", and its example has values of up to " + std::to_string(example.degree[j]) +
               ": capture the function with such an example";
      });
    }
    require<InvalidArgument>(input.history.norm2() <= example.history.norm2(), [&] {
      return named(i) +
             "has more noise than its example: refresh it before, or capture the function with an "
             "example like it";
    });
  }
  require<InvalidArgument>(
      History::joined(histories(inputs)).independent(),
      "the inputs of the captured function share errors, because they are sums or one of them is "
      "given twice: refresh them before");
}

std::size_t Program::bytes() const {
  std::size_t total = graph_->bytes();
  for (const Ciphertext& input : inputs_) total += input.data->bytes();
  return total;
}

std::vector<Ciphertext> Program::run(std::span<const Ciphertext* const> inputs) {
  require<InvalidArgument>(inputs.size() == inputs_.size(), [&] {
    return "the captured function takes " + std::to_string(inputs_.size()) + " ciphertexts, not " +
           std::to_string(inputs.size());
  });
  std::vector<Ciphertext> given;
  for (const Ciphertext* input : inputs) given.push_back(evaluator_->bind(*input));
  check(given);
  const Turns::Turn turn = turns_.take();
  const std::vector<History> made =
      History::repeated(histories(outputs_), histories(inputs_), histories(given));
  device::Memory& memory = *evaluator_->engine().device()->memory();
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].size() == 0) continue;
    auto& block = const_cast<lwe::LweBlock&>(*inputs_[i].data);  // this program's own
    memory.copy(block.data.data(), given[i].data->data.data(), block.bytes());
  }
  graph_->run();
  std::vector<Ciphertext> out;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    out.push_back(evaluator_->copy(outputs_[i]));
    out.back().history = made[i];
  }
  return out;
}

}  // namespace jali::tfhe
