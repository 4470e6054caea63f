#include "jali/wire/ckks_view.h"

#include <cstdint>

namespace jali::wire {

void write_view(Writer& writer, const ckks::View& view) {
  writer.u8(static_cast<std::uint8_t>(view.axes.size()));
  for (const auto& axis : view.axes) {
    writer.u32(axis.count);
    writer.i32(axis.stride);
  }
  writer.u32(view.first);
  writer.u32(view.period);
}

ckks::View read_view(Reader& reader) {
  ckks::View view;
  const std::size_t axes = reader.u8();
  reader.check(axes <= ckks::View::kMostAxes, "its array has too many axes");
  view.axes.resize(axes);
  for (auto& axis : view.axes) {
    axis.count = reader.u32();
    axis.stride = reader.i32();
  }
  view.first = reader.u32();
  view.period = reader.u32();
  return view;
}

}  // namespace jali::wire
