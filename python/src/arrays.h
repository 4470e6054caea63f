// Conversion of numbers between NumPy and the library.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <complex>
#include <cstddef>
#include <span>
#include <vector>

namespace jali::python {

namespace nb = nanobind;

/// A checked, contiguous view of an array of Python: `batch` rows of `count` numbers. It holds a
/// reference to the array, so it must be made and dropped with the interpreter's lock held. The
/// spans may be read without the lock.
class Vectors {
 public:
  /// Accepts what numpy.asarray accepts, in one or two dimensions, of booleans, integers, floats or
  /// complex numbers. jali._core.arrays.as_vectors raises InvalidArgument for anything else.
  explicit Vectors(nb::handle values, const char* what = "values");

  bool is_complex() const { return complex_.is_valid(); }
  std::span<const double> real() const { return {real_.data(), batch_ * count_}; }
  std::span<const std::complex<double>> complex() const {
    return {complex_.data(), batch_ * count_};
  }
  /// The numbers as complex ones. Real ones are converted into `store`.
  std::span<const std::complex<double>> as_complex(std::vector<std::complex<double>>& store) const;
  std::size_t batch() const { return batch_; }
  std::size_t count() const { return count_; }
  bool batched() const { return batched_; }

 private:
  nb::ndarray<const double, nb::c_contig, nb::device::cpu> real_;
  nb::ndarray<const std::complex<double>, nb::c_contig, nb::device::cpu> complex_;
  std::size_t batch_ = 1;
  std::size_t count_ = 0;
  bool batched_ = false;
};

/// A NumPy array of `batch` rows: of every row of `values`, the first `length` numbers, as complex
/// numbers or as their real parts. It has one dimension if not `batched`.
nb::object to_numpy(std::span<const std::complex<double>> values, std::size_t batch,
                    std::size_t length, bool batched, bool complex_values);

}  // namespace jali::python
