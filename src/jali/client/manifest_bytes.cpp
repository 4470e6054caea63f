// The bytes of manifests. Every field is bounded before memory is taken for it, and check() says
// what the fields mean together.
#include <algorithm>
#include <limits>
#include <optional>

#include "jali/base/checked.h"
#include "jali/base/error.h"
#include "jali/client/manifest.h"
#include "jali/wire/reader.h"
#include "jali/wire/writer.h"

namespace jali::client {

namespace {

using wire::Reader;
using wire::Writer;

constexpr std::uint32_t kMostParams = 1 << 16;  // bytes
constexpr std::size_t kMostNameBytes = 4000;

// --- writing -------------------------------------------------------------------------------------

template <class To, class From>
To fitting(From x) {
  return checked_cast<To, InvalidArgument>(x);
}

void write_sizes(Writer& writer, std::span<const std::uint64_t> sizes) {
  writer.u8(fitting<std::uint8_t>(sizes.size()));
  for (const std::uint64_t x : sizes) writer.u32(fitting<std::uint32_t>(x));
}

void write_layout(Writer& writer, const Layout& layout) {
  writer.u8(static_cast<std::uint8_t>(layout.kind));
  write_sizes(writer, layout.shape);
  switch (layout.kind) {
    case Layout::Kind::grid:
      writer.u32(fitting<std::uint32_t>(layout.period));
      writer.u8(fitting<std::uint8_t>(layout.gap));
      write_sizes(writer, layout.grid);
      return;
    case Layout::Kind::repeated:
      writer.u32(fitting<std::uint32_t>(layout.period));
      writer.u32(fitting<std::uint32_t>(layout.width));
      return;
    case Layout::Kind::skewed:
      writer.u32(fitting<std::uint32_t>(layout.count));
      writer.u32(fitting<std::uint32_t>(layout.width));
      return;
    case Layout::Kind::gathered:
      writer.u8(fitting<std::uint8_t>(layout.table.size() / layout.slots));
      for (const std::int32_t number : layout.table) writer.i32(number);
  }
}

void write_numbers(Writer& writer, const Numbers& numbers) {
  const auto kept = numbers.kept();
  writer.u8(kept.size() > 1 ? 1 : 0);
  for (const double x : kept) writer.f64(x);
}

void write_port(Writer& writer, const Port& port) {
  writer.u16(fitting<std::uint16_t>(port.name.size()));
  writer.raw({reinterpret_cast<const std::uint8_t*>(port.name.data()), port.name.size()});
  write_sizes(writer, port.shape);
  write_layout(writer, port.layout);
  for (const Numbers* numbers : {&port.centre, &port.radius, &port.low, &port.high}) {
    write_numbers(writer, *numbers);
  }
  writer.f64(port.rms);
  writer.f64(port.peak);
  writer.u16(fitting<std::uint16_t>(port.level));
}

void write_demand(Writer& writer, const Demand& demand) {
  writer.u32(fitting<std::uint32_t>(demand.rotations.size()));
  for (const auto& [step, level] : demand.rotations) {
    writer.i32(step);
    writer.u16(fitting<std::uint16_t>(level));
  }
  writer.u16(fitting<std::uint16_t>(demand.product));
  writer.i32(demand.conjugation);
  writer.u16(fitting<std::uint16_t>(demand.noise_bits.size()));
  for (const double x : demand.noise_bits) writer.f64(x);
  writer.u8(static_cast<std::uint8_t>(demand.bootstrap));
  writer.u64(demand.bootstrap_bytes);
  writer.f64(demand.restored_bits);
  writer.u8(fitting<std::uint8_t>(demand.packings.size()));
  for (const std::uint32_t x : demand.packings) writer.u32(x);
}

/// The names of columns are the last field, which is left out if no input has any.
void write_columns(Writer& writer, const std::vector<Port>& inputs) {
  if (std::ranges::all_of(inputs, [](const Port& port) { return port.columns.empty(); })) return;
  for (const Port& port : inputs) {
    writer.u32(fitting<std::uint32_t>(port.columns.size()));
    writer.raw({reinterpret_cast<const std::uint8_t*>(port.columns.data()), port.columns.size()});
  }
}

// --- reading -------------------------------------------------------------------------------------

std::vector<std::uint64_t> read_sizes(Reader& reader) {
  const std::size_t axes = reader.u8();
  reader.check(axes <= kMostAxes, "an array has too many axes");
  std::vector<std::uint64_t> sizes(axes);
  for (std::uint64_t& x : sizes) x = reader.u32();
  return sizes;
}

/// Memory for `count` values, which the bytes that are left hold.
template <class T>
std::vector<T> read_values(Reader& reader, std::uint64_t count) {
  reader.check(count <= reader.remaining() / sizeof(T), "it ends inside a list of numbers");
  reader.charge(count * sizeof(T));
  std::vector<T> values(static_cast<std::size_t>(count));
  reader.copy_to({reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(T)});
  return values;
}

/// The product of sizes, or something above kMostNumbers if it is larger.
std::uint64_t count_of(std::span<const std::uint64_t> sizes) {
  std::uint64_t count = 1;
  for (const std::uint64_t x : sizes) {
    if (x != 0 && count > kMostNumbers / x) return kMostNumbers + 1;
    count *= x;
  }
  return count;
}

Layout read_layout(Reader& reader, std::uint64_t slots) {
  Layout layout;
  layout.slots = slots;
  const std::uint8_t kind = reader.u8();
  reader.check(kind <= static_cast<std::uint8_t>(Layout::Kind::gathered), "a layout is unknown");
  layout.kind = static_cast<Layout::Kind>(kind);
  layout.shape = read_sizes(reader);
  switch (layout.kind) {
    case Layout::Kind::grid:
      layout.period = reader.u32();
      layout.gap = reader.u8();
      layout.grid = read_sizes(reader);
      break;
    case Layout::Kind::repeated:
      layout.period = reader.u32();
      layout.width = reader.u32();
      break;
    case Layout::Kind::skewed:
      layout.count = reader.u32();
      layout.width = reader.u32();
      break;
    case Layout::Kind::gathered:
      layout.table = read_values<std::int32_t>(reader, reader.u8() * slots);
  }
  return layout;
}

Numbers read_numbers(Reader& reader, std::uint64_t size) {
  const bool each = reader.flag();
  reader.check(!each || (size > 1 && size <= kMostNumbers), "a list of numbers is none");
  const auto values = read_values<double>(reader, each ? size : 1);
  Numbers numbers(values);
  reader.check(numbers.kept().size() == values.size(), "equal numbers are written one by one");
  return numbers;
}

Port read_port(Reader& reader, std::uint64_t slots) {
  Port port;
  const std::size_t length = reader.u16();
  reader.check(length <= kMostNameBytes, "a name is too long");
  reader.charge(sizeof(Port) + length);
  const auto name = reader.raw(length);
  port.name.assign(name.begin(), name.end());
  port.shape = read_sizes(reader);
  port.layout = read_layout(reader, slots);
  const std::uint64_t size = count_of(port.layout.shape);
  for (Numbers* numbers : {&port.centre, &port.radius, &port.low, &port.high}) {
    *numbers = read_numbers(reader, size);
  }
  port.rms = reader.f64();
  port.peak = reader.f64();
  port.level = reader.u16();
  return port;
}

Demand read_demand(Reader& reader) {
  Demand demand;
  const std::uint32_t rotations = reader.u32();
  constexpr std::size_t kRotationBytes = 6;
  reader.check(rotations <= reader.remaining() / kRotationBytes,
               "it has fewer rotations than it says");
  reader.charge(std::uint64_t{rotations} * 64);  // a node of the map
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (std::uint32_t k = 0; k < rotations; ++k) {
    const std::int32_t step = reader.i32();
    reader.check(step > last, "its rotations are not in order");
    last = step;
    demand.rotations.emplace_hint(demand.rotations.end(), step, reader.u16());
  }
  demand.product = reader.u16();
  demand.conjugation = reader.i32();
  const std::uint16_t outputs = reader.u16();
  demand.noise_bits = read_values<double>(reader, outputs);
  const std::uint8_t bootstrap = reader.u8();
  reader.check(bootstrap <= static_cast<std::uint8_t>(BootstrapKeys::within),
               "its keys of bootstrapping are unknown");
  demand.bootstrap = static_cast<BootstrapKeys>(bootstrap);
  demand.bootstrap_bytes = reader.u64();
  demand.restored_bits = reader.f64();
  demand.packings = read_values<std::uint32_t>(reader, reader.u8());
  return demand;
}

void read_columns(Reader& reader, std::vector<Port>& inputs) {
  if (reader.remaining() == 0) return;
  bool any = false;
  for (Port& port : inputs) {
    const std::uint32_t length = reader.u32();
    reader.check(length <= reader.remaining(), "it ends inside the names of columns");
    reader.charge(length);
    const auto names = reader.raw(length);
    port.columns.assign(names.begin(), names.end());
    any |= length > 0;
  }
  reader.check(any, "no column has a name");
}

std::vector<Port> read_ports(Reader& reader, std::uint64_t slots) {
  const std::uint16_t count = reader.u16();
  reader.check(count <= kMostPorts, "it has too many inputs or outputs");
  std::vector<Port> ports;
  for (std::uint16_t k = 0; k < count; ++k) ports.push_back(read_port(reader, slots));
  return ports;
}

}  // namespace

wire::Bytes to_bytes(const Manifest& manifest) {
  require<InvalidArgument>(manifest.params != nullptr,
                           "cannot write a manifest without parameters");
  Writer writer(kManifest, manifest.params->hash(), 0);
  const wire::Bytes params = wire::to_bytes(*manifest.params);
  writer.u32(fitting<std::uint32_t>(params.size()));
  writer.raw(params);
  writer.u32(manifest.lanes);
  for (const auto* ports : {&manifest.inputs, &manifest.outputs}) {
    writer.u16(fitting<std::uint16_t>(ports->size()));
    for (const Port& port : *ports) write_port(writer, port);
  }
  write_demand(writer, manifest.demand);
  write_columns(writer, manifest.inputs);
  return writer.finish();
}

Manifest manifest_from_bytes(std::span<const std::uint8_t> bytes, const wire::Limits& limits) {
  const wire::Frame frame = wire::open_frame(bytes, kManifest, limits);
  Reader reader(frame, limits);
  Manifest manifest;
  const std::uint32_t length = reader.u32();
  reader.check(length <= kMostParams, "its parameters are too long");
  manifest.params = wire::params_from_bytes(reader.raw(length), limits);
  const ckks::Params& params = *manifest.params;
  require<ParamsMismatch>(frame.params_hash == params.hash(),
                          "cannot read a manifest: it was made for other parameters than it has");
  manifest.lanes = reader.u32();
  reader.check(manifest.lanes >= 1 && manifest.lanes <= params.slots() &&
                   (manifest.lanes & (manifest.lanes - 1)) == 0,
               "lanes: must be a power of two up to the slots");
  manifest.inputs = read_ports(reader, manifest.slots());
  manifest.outputs = read_ports(reader, manifest.slots());
  manifest.demand = read_demand(reader);
  read_columns(reader, manifest.inputs);
  reader.finish();
  check(manifest);
  return manifest;
}

}  // namespace jali::client
