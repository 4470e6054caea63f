// Numbers between NumPy and the library.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <complex>
#include <cstddef>
#include <span>
#include <vector>

namespace jali::python {

namespace nb = nanobind;

/// A checked view of an array of Python: `batch` rows of `count` numbers, contiguous. Holds a
/// reference on the array, so it must be made and dropped with the interpreter's lock held; the
/// spans may be read without it.
class Vectors {
 public:
  /// Accepts what numpy.asarray does, 1-D or 2-D, of booleans, integers, floats or complex numbers.
  /// Throws InvalidArgument (through jali._core.arrays.as_vectors) for anything else.
  explicit Vectors(nb::handle values, const char* what = "values");

  bool is_complex() const { return complex_.is_valid(); }
  std::span<const double> real() const { return {real_.data(), batch_ * count_}; }
  std::span<const std::complex<double>> complex() const {
    return {complex_.data(), batch_ * count_};
  }
  /// The numbers as complex ones, converted into `store` when they are real.
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

/// A NumPy array of `batch` rows, the first `length` of each `stride` values, as complex numbers or
/// as their real parts; 1-D when not batched.
nb::object to_numpy(std::span<const std::complex<double>> values, std::size_t batch,
                    std::size_t length, bool batched, bool complex_values);

}  // namespace jali::python
