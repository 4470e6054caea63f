#include "jali/ckks/packing.h"

#include <cstdint>
#include <string>

#include "jali/base/error.h"

namespace jali::ckks {

namespace {

std::size_t slots_of(const Ciphertext& a) { return std::size_t{1} << a.log_slots; }

Packing merge(const Ciphertext& a, const Ciphertext& b) {
  const std::size_t la = length_of(a), lb = length_of(b);
  require<InvalidArgument>(a.log_slots == b.log_slots, [&] {
    return "operands are packed in " + std::to_string(slots_of(a)) + " and " +
           std::to_string(slots_of(b)) + " slots: encrypt both with the same slots=";
  });
  require<InvalidArgument>(la == lb || a.packing.length == 0 || b.packing.length == 0, [&] {
    return "operands have the lengths " + std::to_string(la) + " and " + std::to_string(lb) +
           ": make them equal, or call with_length() if the zeros past the end are part of the "
           "vector";
  });
  require<InvalidArgument>(a.batch() == b.batch() || a.batch() == 1 || b.batch() == 1, [&] {
    return "operands have the batches " + std::to_string(a.batch()) + " and " +
           std::to_string(b.batch()) + ": make them equal, or one of them 1";
  });
  require<InvalidArgument>(
      a.packing.view == b.packing.view,
      "the operands are arrays that lie differently in their slots: move one to where "
      "the other lies first");
  Packing out;
  out.view = a.packing.view;
  out.length = la == lb ? a.packing.length : 0;
  out.batched = a.packing.batched || b.packing.batched;
  out.complex_values = a.packing.complex_values || b.packing.complex_values;
  return out;
}

Packing merge(const Ciphertext& a, const Numbers& b) {
  const std::size_t la = length_of(a);
  require<InvalidArgument>(b.count() == la || b.count() == slots_of(a), [&] {
    return "the array has the length " + std::to_string(b.count()) + ", the ciphertext " +
           std::to_string(la) + " of " + std::to_string(slots_of(a)) +
           " slots: give an array of one of these two lengths, or a number";
  });
  require<InvalidArgument>(b.batch == 1 || b.batch == a.batch(), [&] {
    return "the array has " + std::to_string(b.batch) + " rows, the ciphertext a batch of " +
           std::to_string(a.batch()) + ": give one row, or one for each";
  });
  Packing out = a.packing;
  if (b.count() != la) out.length = 0;
  out.batched = a.packing.batched || b.batched;
  out.complex_values = a.packing.complex_values || b.complex_values;
  return out;
}

}  // namespace

std::size_t length_of(const Ciphertext& a) {
  return a.packing.length == 0 ? slots_of(a) : a.packing.length;
}

std::size_t length_of(const ProductSum& a) {
  return a.packing.length == 0 ? std::size_t{1} << a.log_slots() : a.packing.length;
}

bool is_batched(const Ciphertext& a) { return a.packing.batched || a.batch() > 1; }
bool is_batched(const ProductSum& a) { return a.packing.batched || a.batch() > 1; }

Packing packing_of_fresh(std::size_t count, int log_slots, bool batched, bool complex_values) {
  const std::size_t slots = std::size_t{1} << log_slots;
  require<InvalidArgument>(count <= slots, [&] {
    return "a vector of " + std::to_string(count) + " numbers does not fit " +
           std::to_string(slots) + " slots: spread it over several vectors (dense_view), or use a larger log_n";
  });
  Packing out;
  out.length = count == slots ? 0 : static_cast<std::uint32_t>(count);
  out.batched = batched;
  out.complex_values = complex_values;
  out.padded = count < slots;
  return out;
}

Packing packing_of_sum(const Ciphertext& a, const Ciphertext& b) {
  Packing out = merge(a, b);
  out.padded = (out.length != 0 || out.view) && a.packing.padded && b.packing.padded;
  return out;
}

Packing packing_of_product(const Ciphertext& a, const Ciphertext& b) {
  Packing out = merge(a, b);
  out.padded = (out.length != 0 || out.view) && (a.packing.padded || b.packing.padded);
  return out;
}

Packing packing_of_sum(const Ciphertext& a, const Numbers& b) {
  Packing out = merge(a, b);
  out.padded = out.length != 0 && a.packing.padded;  // with a view, b may hold a number in any slot
  return out;
}

Packing packing_of_product(const Ciphertext& a, const Numbers& b) {
  Packing out = merge(a, b);
  out.padded = out.length != 0 || (out.view && a.packing.padded);  // the array is zero past its end
  return out;
}

Packing packing_of_sum(const Ciphertext& a, std::complex<double> b) {
  Packing out = a.packing;
  out.padded = a.packing.padded && b == 0.0;
  out.complex_values = a.packing.complex_values || b.imag() != 0;
  return out;
}

Packing packing_of_product(const Ciphertext& a, std::complex<double> b) {
  Packing out = a.packing;
  out.complex_values = a.packing.complex_values || b.imag() != 0;
  return out;
}

Packing packing_of_moved(const Packing& a) {
  Packing out = a;
  out.padded = false;
  out.view.reset();
  return out;
}

Packing packing_of_joined(const Ciphertext& a, const Ciphertext& b) {
  Packing out = a.packing;
  if (a.packing.view != b.packing.view) out.view.reset();
  if (a.packing.length != b.packing.length) out.length = 0;
  out.batched = a.packing.batched || b.packing.batched;
  out.complex_values = a.packing.complex_values || b.packing.complex_values;
  out.padded = (out.length != 0 || out.view) && a.packing.padded && b.packing.padded;
  return out;
}

}  // namespace jali::ckks
