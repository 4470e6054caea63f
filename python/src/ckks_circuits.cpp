// Matrix-vector products and linear transforms.
#include "ckks_circuits.h"

#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <complex>
#include <optional>
#include <string>

#include "arrays.h"
#include "interrupts.h"
#include "jali/circuits/ckks/arrays.h"
#include "methods.h"
#include "refusals.h"

namespace jali::python {

using namespace nb::literals;
using circuits::Layout;

namespace {

circuits::BsgsOptions bsgs_options(const std::string& hoisting, bool streaming) {
  circuits::BsgsOptions options;
  options.streaming = streaming;
  if (hoisting == "single") {
    options.hoisting = circuits::Hoisting::single;
  } else if (hoisting == "twice") {
    options.hoisting = circuits::Hoisting::twice;
  } else {
    require<InvalidArgument>(hoisting == "auto", [&] {
      return "unknown hoisting \"" + hoisting + "\": use \"auto\", \"single\" or \"twice\"";
    });
  }
  return options;
}

const char* hoisting_name(circuits::Hoisting hoisting) {
  return hoisting == circuits::Hoisting::single ? "single" : "twice";
}

int level_of(const ckks::Params& params, std::optional<int> level) {
  require<InvalidArgument>(level.value_or(0) >= 0, "levels begin at 0");
  return checked_level(params, level.value_or(-1));
}

MatVec make_matvec(nb::handle matrix, const Params& params, std::optional<int> level,
                   nb::handle layout, nb::handle bias, const std::string& hoisting,
                   bool streaming) {
  const Vectors m(matrix, "the matrix's numbers");
  require<InvalidArgument>(m.batched() && !m.is_complex(),
                           "the matrix must be real and have two dimensions (rows, columns)");
  circuits::MatVecOptions options;
  options.level = level_of(*params.ptr, level);
  options.bsgs = bsgs_options(hoisting, streaming);
  if (nb::isinstance<Layout>(layout)) {
    options.input = nb::cast<Layout>(layout);
  } else {
    std::string name;
    require<InvalidArgument>(
        nb::try_cast(layout, name) && (name == "cheapest" || name == "natural"),
        "layout must be \"cheapest\", \"natural\", the output_layout of another MatVec, or the "
        "layout "
        "of an encrypted array");
    if (name == "natural") {
      options.input = Layout::periodic(m.count(), params.ptr->slots(), params.ptr->slots());
    }
  }
  if (!bias.is_none()) {
    const Vectors b(bias, "the bias");
    require<InvalidArgument>(!b.batched() && !b.is_complex() && b.count() == m.batch(), [&] {
      return "the bias must be a real vector of " + std::to_string(m.batch()) +
             " numbers, one for each row of the matrix";
    });
    options.bias.assign(b.real().begin(), b.real().end());
  }
  std::vector<double> numbers(m.real().begin(), m.real().end());
  const std::size_t rows = m.batch(), columns = m.count();
  nb::gil_scoped_release release;
  return {std::make_shared<circuits::Shared<circuits::MatVec>>(
      params.ptr, interrupts(), std::move(numbers), rows, columns, params.ptr, options)};
}

nb::object pack(const MatVec& self, nb::handle values) {
  const Vectors v(values);
  const auto& plan = **self.plan;
  require<InvalidArgument>(!v.is_complex() && v.count() == plan.columns(), [&] {
    return "give real vectors of " + std::to_string(plan.columns()) +
           " numbers, one for each column of the matrix";
  });
  const auto packed = plan.pack(v.real(), v.batch());
  const nb::object known = nb::module_::import_("jali.ckks.packed").attr("known");
  nb::list out;
  for (const auto& slots : packed) {
    const std::vector<std::complex<double>> numbers(slots.begin(), slots.end());
    out.append(known(to_numpy(numbers, v.batch(), slots.size() / v.batch(), v.batched(), false),
                     plan.input_layout(), out.size()));
  }
  return out;
}

nb::object unpack(const MatVec& self, nb::handle outputs) {
  require<InvalidArgument>(PySequence_Check(outputs.ptr()) && !PyUnicode_Check(outputs.ptr()),
                           "outputs must be a sequence of arrays, one for each output");
  const auto& plan = **self.plan;
  std::vector<std::vector<double>> slots_of;
  std::size_t batch = 0;
  bool batched = false;
  for (nb::handle item : outputs) {
    const Vectors v(item, "the outputs");
    require<InvalidArgument>(
        !v.is_complex() && v.count() == plan.output_layout().slots &&
            (slots_of.empty() || (v.batch() == batch && v.batched() == batched)),
        [&] {
          return "give one array (" + std::to_string(plan.output_layout().slots) +
                 ",), or one batch of these, for each output: "
                 "decrypt(..., length=params.slots)";
        });
    batch = v.batch();
    batched = v.batched();
    slots_of.emplace_back(v.real().begin(), v.real().end());
  }
  require<InvalidArgument>(slots_of.size() == plan.output_layout().ciphertexts(), [&] {
    return "give one array for each of the " + std::to_string(plan.output_layout().ciphertexts()) +
           " outputs";
  });
  const auto numbers = plan.unpack(slots_of, batch);
  const std::vector<std::complex<double>> wide(numbers.begin(), numbers.end());
  return to_numpy(wide, batch, plan.rows(), batched, false);
}

circuits::TransformOptions transform_options(const Params& params, std::optional<int> level,
                                             std::int64_t slots, const std::string& hoisting,
                                             bool streaming) {
  circuits::TransformOptions options;
  options.level = level_of(*params.ptr, level);
  options.log_slots = checked_log_slots(*params.ptr, slots);
  options.bsgs = bsgs_options(hoisting, streaming);
  return options;
}

LinearTransform make_transform(const Params& params, nb::dict diagonals, std::optional<int> level,
                               std::int64_t slots, const std::string& hoisting, bool streaming) {
  const auto options = transform_options(params, level, slots, hoisting, streaming);
  const std::size_t length = std::size_t{1} << options.log_slots;
  circuits::Diagonals numbers;
  bool complex_values = false;
  for (auto [key, value] : diagonals) {
    int index = 0;
    require<InvalidArgument>(nb::try_cast(key, index), "diagonals are numbered by whole numbers");
    const Vectors v(value, "a diagonal's numbers");
    require<InvalidArgument>(!v.batched() && v.count() == length, [&] {
      return "diagonal " + std::to_string(index) + " must be a vector of " +
             std::to_string(length) + " numbers, one for each slot";
    });
    complex_values = complex_values || v.is_complex();
    std::vector<std::complex<double>> store;
    const auto entries = v.as_complex(store);
    numbers[index].assign(entries.begin(), entries.end());
  }
  nb::gil_scoped_release release;
  return {std::make_shared<circuits::Shared<circuits::LinearTransform>>(
              params.ptr, interrupts(), params.ptr, std::move(numbers), options),
          complex_values};
}

LinearTransform transform_from_matrix(nb::handle matrix, const Params& params,
                                      std::optional<int> level, const std::string& hoisting,
                                      bool streaming) {
  const Vectors m(matrix, "the matrix's numbers");
  require<InvalidArgument>(m.batched() && m.batch() == m.count(),
                           "the matrix must be square; for other shapes see MatVec");
  const auto options =
      transform_options(params, level, static_cast<std::int64_t>(m.count()), hoisting, streaming);
  nb::gil_scoped_release release;
  std::vector<std::complex<double>> store;
  auto diagonals = circuits::diagonals_of(m.as_complex(store), m.count());
  return {std::make_shared<circuits::Shared<circuits::LinearTransform>>(
              params.ptr, interrupts(), params.ptr, std::move(diagonals), options),
          m.is_complex()};
}

}  // namespace

ckks::Storage storage_of(const std::string& name) {
  if (name == "integers") return ckks::Storage::integers;
  if (name == "streamed") return ckks::Storage::streamed;
  require<InvalidArgument>(name == "residues", [&] {
    return "unknown storage \"" + name + "\": use \"residues\", \"integers\" or \"streamed\"";
  });
  return ckks::Storage::residues;
}

const ckks::Packing& packing_in(const Layout& layout, std::size_t part) {
  require<InvalidArgument>(part < layout.packing.size(), [&] {
    return "the layout has " + std::to_string(layout.packing.size()) +
           " ciphertexts, numbered from 0, and part is " + std::to_string(part);
  });
  return layout.packing[part];
}

void bind_circuits(nb::module_& m) {
  nb::class_<Layout> layout(m, "Layout",
                            R"(Says which element of a vector each slot of ciphertexts holds.

Ciphertexts carry theirs (EncryptedArray.layout), and plans say which they take and give (MatVec.input_layout and
output_layout).

>>> plan = ckks.MatVec(np.eye(3, 5), ckks.Params.create(depth=1))
>>> plan.input_layout.size, plan.output_layout.size
(5, 3))");
  refuse_constructor(layout,
                     "a Layout is not made by hand: a MatVec has input_layout and output_layout");
  layout.def_ro("size", &Layout::size, "Number of elements of the vector.")
      .def_ro("slots", &Layout::slots, "Slots of each ciphertext.")
      .def_prop_ro("ciphertexts", &Layout::ciphertexts, "How many ciphertexts it takes.")
      .def_prop_ro("period", &Layout::period,
                   "The smallest power of two by which rotations change nothing.")
      .def_prop_ro(
          "natural_rotations",
          [](const Layout& l) {
            return circuits::into_order(packing_in(l, 0), std::countr_zero(l.slots)).rotations();
          },
          "The rotation keys that EncryptedArray.natural needs for arrays that lie so.")
      .def("__repr__", [](const Layout& l) { return "Layout(" + l.described() + ")"; })
      .def_static(
          "_of",
          [](std::vector<std::vector<std::int32_t>> element, std::size_t size) {
            Layout layout{size, element.empty() ? 0 : element[0].size(), std::move(element)};
            layout.check();
            return layout;
          },
          "element"_a, "size"_a,
          "The layout that has element[c][s], or nothing if that is -1, in slot s of ciphertext "
          "c.");

  nb::class_<MatVec> matvec(
      m, "MatVec",
      R"(A plan for M x (+ bias): a real matrix (m, n) in the clear times an encrypted vector. It takes one level.

It uses extended diagonals with baby steps, giant steps and hoisting (Halevi and Shoup 2014; Yang, Kuppannagari,
Kannan, Prasanna 2022). A cost model chooses the plan before any key is made. Give `rotations` to
Client.evaluation_keys, encrypt pack(x), and apply the plan with Evaluator.matvec.

>>> matrix, x = np.arange(6.0).reshape(2, 3), [0.5, -1, 0.25]
>>> client = ckks.Client(ckks.Params.create(depth=1))
>>> plan = ckks.MatVec(matrix, client.params)
>>> server = ckks.Evaluator(client.params, client.evaluation_keys(rotations=plan.rotations))
>>> product = server.matvec(plan, server.bind(client.encrypt(plan.pack(x)[0])))
>>> client.decrypt(product).round(3)
array([-0.5 , -1.25]))");
  matvec
      .def("__init__",
           checked_method<MatVec*>(
               {"MatVec",
                2,
                {{"matrix"},
                 {"params"},
                 {"level", nb::none()},
                 {"layout", nb::str("cheapest")},
                 {"bias", nb::none()},
                 {"hoisting", nb::str("auto")},
                 {"streaming", nb::bool_(false)}}},
               [](MatVec* self, nb::handle matrix, const Params& params, std::optional<int> level,
                  nb::handle layout, nb::handle bias, const std::string& hoisting, bool streaming) {
                 new (self)
                     MatVec(make_matvec(matrix, params, level, layout, bias, hoisting, streaming));
               }),
           nb::sig("def __init__(self, matrix: numpy.typing.ArrayLike, params: Params, *, "
                   "level: int | None = None, layout: str | Layout = 'cheapest', "
                   "bias: numpy.typing.ArrayLike | None = None, hoisting: str = 'auto', "
                   "streaming: bool = False) -> None"),
           R"(Plan the product.

matrix: (m, n) real numbers.
level: the level of the input, 1 to params.depth; None stands for the top.
layout: how the input lies: "cheapest" for what pack() gives, "natural" for a vector that Client.encrypt was given
    as it is, the output_layout of another MatVec, or the layout of an encrypted array.
bias: m numbers that are added to the product.
hoisting: "single", "twice" (double hoisting), or "auto" for the one that the cost model finds faster.
streaming: whether to plan for diagonals that are encoded at each use, without Evaluator.prepare.

Raises InvalidArgument for shapes that do not fit or numbers that are not finite, and DepthExhausted at level 0.)")
      .def_prop_ro(
          "rows", [](const MatVec& p) { return (*p.plan)->rows(); }, "Rows of the matrix, m.")
      .def_prop_ro(
          "columns", [](const MatVec& p) { return (*p.plan)->columns(); },
          "Columns of the matrix, n.")
      .def_prop_ro(
          "level", [](const MatVec& p) { return (*p.plan)->level(); },
          "Level of the input; the output lies one lower.")
      .def_prop_ro(
          "rotations", [](const MatVec& p) { return (*p.plan)->rotations(); },
          "Rotation keys that it needs.")
      .def_prop_ro(
          "key_bytes", [](const MatVec& p) { return (*p.plan)->key_bytes(); },
          "Bytes of these keys as Client.evaluation_keys gives them; see EvaluationKeys.nbytes.")
      .def_prop_ro(
          "plaintext_bytes", [](const MatVec& p) { return (*p.plan)->plaintext_bytes(); },
          "Bytes that Evaluator.prepare takes for it, over all primes.")
      .def_prop_ro(
          "integer_bytes",
          [](const MatVec& p) { return (*p.plan)->plaintext_bytes(ckks::Storage::integers); },
          "Bytes that it takes as integers, with storage=\"integers\" or \"streamed\".")
      .def_prop_ro(
          "nbytes", [](const MatVec& p) { return (*p.plan)->bytes(); },
          "Bytes of its encoded matrix in memory; 0 if nothing is prepared.")
      .def_prop_ro(
          "cost", [](const MatVec& p) { return (*p.plan)->cost(); },
          "Predicted time, in units of the NTT of one limb.")
      .def_prop_ro(
          "hoisting", [](const MatVec& p) { return hoisting_name((*p.plan)->plan().hoisting); },
          "'single' or 'twice'.")
      .def_prop_ro(
          "diagonals", [](const MatVec& p) { return (*p.plan)->plan().diagonal_count(); },
          "Products of a ciphertext and a diagonal.")
      .def_prop_ro(
          "input_layout", [](const MatVec& p) { return (*p.plan)->input_layout(); },
          "How the input must lie.")
      .def_prop_ro(
          "output_layout", [](const MatVec& p) { return (*p.plan)->output_layout(); },
          "How the output lies: element r of a block is in slot r, and repeats periodically.")
      .def("__repr__", [](const MatVec& p) {
        return "MatVec(" + std::to_string((*p.plan)->rows()) + " x " +
               std::to_string((*p.plan)->columns()) +
               ", level=" + std::to_string((*p.plan)->level()) + ", " +
               std::to_string((*p.plan)->rotations().size()) + " rotations)";
      });
  method(
      matvec, "working_bytes", 1, {{"batch", nb::int_(1)}},
      [](const MatVec& p, std::size_t batch) { return (*p.plan)->working_bytes(batch); },
      "About how many bytes applying it takes, besides keys and operands.");
  method(
      matvec, "arrangement", 1, {{"layout", nb::none()}},
      [](const MatVec& p, const std::optional<Layout>& layout) {
        const auto& plan = **p.plan;
        const std::size_t slots = plan.input_layout().slots;
        ckks::Packing from;
        if (layout) {
          require<InvalidArgument>(layout->slots == slots, [&] {
            return "the layout is for " + std::to_string(layout->slots) +
                   " slots, and the plan for " + std::to_string(slots);
          });
          from = packing_in(*layout, 0);
        } else {
          from = ckks::packing_of_fresh(plan.columns(), std::countr_zero(slots), false, false);
        }
        const circuits::Arrangement steps = circuits::arrangement(plan, from);
        return std::pair(steps.levels(), steps.rotations());
      },
      R"(What Evaluator.arrange takes for arrays that lie as `layout`: how many levels, and which rotation keys.

layout: None stands for vectors that Client.encrypt was given as they are.

Raises InvalidArgument for a layout of another number of numbers or slots, and if the input takes several ciphertexts.)");
  matvec
      .def(
          "pack", checked_method<const MatVec&>({"MatVec.pack", 1, {{"values"}}}, &pack),
          nb::sig("def pack(self, values: numpy.typing.ArrayLike) -> "
                  "list[numpy.typing.NDArray[numpy.float64]]"),
          R"(Vectors (n,) or (batch, n) as the slots of each input ciphertext: arrays (slots,) or (batch, slots) to encrypt.

The arrays know how the vector lies in them, and so do ciphertexts of them. What is computed from such an array is an
ordinary array. Raises InvalidArgument for another length.)")
      .def(
          "unpack", checked_method<const MatVec&>({"MatVec.unpack", 1, {{"outputs"}}}, &unpack),
          nb::sig("def unpack(self, outputs: collections.abc.Sequence[numpy.typing.ArrayLike]) -> "
                  "numpy.typing.NDArray[numpy.float64]"),
          R"(The product, (m,) or (batch, m), from the decrypted slots of each output, (slots,) or (batch, slots).

Decrypt the outputs with length=params.slots. Raises InvalidArgument for other shapes.)");

  nb::class_<LinearTransform> transform(
      m, "LinearTransform",
      R"(A plan for a linear map of the slots, given by its non-zero diagonals. It takes one level.

Entry s of diagonal d is the factor of slot s + d (cyclically) of the input in slot s of the output. Give
`rotations` to Client.evaluation_keys, and apply the plan with Evaluator.linear_transform.

>>> client = ckks.Client(ckks.Params.create(depth=1))
>>> swap = ckks.LinearTransform.from_matrix([[0, 1], [1, 0]], client.params)
>>> server = ckks.Evaluator(client.params, client.evaluation_keys(rotations=swap.rotations))
>>> x = server.bind(client.encrypt([0.5, -1.25], slots=2))
>>> client.decrypt(server.linear_transform(swap, x)).round(3)
array([-1.25,  0.5 ]))");
  transform
      .def("__init__",
           checked_method<LinearTransform*>(
               {"LinearTransform",
                2,
                {{"params"},
                 {"diagonals"},
                 {"level", nb::none()},
                 {"slots", nb::int_(0)},
                 {"hoisting", nb::str("auto")},
                 {"streaming", nb::bool_(false)}}},
               [](LinearTransform* self, const Params& params, const nb::dict& diagonals,
                  std::optional<int> level, std::int64_t slots, const std::string& hoisting,
                  bool streaming) {
                 new (self) LinearTransform(
                     make_transform(params, diagonals, level, slots, hoisting, streaming));
               }),
           nb::sig(
               "def __init__(self, params: Params, diagonals: dict[int, numpy.typing.ArrayLike], "
               "*, level: int | None = None, slots: int = 0, hoisting: str = 'auto', "
               "streaming: bool = False) -> None"),
           R"(Plan the map.

diagonals: vectors of one number for each slot, by index; indices lie between -slots and slots.
slots: the number of slots of sparsely packed inputs; 0 stands for params.slots.
level, hoisting, streaming: see MatVec.

Raises InvalidArgument for indices or lengths that do not fit, and DepthExhausted at level 0.)")
      .def_static(
          "from_matrix",
          checked({"LinearTransform.from_matrix",
                   2,
                   {{"matrix"},
                    {"params"},
                    {"level", nb::none()},
                    {"hoisting", nb::str("auto")},
                    {"streaming", nb::bool_(false)}}},
                  &transform_from_matrix),
          nb::sig("def from_matrix(matrix: numpy.typing.ArrayLike, params: Params, *, "
                  "level: int | None = None, hoisting: str = 'auto', "
                  "streaming: bool = False) -> LinearTransform"),
          "Plan the map of a square matrix (slots, slots), for inputs with that many slots; slots "
          "is a power of two.")
      .def_prop_ro(
          "level", [](const LinearTransform& p) { return (*p.plan)->level(); },
          "Level of the input; the output lies one lower.")
      .def_prop_ro(
          "rotations", [](const LinearTransform& p) { return (*p.plan)->rotations(); },
          "Rotation keys that it needs.")
      .def_prop_ro(
          "key_bytes", [](const LinearTransform& p) { return (*p.plan)->key_bytes(); },
          "Bytes of these keys as Client.evaluation_keys gives them; see EvaluationKeys.nbytes.")
      .def_prop_ro(
          "plaintext_bytes", [](const LinearTransform& p) { return (*p.plan)->plaintext_bytes(); },
          "Bytes that Evaluator.prepare takes for it, over all primes.")
      .def_prop_ro(
          "integer_bytes",
          [](const LinearTransform& p) {
            return (*p.plan)->plaintext_bytes(ckks::Storage::integers);
          },
          "Bytes that it takes as integers, with storage=\"integers\" or \"streamed\".")
      .def_prop_ro(
          "nbytes", [](const LinearTransform& p) { return (*p.plan)->bytes(); },
          "Bytes of its encoded diagonals in memory; 0 if nothing is prepared.")
      .def_prop_ro(
          "diagonal_count",
          [](const LinearTransform& p) { return (*p.plan)->plan().diagonal_count(); },
          "How many diagonals are not zero.")
      .def_prop_ro(
          "hoisting",
          [](const LinearTransform& p) { return hoisting_name((*p.plan)->plan().hoisting); },
          "'single' or 'twice'.")
      .def("__repr__", [](const LinearTransform& p) {
        return "LinearTransform(level=" + std::to_string((*p.plan)->level()) + ", " +
               std::to_string((*p.plan)->plan().diagonal_count()) + " diagonals)";
      });

  method<nb::gil_scoped_release>(
      transform, "forget", 0, {}, [](const LinearTransform& p) { p.plan->forget(); },
      R"(Let go of the numbers of the diagonals, which take 16 bytes for each slot: once Evaluator.prepare has encoded them,
nothing but a second call needs them, which is refused from then on. Raises InvalidArgument if nothing is prepared.)");
}

}  // namespace jali::python
