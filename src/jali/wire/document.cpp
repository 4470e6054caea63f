#include "jali/wire/document.h"

#include <cmath>
#include <cstring>

#include "jali/base/error.h"
#include "jali/wire/reader.h"
#include "jali/wire/writer.h"

namespace jali::wire {

namespace {

/// A NumbersView, and its shape with what malloc adds.
constexpr std::uint64_t kArrayMemory = 96;

bool all_finite(std::span<const std::uint8_t> values) {
  for (std::size_t at = 0; at < values.size(); at += sizeof(double)) {
    double x = 0;
    std::memcpy(&x, &values[at], sizeof(x));
    if (!std::isfinite(x)) return false;
  }
  return true;
}

}  // namespace

Bytes to_bytes(Kind kind, const DocumentView& document) {
  const auto cannot = [&](const char* why) {
    return std::string("cannot write a ") + object_name(kind.object) + ": " + why;
  };
  require<InvalidArgument>(document.text.size() <= kMostText, [&] {
    return cannot("its text has more than 64 MiB: use fewer or smaller inputs");
  });
  std::uint64_t bytes = 8 + document.text.size();
  for (const NumbersView& array : document.arrays) {
    std::uint64_t count = 1;
    for (const std::uint32_t size : array.shape) count *= size;
    require<InvalidArgument>(array.shape.size() <= kMostAxes && count > 0 &&
                                 array.values.size() == count * sizeof(double),
                             [&] { return cannot("an array has too many axes or no number"); });
    require<InvalidArgument>(all_finite(array.values),
                             [&] { return cannot("it holds NaN or infinity"); });
    bytes += 1 + 4 * array.shape.size() + array.values.size();
  }
  Writer writer(kind, {}, bytes);
  writer.u32(static_cast<std::uint32_t>(document.text.size()));
  writer.raw({reinterpret_cast<const std::uint8_t*>(document.text.data()), document.text.size()});
  writer.u32(checked_cast<std::uint32_t, InvalidArgument>(document.arrays.size()));
  for (const NumbersView& array : document.arrays) {
    writer.u8(static_cast<std::uint8_t>(array.shape.size()));
    for (const std::uint32_t size : array.shape) writer.u32(size);
    writer.raw(array.values);
  }
  return writer.finish();
}

DocumentView document_from_bytes(std::span<const std::uint8_t> bytes, Kind kind,
                                 const Limits& limits) {
  const Frame frame = open_frame(bytes, kind, limits);
  Reader reader(frame, limits);
  reader.check(frame.params_hash == ParamsHash{}, "it names parameters outside of its text");
  const std::uint32_t length = reader.u32();
  reader.check(length <= kMostText, "its text is too long");
  const auto text = reader.raw(length);
  DocumentView out{{reinterpret_cast<const char*>(text.data()), text.size()}, {}};
  const std::uint32_t arrays = reader.u32();
  constexpr std::size_t kLeast = 1 + sizeof(double);
  reader.check(arrays <= reader.remaining() / kLeast, "it has fewer arrays than it says");
  reader.charge(std::uint64_t{arrays} * kArrayMemory);
  out.arrays.reserve(arrays);
  for (std::uint32_t k = 0; k < arrays; ++k) {
    NumbersView array;
    array.shape.resize(reader.u8());
    reader.check(array.shape.size() <= kMostAxes, "an array has too many axes");
    std::uint64_t count = 1;
    for (std::uint32_t& size : array.shape) {
      size = reader.u32();
      reader.check(size > 0, "an array has no number");
      count *= size;
      reader.check(count <= reader.remaining() / sizeof(double), "it ends inside an array");
    }
    array.values = reader.raw(count * sizeof(double));
    reader.check(all_finite(array.values), "it holds NaN or infinity");
    out.arrays.push_back(std::move(array));
  }
  reader.finish();
  return out;
}

}  // namespace jali::wire
