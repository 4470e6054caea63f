// See the header. In Python it is discrete.Matrix.
#include "discrete_matrix.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "discrete.h"
#include "discrete_evaluator.h"
#include "jali/circuits/discrete/integer_matrix.h"

namespace jali::python {

using namespace nb::literals;

namespace {

/// (rows, columns) numbers.
using Numbers = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

class DiscreteMatrix {
 public:
  DiscreteMatrix(const DiscreteEvaluator& e, std::size_t columns, int level, bool wrap,
                 std::size_t babies)
      : matrix_(e.server->shared, columns, checked_level(*e.server->params, level),
                wrap ? discrete::Overflow::wrap : discrete::Overflow::refuse, babies) {}

  void append(const Numbers& rows) {
    require<InvalidArgument>(rows.shape(1) == matrix_.columns(),
                             "rows have as many numbers as the matrix has columns");
    const std::span<const std::int64_t> numbers(rows.data(), rows.size());
    const nb::gil_scoped_release release;
    matrix_.append(numbers);
  }
  DiscreteArray multiply(const DiscreteEvaluator& e, const DiscreteArray& x) const {
    jali::python::count(e.server->counters->plain_products);
    return {matrix_.multiply(*e.server->evaluator, x.block), std::nullopt, false};
  }
  std::size_t bytes() const { return matrix_.bytes(); }
  int level() const { return matrix_.level(); }

 private:
  circuits::IntegerMatrix matrix_;
};

}  // namespace

void bind_discrete_matrix(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<DiscreteMatrix>(m, "MatrixCore", "See jali.discrete.Matrix.")
      .def(nb::init<const DiscreteEvaluator&, std::size_t, int, bool, std::size_t>(), "evaluator"_a,
           "columns"_a, "level"_a, "wrap"_a, "babies"_a)
      .def_static(
          "nbytes_of",
          [](const DiscreteParams& params, std::size_t rows, std::size_t columns, int level) {
            const std::size_t n = params.ptr->n();
            return (rows + n - 1) / n *
                   circuits::IntegerMatrix::block_bytes(*params.ptr, columns,
                                                        checked_level(*params.ptr, level));
          },
          "params"_a, "rows"_a, "columns"_a, "level"_a)
      .def("append", &DiscreteMatrix::append, "rows"_a,
           nb::sig("def append(self, rows: numpy.typing.NDArray[numpy.int64]) -> None"))
      .def("multiply", &DiscreteMatrix::multiply, "evaluator"_a, "x"_a, nogil())
      .def_prop_ro("level", &DiscreteMatrix::level, "The level of its products' operands.")
      .def_prop_ro("nbytes", &DiscreteMatrix::bytes,
                   "Bytes that it takes in the memory of the device.");
}

}  // namespace jali::python
