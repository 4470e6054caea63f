// Keys, encrypted arrays and look-up tables of TFHE for Python: opaque and immutable.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "files.h"
#include "interrupts.h"
#include "jali/wire/tfhe.h"
#include "methods.h"
#include "refusals.h"
#include "tfhe.h"
#include "tfhe_bytes.h"

namespace jali::python {

namespace {

std::size_t digits_of(const TfheArray& a) { return a.layout().digits(*a.block.params); }

}  // namespace

nb::tuple shape_of(const std::vector<std::size_t>& shape) {
  nb::list axes;
  for (const std::size_t axis : shape) axes.append(axis);
  return nb::tuple(axes);
}

std::string described(const std::vector<std::size_t>& shape, int bits, bool is_signed,
                      const tfhe::Params& params) {
  std::string out = "shape=(";
  for (const std::size_t axis : shape) out += std::to_string(axis) + ",";
  out += "), ";
  out += bits == 0 ? "messages" : (is_signed ? "int" : "uint") + std::to_string(bits);
  return out + ", params='" + params.name() + "'";
}

namespace {

/// Without a layout, as a program in C++ may send it, it is a vector of messages.
TfheArray array_of(tfhe::Ciphertext block) {
  const tfhe::Layout layout =
      block.layout.value_or(tfhe::Layout{{static_cast<std::uint32_t>(block.size())}});
  block.layout.reset();
  return {
      std::move(block), {layout.shape.begin(), layout.shape.end()}, layout.bits, layout.is_signed};
}

wire::Bytes bytes_of(const TfheArray& a) {
  tfhe::Ciphertext laid = a.block;
  laid.layout = a.layout();
  return wire::to_bytes(laid);
}

std::string repr(const TfheArray& a) {
  return "Ciphertext(" + described(a.shape, a.bits, a.is_signed, *a.block.params) + ")";
}

}  // namespace

void bind_tfhe_values(nb::module_& m) {
  nb::class_<TfheKeys> keys(
      m, "EvaluationKeys",
      R"(The public keys with which a server computes: bootstrapping and key switching.

Client.evaluation_keys makes them.

>>> client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"))
>>> keys = client.evaluation_keys()
>>> keys.key_id == client.key_id
True)");
  refuse_constructor(keys, "evaluation keys are made by Client.evaluation_keys()");
  refuse_methods(keys, {"__add__", "__radd__", "__or__", "__ror__"},
                 "evaluation keys are not joined: Client.evaluation_keys() makes all that a server "
                 "needs");
  add_to_bytes(keys, [](const TfheKeys& k) { return wire::to_bytes(*k.ptr, interrupts()); });
  method(
      keys, "save", 1, {{"file", std::nullopt, kFileType}},
      [](const TfheKeys& k, nb::handle file) {
        save_to(file, [&](const wire::Sink& sink) { wire::write(*k.ptr, sink); });
      },
      kSave);
  keys.def_prop_ro(
          "params", [](const TfheKeys& k) { return TfheParams{k.ptr->params}; }, "Its parameters.")
      .def_prop_ro(
          "key_id", [](const TfheKeys& k) { return to_string(k.ptr->key_id); },
          "The name of the secret key to which they belong; see Client.key_id.")
      .def_prop_ro(
          "nbytes", [](const TfheKeys& k) { return k.ptr->bytes(); },
          "Bytes in memory, with their masks as seeds.")
      .def_static(
          "from_bytes",
          checked({"EvaluationKeys.from_bytes",
                   3,
                   {{"data"}, {"params"}, {"max_bytes", nb::int_(wire::Limits{}.max_bytes)}}},
                  [](nb::handle data, const TfheParams& params, std::size_t max_bytes) {
                    const BytesView view(data);
                    nb::gil_scoped_release release;
                    return TfheKeys{std::make_shared<const lwe::EvaluationKeys>(
                        wire::tfhe_keys_from_bytes(view.span(), params.ptr, limited(max_bytes)))};
                  }),
          nb::sig("def from_bytes(data: bytes | bytearray | memoryview, params: Params, "
                  "max_bytes: int = ...) -> EvaluationKeys"),
          kTfheFromBytes)
      .def_static(
          "load",
          checked({"EvaluationKeys.load",
                   3,
                   {{"file"}, {"params"}, {"max_bytes", nb::int_(wire::Limits{}.max_bytes)}}},
                  [](nb::handle file, const TfheParams& params, std::size_t max_bytes) {
                    const wire::Limits limits = limited(max_bytes);
                    return TfheKeys{std::make_shared<const lwe::EvaluationKeys>(load_from(
                        file,
                        [&](std::span<const std::uint8_t> bytes) {
                          return wire::tfhe_keys_from_bytes(bytes, params.ptr, limits);
                        },
                        [&](const wire::Source& source) {
                          return wire::read_tfhe_keys(source, params.ptr, limits);
                        }))};
                  }),
          nb::sig(
              "def load(file: str | os.PathLike[str] | typing.BinaryIO | bytes, params: Params, "
              "max_bytes: int = ...) -> EvaluationKeys"),
          kTfheLoad)
      .def("__repr__", [](const TfheKeys& k) {
        return "EvaluationKeys(params='" + k.ptr->params->name() +
               "', nbytes=" + std::to_string(k.ptr->bytes()) + ")";
      });
  share_copies(keys);

  nb::class_<TfheArray> array(
      m, "Ciphertext",
      R"(An encrypted array of messages or of integers. Client.encrypt makes it.

>>> client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"))
>>> sent = client.encrypt([1, 2, 3]).to_bytes()
>>> client.decrypt(tfhe.Ciphertext.from_bytes(sent, client.params))
array([1, 2, 3]))");
  refuse_constructor(array, "ciphertexts are made by Client.encrypt and Client.encrypt_uint");
  method(
      array, "with_shape", 1, {{"shape"}},
      [](const TfheArray& a, const std::vector<std::size_t>& shape) {
        std::size_t count = digits_of(a);
        for (const std::size_t axis : shape) count *= axis;
        require<InvalidArgument>(count == a.block.size(),
                                 "the shape has another number of elements than the array");
        TfheArray out = a;
        out.shape = shape;
        return out;
      },
      "The same elements, in C order, in another shape.");
  add_to_bytes(array, &bytes_of);
  add_save(array, &bytes_of);
  array
      .def_prop_ro(
          "params", [](const TfheArray& a) { return TfheParams{a.block.params}; },
          "Its parameters.")
      .def_prop_ro(
          "key_id", [](const TfheArray& a) { return to_string(a.block.key_id); },
          "The name of the secret key to which it belongs; see Client.key_id.")
      .def_prop_ro(
          "shape", [](const TfheArray& a) { return shape_of(a.shape); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "The shape of the array.")
      .def_ro("bits", &TfheArray::bits, "The width of integers, or 0 for messages.")
      .def_ro("is_signed", &TfheArray::is_signed, "Whether integers have a sign.")
      .def_prop_ro("digits", &digits_of, "LWE ciphertexts of each element.")
      .def_prop_ro(
          "largest", [](const TfheArray& a) { return a.block.max_degree(); },
          "The largest value that a digit can have, by the computation that made it.")
      .def_prop_ro(
          "norm2", [](const TfheArray& a) { return a.block.history.norm2(); },
          "The squared norm of the weights since the last look-up; Params.max_norm2 bounds it.")
      .def_prop_ro(
          "nbytes",
          [](const TfheArray& a) { return a.block.params->ciphertext_bytes(a.block.size()); },
          "Bytes in memory.");
  add_readers(array, [](std::span<const std::uint8_t> bytes, const tfhe::ParamsPtr& params,
                        const wire::Limits& limits) {
    return array_of(wire::tfhe_ciphertext_from_bytes(bytes, params, limits));
  });
  array.def("__repr__", &repr);
  refuse_methods(
      array, {"__eq__", "__lt__", "__le__", "__gt__", "__ge__"},
      "ciphertexts cannot be compared: bind them to an Evaluator, or decrypt them first");
  refuse_methods(array, {"__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__"},
                 "a ciphertext alone cannot compute: x = evaluator.bind(ciphertext)");
  share_copies(array);

  nb::class_<TfheTable> table(
      m, "Table",
      R"(A look-up table: a function of the values 0 to 2^(message_bits + carry_bits) - 1.

params: the parameters of the values.
values: the results, for 0, 1, 2, ...; each below 2^(message_bits + carry_bits). Values that are not listed must not occur.

Evaluator.apply takes it. Raises InvalidArgument for results that do not fit.

>>> square = tfhe.Table(tfhe.Params.preset("message_2_carry_2"), [0, 1, 4, 9])
>>> square.count, square.values[:4]
(1, [0, 1, 4, 9]))");
  table
      .def("__init__",
           checked_method<TfheTable*>(
               {"Table", 2, {{"params"}, {"values"}}},
               [](TfheTable* self, const TfheParams& params, const std::vector<std::uint64_t>& v) {
                 new (self) TfheTable{std::make_shared<const tfhe::LookUpTable>(
                     params.ptr, std::span<const std::uint64_t>(v))};
               }),
           nb::sig("def __init__(self, params: Params, values: typing.Sequence[int]) -> None"))
      .def_static(
          "together",
          checked({"Table.together", 1, {{"tables"}}},
                  [](const std::vector<TfheTable>& tables) {
                    std::vector<tfhe::LookUpTable> parts;
                    for (const auto& one : tables) parts.push_back(*one.ptr);
                    return TfheTable{std::make_shared<const tfhe::LookUpTable>(
                        tfhe::LookUpTable::together(parts))};
                  }),
          nb::sig("def together(tables: typing.Sequence[Table]) -> Table"),
          R"(Several functions that one rotation computes: Evaluator.apply_all. Their number is a power of two. If they lie side by side,
because inputs are small enough, that costs nothing. Otherwise every doubling costs a bit of the precision with which a
rotation sees its input, so parameters must be made for it. Raises InvalidArgument or ParamsMismatch if they do not fit together.)")
      .def_prop_ro(
          "params", [](const TfheTable& t) { return TfheParams{t.ptr->params()}; },
          "Its parameters.")
      .def_prop_ro(
          "count", [](const TfheTable& t) { return t.ptr->count(); }, "How many functions it has.")
      .def_prop_ro(
          "values",
          [](const TfheTable& t) {
            const auto values = t.ptr->values(0);
            return std::vector<std::uint64_t>(values.begin(), values.end());
          },
          "The results of its first function.")
      .def("__repr__", [](const TfheTable& t) {
        return "Table(params='" + t.ptr->params()->name() +
               "', count=" + std::to_string(t.ptr->count()) + ")";
      });
  share_copies(table);
}

}  // namespace jali::python
