#include "arrays.h"

#include <nanobind/stl/complex.h>

#include <algorithm>
#include <memory>

namespace jali::python {

namespace {

template <class T>
nb::object own(std::unique_ptr<T[]> data, std::size_t batch, std::size_t length, bool batched) {
  T* raw = data.release();
  nb::capsule owner(raw, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  const std::size_t shape[2] = {batch, length};
  nb::ndarray<nb::numpy, T> array(raw, batched ? 2 : 1, batched ? shape : shape + 1, owner);
  return nb::cast(std::move(array));
}

}  // namespace

Vectors::Vectors(nb::handle values, const char* what) {
  nb::object array = nb::module_::import_("jali._core.arrays").attr("as_vectors")(values, what);
  if (!nb::try_cast(array, real_, false)) {
    complex_ = nb::cast<decltype(complex_)>(array, false);
  }
  const std::size_t ndim = is_complex() ? complex_.ndim() : real_.ndim();
  const auto extent = [&](std::size_t i) {
    return is_complex() ? complex_.shape(i) : real_.shape(i);
  };
  batched_ = ndim == 2;
  batch_ = batched_ ? extent(0) : 1;
  count_ = extent(ndim - 1);
}

std::span<const std::complex<double>> Vectors::as_complex(
    std::vector<std::complex<double>>& store) const {
  if (is_complex()) return complex();
  const auto values = real();
  store.assign(values.begin(), values.end());
  return store;
}

nb::object to_numpy(std::span<const std::complex<double>> values, std::size_t batch,
                    std::size_t length, bool batched, bool complex_values) {
  const std::size_t stride = values.size() / batch;
  if (complex_values) {
    auto out = std::make_unique<std::complex<double>[]>(batch * length);
    for (std::size_t b = 0; b < batch; ++b) {
      std::copy_n(values.data() + b * stride, length, out.get() + b * length);
    }
    return own(std::move(out), batch, length, batched);
  }
  auto out = std::make_unique<double[]>(batch * length);
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t i = 0; i < length; ++i) out[b * length + i] = values[b * stride + i].real();
  }
  return own(std::move(out), batch, length, batched);
}

}  // namespace jali::python
