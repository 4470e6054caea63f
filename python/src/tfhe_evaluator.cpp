// The side that computes on TFHE ciphertexts.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interrupts.h"
#include "jali/api/threads.h"
#include "jali/backend/tfhe_resolve.h"
#include "jali/tfhe/evaluator.h"
#include "jali/tfhe/gates.h"
#include "progress.h"
#include "tfhe.h"

namespace jali::python {

using namespace nb::literals;

namespace {

using Words = std::vector<std::uint64_t>;

const std::map<std::string, tfhe::Gate>& gates() {
  static const std::map<std::string, tfhe::Gate> names{
      {"and", tfhe::Gate::and_gate},     {"nand", tfhe::Gate::nand_gate},
      {"or", tfhe::Gate::or_gate},       {"nor", tfhe::Gate::nor_gate},
      {"xor", tfhe::Gate::xor_gate},     {"xnor", tfhe::Gate::xnor_gate},
      {"andny", tfhe::Gate::andny_gate}, {"andyn", tfhe::Gate::andyn_gate},
      {"orny", tfhe::Gate::orny_gate},   {"oryn", tfhe::Gate::oryn_gate}};
  return names;
}

/// Operands are brought to the engine's memory, if they are not there.
class TfheEvaluator {
 public:
  TfheEvaluator(const TfheParams& params, const TfheKeys& keys, const std::string& device, int threads,
            const std::optional<Progress>& progress) {
    require_same(*params.ptr, *keys.ptr->params, "the keys are");
    std::shared_ptr<const backend::TfheOps> engine = backend::make_tfhe_engine(
        params.ptr->config(threads == 0 ? default_threads() : threads), device);
    evaluator_ = std::make_shared<const tfhe::Evaluator>(std::move(engine), *keys.ptr,
                                                         with_gil(progress), interrupts());
    if (params.ptr->message_bits() == 1 && params.ptr->carry_bits() == 0) {
      gates_ = std::make_unique<const tfhe::Gates>(evaluator_);
    }
  }

  std::string engine() const { return evaluator_->engine().name(); }
  TfheParams params() const { return {evaluator_->params()}; }
  std::string key_id() const { return to_string(evaluator_->key_id()); }

  TfheArray bind(const TfheArray& a) const { return like(a, evaluator_->bind(a.block)); }
  TfheArray host_copy(const TfheArray& a) const { return like(a, evaluator_->host_copy(a.block)); }

  // The Python side has made the shapes equal, or one operand a single element.
  TfheArray add(const TfheArray& a, const TfheArray& b) const {
    return like(larger(a, b), evaluator_->add(a.block, b.block));
  }
  TfheArray subtract(const TfheArray& a, const TfheArray& b) const {
    return like(larger(a, b), evaluator_->subtract(a.block, b.block));
  }
  TfheArray negate(const TfheArray& a) const { return like(a, evaluator_->negate(a.block)); }
  TfheArray scale(const TfheArray& a, const Words& factors) const {
    return like(a, factors.size() == 1 ? evaluator_->scale(a.block, factors[0])
                                       : evaluator_->scale(a.block, factors));
  }
  TfheArray add_clear(const TfheArray& a, const Words& values) const {
    return like(a, values.size() == 1 ? evaluator_->add_clear(a.block, values[0])
                                      : evaluator_->add_clear(a.block, values));
  }
  TfheArray gather(const TfheArray& a, const std::vector<std::uint32_t>& indices,
                   std::vector<std::size_t> shape) const {
    return {evaluator_->gather(a.block, indices), std::move(shape), a.bits, a.is_signed};
  }
  TfheArray concatenate(const std::vector<TfheArray>& parts, std::vector<std::size_t> shape) const {
    std::vector<const tfhe::Ciphertext*> blocks;
    for (const auto& part : parts) blocks.push_back(&part.block);
    return {evaluator_->concatenate(blocks), std::move(shape), parts.at(0).bits,
            parts.at(0).is_signed};
  }
  /// The elements of all inputs, one after the other, are the columns.
  TfheArray linear(const std::vector<TfheArray>& inputs, const std::vector<std::uint32_t>& begin,
                   const std::vector<std::uint32_t>& column,
                   const std::vector<std::int64_t>& weight,
                   const std::vector<std::int64_t>& constant,
                   std::vector<std::size_t> shape) const {
    std::vector<const tfhe::Ciphertext*> blocks;
    for (const auto& input : inputs) blocks.push_back(&input.block);
    tfhe::Linear matrix;
    matrix.begin = begin;
    matrix.column = column;
    matrix.weight = weight;
    matrix.constant = constant;
    return {evaluator_->linear(blocks, matrix), std::move(shape)};
  }
  TfheArray clear(const Words& values, std::vector<std::size_t> shape) const {
    return {evaluator_->clear(values), std::move(shape)};
  }

