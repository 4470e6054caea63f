// The side that computes on TFHE ciphertexts.
#include "tfhe_evaluator.h"

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

#include "commit.h"
#include "interrupts.h"
#include "jali/api/threads.h"
#include "jali/backend/tfhe_resolve.h"
#include "trace.h"

namespace jali::python {

using namespace nb::literals;

namespace {

using Words = std::vector<std::uint64_t>;

std::map<std::string, tfhe::Gate> gates() {
  return {{"and", tfhe::Gate::and_gate},     {"nand", tfhe::Gate::nand_gate},
          {"or", tfhe::Gate::or_gate},       {"nor", tfhe::Gate::nor_gate},
          {"xor", tfhe::Gate::xor_gate},     {"xnor", tfhe::Gate::xnor_gate},
          {"andny", tfhe::Gate::andny_gate}, {"andyn", tfhe::Gate::andyn_gate},
          {"orny", tfhe::Gate::orny_gate},   {"oryn", tfhe::Gate::oryn_gate}};
}

using Shape = std::vector<std::size_t>;

const TfheArray& larger(const TfheArray& a, const TfheArray& b) {
  return b.block.size() > a.block.size() ? b : a;
}
/// An array with the shape of another.
TfheArray like(const TfheArray& a, tfhe::Ciphertext block) {
  return {std::move(block), a.shape, a.bits, a.is_signed};
}

// The Python side has made the shapes of two operands equal, or one of them a single element.

TfheArray scale(const TfheEvaluator& e, const TfheArray& a, const Words& factors) {
  return like(a, factors.size() == 1 ? e->scale(a.block, factors[0]) : e->scale(a.block, factors));
}
TfheArray add_clear(const TfheEvaluator& e, const TfheArray& a, const Words& values) {
  return like(
      a, values.size() == 1 ? e->add_clear(a.block, values[0]) : e->add_clear(a.block, values));
}
TfheArray concatenate(const TfheEvaluator& e, const std::vector<TfheArray>& parts, Shape shape) {
  std::vector<const tfhe::Ciphertext*> blocks;
  for (const auto& part : parts) blocks.push_back(&part.block);
  return {e->concatenate(blocks), std::move(shape), parts.at(0).bits, parts.at(0).is_signed};
}
/// The elements of all inputs, one after the other, are the columns.
TfheArray linear(const TfheEvaluator& e, const std::vector<TfheArray>& inputs,
                 std::vector<std::uint32_t> begin, std::vector<std::uint32_t> column,
                 std::vector<std::int64_t> weight, std::vector<std::int64_t> constant,
                 Shape shape) {
  std::vector<const tfhe::Ciphertext*> blocks;
  for (const auto& input : inputs) blocks.push_back(&input.block);
  tfhe::Linear matrix;
  matrix.begin = std::move(begin);
  matrix.column = std::move(column);
  matrix.weight = std::move(weight);
  matrix.constant = std::move(constant);
  return {e->linear(blocks, matrix), std::move(shape)};
}
/// The matrix of every group of `columns` elements. largest: promised, or none, and then the worst
/// case must fit.
TfheArray linear_rows(const TfheEvaluator& e, const TfheArray& a, std::size_t columns,
                      std::vector<std::uint32_t> begin, std::vector<std::uint32_t> column,
                      std::vector<std::int64_t> weight, std::vector<std::int64_t> constant,
                      std::optional<std::uint64_t> largest, Shape shape) {
  tfhe::Linear matrix;
  matrix.begin = std::move(begin);
  matrix.column = std::move(column);
  matrix.weight = std::move(weight);
  matrix.constant = std::move(constant);
  matrix = matrix.repeated(a.block.size() / columns, columns);
  return {largest ? e->linear_within(a.block, matrix, *largest) : e->linear(a.block, matrix),
          std::move(shape)};
}
/// Element i takes table which[i].
TfheArray apply_each(const TfheEvaluator& e, const TfheArray& a,
                     const std::vector<TfheTable>& tables,
                     const std::vector<std::uint32_t>& which) {
  std::vector<tfhe::LookUpTable> parts;
  for (const auto& one : tables) parts.push_back(*one.ptr);
  return like(a, e->apply(a.block, e->bind(parts), which));
}
std::vector<TfheArray> apply_all(const TfheEvaluator& e, const TfheArray& a,
                                 const TfheTable& table) {
  std::vector<TfheArray> out;
  for (auto& one : e->apply_all(a.block, *table.ptr)) out.push_back(like(a, std::move(one)));
  return out;
}

}  // namespace

TfheEvaluator::TfheEvaluator(const TfheParams& params, const TfheKeys& keys,
                             const std::string& device, int threads, bool trace,
                             const std::optional<Progress>& progress,
                             const std::string& transform) {
  require_same(*params.ptr, *keys.ptr->params, "the keys are");
  const int used = threads == 0 ? default_threads() : threads;
  std::shared_ptr<const backend::TfheOps> engine =
      backend::make_tfhe_engine(params.ptr->config(used, {}, transform), device);
  engine_ = engine->name();
  if (trace) {
    trace_ = std::make_shared<backend::Trace>(commit());
    engine = backend::make_trace_tfhe(std::move(engine), trace_);
  }
  evaluator_ = std::make_shared<const tfhe::Evaluator>(std::move(engine), *keys.ptr,
                                                       with_gil(progress), interrupts());
  if (params.ptr->message_bits() == 1 && params.ptr->carry_bits() == 0) {
    gates_ = std::make_unique<const tfhe::Gates>(evaluator_);
  }
}

const tfhe::Gates& TfheEvaluator::gates() const {
  require<Unsupported>(gates_ != nullptr,
                       "gates need parameters whose ciphertexts hold one bit: use "
                       "Params.preset(\"boolean\")");
  return *gates_;
}

void bind_tfhe_evaluator(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<TfheEvaluator>(m, "EvaluatorCore", "See jali.tfhe.Evaluator.")
      .def(nb::init<const TfheParams&, const TfheKeys&, const std::string&, int, bool,
                    const std::optional<Progress>&, const std::string&>(),
           "params"_a, "keys"_a, "device"_a, "threads"_a, "trace"_a = false,
           "progress"_a = nb::none(), "transform"_a = "", nogil())
      .def_prop_ro(
          "engine", [](const TfheEvaluator& e) { return e.engine(); },
          "Backend and instruction set.")
      .def_prop_ro(
          "key_bytes",
          [](const TfheEvaluator& e) {
            return e->engine().rotation_key_bytes() + e->engine().switch_key_bytes();
          },
          "The bytes that its keys take in the memory of its device.")
      .def_prop_ro(
          "transform", [](const TfheEvaluator& e) { return e.transform(); },
          "By which transforms blind rotations multiply: \"fft\" or \"ntt\".")
      .def_prop_ro(
          "trace",
          [](const TfheEvaluator& e) {
            return e.trace() == nullptr ? std::nullopt : std::optional(Trace{e.trace()});
          },
          "The record of operations, or None.")
      .def(
          "synchronize",
          [](const TfheEvaluator& e) { e->engine().device()->stream().synchronize(); }, nogil(),
          "Wait until the device has done everything that it was asked to do.")
      .def_prop_ro(
          "params", [](const TfheEvaluator& e) { return TfheParams{e->params()}; },
          "Its parameters.")
      .def_prop_ro(
          "key_id", [](const TfheEvaluator& e) { return to_string(e->key_id()); },
          "The name of the secret key.")
      .def(
          "bind",
          [](const TfheEvaluator& e, const TfheArray& a) { return like(a, e->bind(a.block)); },
          "ciphertext"_a, nogil())
      .def(
          "bind_compact",
          [](const TfheEvaluator& e, const TfheCompact& a) {
            return TfheArray{e->bind(a.block), a.shape(), a.block.layout->bits,
                             a.block.layout->is_signed};
          },
          "ciphertext"_a, nogil())
      .def(
          "host_copy",
          [](const TfheEvaluator& e, const TfheArray& a) { return like(a, e->host_copy(a.block)); },
          "ciphertext"_a, nogil())
      .def(
          "add",
          [](const TfheEvaluator& e, const TfheArray& a, const TfheArray& b) {
            return like(larger(a, b), e->add(a.block, b.block));
          },
          "a"_a, "b"_a, nogil())
      .def(
          "subtract",
          [](const TfheEvaluator& e, const TfheArray& a, const TfheArray& b) {
            return like(larger(a, b), e->subtract(a.block, b.block));
          },
          "a"_a, "b"_a, nogil())
      .def(
          "negate",
          [](const TfheEvaluator& e, const TfheArray& a) { return like(a, e->negate(a.block)); },
          "a"_a, nogil())
      .def("scale", &scale, "a"_a, "factors"_a, nogil())
      .def("add_clear", &add_clear, "a"_a, "values"_a, nogil())
      .def(
          "gather",
          [](const TfheEvaluator& e, const TfheArray& a, const std::vector<std::uint32_t>& indices,
             Shape shape) {
            return TfheArray{e->gather(a.block, indices), std::move(shape), a.bits, a.is_signed};
          },
          "a"_a, "indices"_a, "shape"_a, nogil())
      .def("concatenate", &concatenate, "parts"_a, "shape"_a, nogil())
      .def("linear", &linear, "inputs"_a, "begin"_a, "column"_a, "weight"_a, "constant"_a,
           "shape"_a, nogil())
      .def("linear_rows", &linear_rows, "a"_a, "columns"_a, "begin"_a, "column"_a, "weight"_a,
           "constant"_a, "largest"_a.none(), "shape"_a, nogil())
      .def(
          "clear",
          [](const TfheEvaluator& e, const Words& values, Shape shape) {
            return TfheArray{e->clear(values), std::move(shape)};
          },
          "values"_a, "shape"_a, nogil())
      .def(
          "apply",
          [](const TfheEvaluator& e, const TfheArray& a, const TfheTable& table) {
            return like(a, e->apply(a.block, *table.ptr));
          },
          "a"_a, "table"_a, nogil())
      .def("apply_each", &apply_each, "a"_a, "tables"_a, "which"_a, nogil())
      .def("apply_all", &apply_all, "a"_a, "table"_a, nogil())
      .def(
          "apply_two",
          [](const TfheEvaluator& e, const TfheArray& x, const TfheArray& y,
             const TfheTable& table) {
            return like(larger(x, y), e->apply(x.block, y.block, *table.ptr));
          },
          "x"_a, "y"_a, "table"_a, nogil())
      .def(
          "refresh",
          [](const TfheEvaluator& e, const TfheArray& a) { return like(a, e->refresh(a.block)); },
          "a"_a, nogil())
      .def(
          "gate",
          [](const TfheEvaluator& e, const std::string& name, const TfheArray& a,
             const TfheArray& b) {
            return like(larger(a, b), e.gates().apply(gates().at(name), a.block, b.block));
          },
          "name"_a, "a"_a, "b"_a, nogil())
      .def(
          "not_gate",
          [](const TfheEvaluator& e, const TfheArray& a) {
            return like(a, e.gates().not_gate(a.block));
          },
          "a"_a, nogil())
      .def(
          "mux",
          [](const TfheEvaluator& e, const TfheArray& a, const TfheArray& b, const TfheArray& c) {
            return like(larger(a, larger(b, c)), e.gates().mux(a.block, b.block, c.block));
          },
          "a"_a, "b"_a, "c"_a, nogil());
}

}  // namespace jali::python