  TfheArray apply(const TfheArray& a, const TfheTable& table) const {
    return like(a, evaluator_->apply(a.block, *table.ptr));
  }
  /// Element i takes table which[i].
  TfheArray apply_each(const TfheArray& a, const std::vector<TfheTable>& tables,
                       const std::vector<std::uint32_t>& which) const {
    std::vector<tfhe::LookUpTable> parts;
    for (const auto& one : tables) parts.push_back(*one.ptr);
    return like(a, evaluator_->apply(a.block, evaluator_->bind(parts), which));
  }
  std::vector<TfheArray> apply_all(const TfheArray& a, const TfheTable& table) const {
    std::vector<TfheArray> out;
    for (auto& one : evaluator_->apply_all(a.block, *table.ptr)) out.push_back(like(a, std::move(one)));
    return out;
  }
  TfheArray apply_two(const TfheArray& x, const TfheArray& y, const TfheTable& table) const {
    return like(larger(x, y), evaluator_->apply(x.block, y.block, *table.ptr));
  }
  TfheArray refresh(const TfheArray& a) const { return like(a, evaluator_->refresh(a.block)); }

  TfheArray gate(const std::string& name, const TfheArray& a, const TfheArray& b) const {
    return like(larger(a, b), with_gates().apply(gates().at(name), a.block, b.block));
  }
  TfheArray not_gate(const TfheArray& a) const {
    return like(a, with_gates().not_gate(a.block));
  }
  TfheArray mux(const TfheArray& a, const TfheArray& b, const TfheArray& c) const {
    return like(larger(a, larger(b, c)), with_gates().mux(a.block, b.block, c.block));
  }

 private:
  static const TfheArray& larger(const TfheArray& a, const TfheArray& b) {
    return b.block.size() > a.block.size() ? b : a;
  }
  /// An array with the shape of another.
  static TfheArray like(const TfheArray& a, tfhe::Ciphertext block) {
    return {std::move(block), a.shape, a.bits, a.is_signed};
  }
  const tfhe::Gates& with_gates() const {
    require<Unsupported>(gates_ != nullptr,
                         "gates need parameters whose ciphertexts hold one bit: use "
                         "Params.preset(\"boolean\")");
    return *gates_;
  }

  std::shared_ptr<const tfhe::Evaluator> evaluator_;
  std::unique_ptr<const tfhe::Gates> gates_;  // null unless ciphertexts hold one bit
};

}  // namespace

void bind_tfhe_evaluator(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<TfheEvaluator>(m, "EvaluatorCore", "See jali.tfhe.Evaluator.")
      .def(nb::init<const TfheParams&, const TfheKeys&, const std::string&, int,
                    const std::optional<Progress>&>(),
           "params"_a, "keys"_a, "device"_a, "threads"_a, "progress"_a = nb::none(), nogil())
      .def_prop_ro("engine", &TfheEvaluator::engine, "Backend and instruction set.")
      .def_prop_ro("params", &TfheEvaluator::params, "Its parameters.")
      .def_prop_ro("key_id", &TfheEvaluator::key_id, "The name of the secret key.")
      .def("bind", &TfheEvaluator::bind, "ciphertext"_a, nogil())
      .def("host_copy", &TfheEvaluator::host_copy, "ciphertext"_a, nogil())
      .def("add", &TfheEvaluator::add, "a"_a, "b"_a, nogil())
      .def("subtract", &TfheEvaluator::subtract, "a"_a, "b"_a, nogil())
      .def("negate", &TfheEvaluator::negate, "a"_a, nogil())
      .def("scale", &TfheEvaluator::scale, "a"_a, "factors"_a, nogil())
      .def("add_clear", &TfheEvaluator::add_clear, "a"_a, "values"_a, nogil())
      .def("gather", &TfheEvaluator::gather, "a"_a, "indices"_a, "shape"_a, nogil())
      .def("concatenate", &TfheEvaluator::concatenate, "parts"_a, "shape"_a, nogil())
      .def("linear", &TfheEvaluator::linear, "inputs"_a, "begin"_a, "column"_a, "weight"_a,
           "constant"_a, "shape"_a, nogil())
      .def("clear", &TfheEvaluator::clear, "values"_a, "shape"_a, nogil())
      .def("apply", &TfheEvaluator::apply, "a"_a, "table"_a, nogil())
      .def("apply_each", &TfheEvaluator::apply_each, "a"_a, "tables"_a, "which"_a, nogil())
      .def("apply_all", &TfheEvaluator::apply_all, "a"_a, "table"_a, nogil())
      .def("apply_two", &TfheEvaluator::apply_two, "x"_a, "y"_a, "table"_a, nogil())
      .def("refresh", &TfheEvaluator::refresh, "a"_a, nogil())
      .def("gate", &TfheEvaluator::gate, "name"_a, "a"_a, "b"_a, nogil())
      .def("not_gate", &TfheEvaluator::not_gate, "a"_a, nogil())
      .def("mux", &TfheEvaluator::mux, "a"_a, "b"_a, "c"_a, nogil());
}

}  // namespace jali::python
