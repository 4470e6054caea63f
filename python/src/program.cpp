// Manifests, messages and clients of compiled programs. jali.program wraps them.
#include "program.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "bytes.h"
#include "checked.h"

namespace jali::python {

using namespace nb::literals;
using client::Layout;
using client::Port;

namespace {

using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const std::int32_t, nb::c_contig, nb::device::cpu>;
using Bootstrap = std::variant<std::string, std::uint64_t>;
using Arrays = std::vector<std::vector<std::shared_ptr<ckks::Ciphertext>>>;

constexpr std::uint64_t kMostManifestBytes = std::uint64_t{1} << 31;
constexpr const char* kBootstrapKeys[] = {"none", "all", "fewest"};

std::span<const double> span_of(const Doubles& numbers) { return {numbers.data(), numbers.size()}; }

template <class T>
nb::object array_of(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

nb::object array_of(std::span<const double> values) {
  return array_of(std::vector<double>(values.begin(), values.end()));
}

template <class Whole>
nb::typed<nb::tuple, int, nb::ellipsis> ints(const std::vector<Whole>& values) {
  return nb::typed<nb::tuple, int, nb::ellipsis>(nb::tuple(nb::cast(values)));
}

std::string hex(const Digest& digest) {
  std::string out;
  for (const std::uint8_t x : digest) {
    out += "0123456789abcdef"[x >> 4];
    out += "0123456789abcdef"[x & 15];
  }
  return out;
}

/// A program's name; any other text becomes one that no program has.
Digest digest_of(const std::string& text) {
  Digest out{};
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  bool good = text.size() == 2 * out.size();
  for (std::size_t k = 0; good && k < out.size(); ++k) {
    const int high = digit(text[2 * k]), low = digit(text[2 * k + 1]);
    good = high >= 0 && low >= 0;
    out[k] = static_cast<std::uint8_t>(16 * high + low);
  }
  return good ? out : Digest{};
}

// --- layouts -------------------------------------------------------------------------------------

Layout layout_of(Layout::Kind kind, std::vector<std::uint64_t> shape, std::uint64_t slots) {
  Layout out;
  out.kind = kind;
  out.shape = std::move(shape);
  out.slots = slots;
  return out;
}

std::string text_of(const Layout& layout) {
  const std::string slots =
      std::to_string(layout.ciphertexts()) + " x " + std::to_string(layout.slots) + " slots";
  switch (layout.kind) {
    case Layout::Kind::repeated:
      return slots + ", each number " + std::to_string(layout.width) + " times";
    case Layout::Kind::skewed: return slots + ", skewed by " + std::to_string(layout.width);
    case Layout::Kind::gathered: return slots + ", gathered";
    case Layout::Kind::grid: break;
  }
  std::string out = slots;
  if (layout.ciphertexts() == 1)
    out += ", " + std::to_string(layout.slots / layout.period) + " times";
  if (layout.gap > 1) {
    out += ", gap " + std::to_string(layout.gap) + " on ";
    for (std::size_t a = 0; a < layout.grid.size(); ++a)
      out += (a == 0 ? "" : "x") + std::to_string(layout.grid[a]);
  }
  return out;
}

const char* kind_of(const Layout& layout) {
  constexpr const char* kNames[] = {"grid", "repeated", "skewed", "gathered"};
  return kNames[static_cast<std::size_t>(layout.kind)];
}

/// The constructor that pickle uses, and its arguments.
nb::tuple reduced(nb::handle layout) {
  const auto& x = nb::cast<const Layout&>(layout);
  const nb::tuple arguments = nb::make_tuple(static_cast<int>(x.kind), x.shape, x.slots, x.period,
                                             x.gap, x.grid, x.width, x.count, array_of(x.table));
  return nb::make_tuple(layout.type(), arguments);
}

void bind_layout(nb::module_& m) {
  using Sizes = std::vector<std::uint64_t>;
  nb::class_<Layout>(m, "Layout",
                     "Which slot of which ciphertext holds which number of an input or output.")
      .def(
          "__init__",
          [](Layout* self, int kind, Sizes shape, std::uint64_t slots, std::uint64_t period,
             std::uint64_t gap, Sizes grid, std::uint64_t width, std::uint64_t count,
             const Indices& table) {
            require<InvalidArgument>(kind >= 0 && kind <= static_cast<int>(Layout::Kind::gathered),
                                     "a layout is unknown");
            Layout& out = *new (self) Layout(
                layout_of(static_cast<Layout::Kind>(kind), std::move(shape), slots));
            out.period = period;
            out.gap = gap;
            out.grid = std::move(grid);
            out.width = width;
            out.count = count;
            out.table.assign(table.data(), table.data() + table.size());
          },
          "kind"_a, "shape"_a, "slots"_a, "period"_a, "gap"_a, "grid"_a, "width"_a, "count"_a,
          "table"_a)
      .def("__reduce__", &reduced,
           nb::sig("def __reduce__(self) -> tuple[type, tuple[object, ...]]"))
      .def_static(
          "grid",
          [](Sizes shape, std::uint64_t slots, std::uint64_t period, std::uint64_t gap,
             Sizes grid) {
            Layout out = layout_of(Layout::Kind::grid, std::move(shape), slots);
            out.period = period;
            out.gap = gap;
            out.grid = std::move(grid);
            return out;
          },
          "shape"_a, "slots"_a, "period"_a, "gap"_a, "grid"_a)
      .def_static(
          "repeated",
          [](Sizes shape, std::uint64_t slots, std::uint64_t period, std::uint64_t width) {
            Layout out = layout_of(Layout::Kind::repeated, std::move(shape), slots);
            out.period = period;
            out.width = width;
            return out;
          },
          "shape"_a, "slots"_a, "period"_a, "width"_a)
      .def_static(
          "skewed",
          [](Sizes shape, std::uint64_t slots, std::uint64_t count, std::uint64_t width) {
            Layout out = layout_of(Layout::Kind::skewed, std::move(shape), slots);
            out.count = count;
            out.width = width;
            return out;
          },
          "shape"_a, "slots"_a, "count"_a, "width"_a)
      .def_static(
          "gathered",
          [](Sizes shape, std::uint64_t slots, const Indices& table) {
            Layout out = layout_of(Layout::Kind::gathered, std::move(shape), slots);
            out.table.assign(table.data(), table.data() + table.size());
            return out;
          },
          "shape"_a, "slots"_a, "table"_a)
      .def_prop_ro("kind", &kind_of)
      .def_prop_ro("shape", [](const Layout& x) { return ints(x.shape); })
      .def_ro("slots", &Layout::slots)
      .def_ro("period", &Layout::period)
      .def_ro("gap", &Layout::gap)
      .def_prop_ro("grid_sizes", [](const Layout& x) { return ints(x.grid); })
      .def_ro("width", &Layout::width)
      .def_ro("count", &Layout::count)
      .def_prop_ro("table", [](const Layout& x) { return array_of(x.table); })
      .def_prop_ro("ciphertexts", &Layout::ciphertexts)
      .def(
          "contents", [](const Layout& x) { return array_of(x.contents()); },
          "For every slot of every ciphertext the index of its number, or -1.")
      .def("__eq__",
           [](const Layout& a, nb::handle b) {
             return nb::isinstance<Layout>(b) && a == nb::cast<const Layout&>(b);
           })
      .def("__hash__",
           [](const Layout& x) {
             return nb::hash(nb::cast(std::tuple(x.shape, x.slots, std::string(kind_of(x)))));
           })
      .def("__str__", &text_of);
}

// --- ports ---------------------------------------------------------------------------------------

client::Examples examples_of(const Port& port, const Doubles& values) {
  return {span_of(values), values.size() / std::max<std::size_t>(port.size(), 1), false};
}

void bind_port(nb::module_& m) {
  using Sizes = std::vector<std::uint64_t>;
  nb::class_<Port>(m, "PortCore", "See jali.program.Port.")
      .def(
          "__init__",
          [](Port* self, std::string name, Sizes shape, const Layout& layout, const Doubles& centre,
             const Doubles& radius, const Doubles& low, const Doubles& high, double rms,
             double peak, int level, std::string columns) {
            new (self) Port{std::move(name),
                            std::move(shape),
                            layout,
                            client::Numbers(span_of(centre)),
                            client::Numbers(span_of(radius)),
                            client::Numbers(span_of(low)),
                            client::Numbers(span_of(high)),
                            rms,
                            peak,
                            level,
                            std::move(columns)};
          },
          "name"_a, "shape"_a, "layout"_a, "centre"_a, "radius"_a, "low"_a, "high"_a, "rms"_a,
          "peak"_a, "level"_a, "columns"_a = "")
      .def_ro("name", &Port::name)
      .def_prop_ro("shape", [](const Port& x) { return ints(x.shape); })
      .def_ro("layout", &Port::layout)
      .def_prop_ro("centre", [](const Port& x) { return array_of(x.centre.kept()); })
      .def_prop_ro("radius", [](const Port& x) { return array_of(x.radius.kept()); })
      .def_prop_ro("low", [](const Port& x) { return array_of(x.low.kept()); })
      .def_prop_ro("high", [](const Port& x) { return array_of(x.high.kept()); })
      .def_ro("rms", &Port::rms)
      .def_ro("peak", &Port::peak)
      .def_ro("level", &Port::level)
      .def_ro("columns", &Port::columns)
      .def("is_like", &Port::is_like, "other"_a)
      .def(
          "outside",
          [](const Port& port, const Doubles& values) {
            return client::outside(port, examples_of(port, values));
          },
          "values"_a, "What is wrong with numbers that lie outside of the range, or None.")
      .def(
          "beyond",
          [](const Port& port, const Doubles& values, double noise_bits) {
            const auto found = client::beyond_range(port, span_of(values), noise_bits);
            return nb::bytes(reinterpret_cast<const char*>(found.data()), found.size());
          },
          "values"_a, "noise_bits"_a, "For each example a byte: 1 if decryption refuses it.");
}

// --- manifests -----------------------------------------------------------------------------------

Bootstrap bootstrap_of(const client::Demand& demand) {
  if (demand.bootstrap == client::BootstrapKeys::within) return demand.bootstrap_bytes;
  return std::string(kBootstrapKeys[static_cast<std::size_t>(demand.bootstrap)]);
}

void set_bootstrap(client::Demand& demand, const Bootstrap& from) {
  if (const auto* bytes = std::get_if<std::uint64_t>(&from)) {
    demand.bootstrap = client::BootstrapKeys::within;
    demand.bootstrap_bytes = *bytes;
    return;
  }
  const auto& name = std::get<std::string>(from);
  for (std::size_t k = 0; k < std::size(kBootstrapKeys); ++k) {
    if (name == kBootstrapKeys[k]) demand.bootstrap = static_cast<client::BootstrapKeys>(k);
  }
}

void bind_manifest(nb::module_& m) {
  using Ports = std::vector<Port>;
  nb::class_<ProgramManifest>(
      m, "ManifestCore",
      "See jali.program.Manifest. It need not be checked, unless from_bytes made it.")
      .def(
          "__init__",
          [](ProgramManifest* self, const Params& params, std::uint32_t lanes, Ports inputs,
             Ports outputs, std::map<int, int> rotations, int product, int conjugation,
             std::vector<double> noise_bits, const Bootstrap& bootstrap, double restored_bits,
             std::vector<std::uint32_t> packings) {
            client::Manifest made{params.ptr, lanes, std::move(inputs), std::move(outputs), {}};
            made.demand = {
                std::move(rotations),        product, conjugation,   std::move(noise_bits),
                client::BootstrapKeys::none, 0,       restored_bits, std::move(packings)};
            set_bootstrap(made.demand, bootstrap);
            new (self) ProgramManifest(std::move(made));
          },
          "params"_a, "lanes"_a, "inputs"_a, "outputs"_a, "rotations"_a, "product"_a,
          "conjugation"_a, "noise_bits"_a, "bootstrap"_a, "restored_bits"_a, "packings"_a)
      .def_static(
          "from_bytes",
          checked({"Manifest.from_bytes",
                   1,
                   {{"data"}, {"security", nb::int_(128)}, {"log2_p_fail", nb::float_(0.0)}}},
                  [](nb::handle data, int security, double log2_p_fail) {
                    const BytesView view(data);
                    const nb::gil_scoped_release release;
                    wire::Limits limits;
                    limits.max_bytes = kMostManifestBytes;
                    limits.min_security = security;
                    limits.max_log2_p_fail = log2_p_fail;
                    return ProgramManifest(client::manifest_from_bytes(view.span(), limits));
                  }),
          nb::sig("def from_bytes(data: bytes | bytearray | memoryview, *, security: int = 128, "
                  "log2_p_fail: float = 0.0) -> ManifestCore"))
      .def("to_bytes",
           [](const ProgramManifest& x) {
             return to_python_bytes([&] { return client::to_bytes(*x.ptr); });
           })
      .def_prop_ro("fingerprint", [](const ProgramManifest& x) { return hex(x.fingerprint); })
      .def(
          "is_like",
          [](const ProgramManifest& x, const ProgramManifest& other) {
            return x.ptr->is_like(*other.ptr);
          },
          "other"_a)
      .def_prop_ro("params", [](const ProgramManifest& x) { return x.params; })
      .def_prop_ro("lanes", [](const ProgramManifest& x) { return x.ptr->lanes; })
      .def_prop_ro("inputs", [](const ProgramManifest& x) { return x.ptr->inputs; })
      .def_prop_ro("outputs", [](const ProgramManifest& x) { return x.ptr->outputs; })
      .def_prop_ro("rotations", [](const ProgramManifest& x) { return x.ptr->demand.rotations; })
      .def_prop_ro("product", [](const ProgramManifest& x) { return x.ptr->demand.product; })
      .def_prop_ro("conjugation",
                   [](const ProgramManifest& x) { return x.ptr->demand.conjugation; })
      .def_prop_ro("noise_bits",
                   [](const ProgramManifest& x) {
                     return nb::typed<nb::tuple, double, nb::ellipsis>(
                         nb::tuple(nb::cast(x.ptr->demand.noise_bits)));
                   })
      .def_prop_ro("bootstrap",
                   [](const ProgramManifest& x) { return bootstrap_of(x.ptr->demand); })
      .def_prop_ro("restored_bits",
                   [](const ProgramManifest& x) { return x.ptr->demand.restored_bits; })
      .def_prop_ro("packings",
                   [](const ProgramManifest& x) { return ints(x.ptr->demand.packings); })
      .def(
          "key_cost",
          [](const ProgramManifest& x) {
            const nb::gil_scoped_release release;
            const auto cost =
                client::key_cost(*x.ptr->params, client::key_demand(x.ptr->params, x.ptr->demand));
            return std::tuple(cost.count, cost.made, cost.sent, cost.seconds);
          },
          "The number of the program's keys, their bytes in memory and in a message, and the "
          "seconds to make them.")
      .def(
          "key_demand",
          [](const ProgramManifest& x, std::uint64_t most) {
            const nb::gil_scoped_release release;
            const auto allow = [](std::uint64_t bytes) {
              return "call evaluation_keys(max_bytes=" + std::to_string(bytes) + ")";
            };
            return KeyDemand{client::checked_demand(x.ptr->params, x.ptr->demand, most, allow),
                             x.ptr->params};
          },
          "max_bytes"_a, "The program's keys. Raises LimitExceeded if they take more memory.")
      .def(
          "client_cost",
          [](const ProgramManifest& x) {
            const client::ClientCost cost = client::client_cost(*x.ptr);
            return std::tuple(cost.own, cost.request, cost.reply);
          },
          "The bytes that a client takes for itself, a request and a reply.")
      .def(
          "check_cost",
          [](const ProgramManifest& x, std::uint64_t most) {
            client::check_cost(*x.ptr, most, [](std::uint64_t bytes) {
              return "give the client max_bytes=" + std::to_string(bytes);
            });
          },
          "max_bytes"_a, "Raises LimitExceeded if one of client_cost is above it.");
}

// --- messages ------------------------------------------------------------------------------------

client::Direction direction_of(bool is_reply) {
  return is_reply ? client::Direction::reply : client::Direction::request;
}

client::Message message_of(const std::string& program, std::uint64_t examples, bool single,
                           bool is_reply, const Arrays& arrays) {
  client::Message out{digest_of(program), examples, single, direction_of(is_reply), {}};
  for (const auto& array : arrays) out.arrays.emplace_back(array.begin(), array.end());
  return out;
}

Arrays arrays_of(const std::vector<std::vector<client::CiphertextPtr>>& from) {
  Arrays out;
  for (const auto& array : from) {
    auto& made = out.emplace_back();
    for (const auto& c : array) made.push_back(std::const_pointer_cast<ckks::Ciphertext>(c));
  }
  return out;
}

void bind_messages(nb::module_& m) {
  m.def(
      "message_to_bytes",
      [](const std::string& program, std::uint64_t examples, bool single, bool is_reply,
         const Arrays& arrays) {
        const auto message = message_of(program, examples, single, is_reply, arrays);
        return to_python_bytes([&] { return client::to_bytes(message); });
      },
      "program"_a, "examples"_a, "single"_a, "is_reply"_a, "arrays"_a);
  m.def(
      "message_from_bytes",
      [](nb::handle data, const ProgramManifest& manifest, bool reply, std::uint64_t max_bytes) {
        const BytesView view(data);
        const nb::gil_scoped_release release;
        wire::Limits limits;
        limits.max_bytes = max_bytes;
        const auto message =
            client::message_from_bytes(view.span(), *manifest.ptr, manifest.fingerprint,
                                       direction_of(reply), *manifest.params.ring(), limits);
        return std::tuple(hex(message.program), message.examples, message.single,
                          arrays_of(message.arrays));
      },
      "data"_a, "manifest"_a, "reply"_a, "max_bytes"_a);
  m.def(
      "check_message",
      [](const ProgramManifest& manifest, bool reply, const std::string& program,
         std::uint64_t examples, bool single, bool is_reply, const Arrays& arrays) {
        client::check(message_of(program, examples, single, is_reply, arrays), *manifest.ptr,
                      manifest.fingerprint, direction_of(reply));
      },
      "manifest"_a, "reply"_a, "program"_a, "examples"_a, "single"_a, "is_reply"_a, "arrays"_a);
}

// --- clients -------------------------------------------------------------------------------------

void bind_program_client(nb::module_& m) {
  nb::class_<ProgramClient>(m, "ProgramClient",
                            "See jali.program.Client. ClientCore.of_program makes it.")
      .def(
          "encrypt",
          [](const ProgramClient& x, const std::vector<Doubles>& inputs,
             const std::vector<bool>& singles) {
            std::vector<client::Examples> given;
            const auto& ports = x.ptr->manifest().inputs;
            for (std::size_t k = 0; k < inputs.size(); ++k) {
              const std::size_t size =
                  k < ports.size() ? std::max<std::size_t>(ports[k].size(), 1) : 1;
              given.push_back(
                  {span_of(inputs[k]), inputs[k].size() / size, k < singles.size() && singles[k]});
            }
            const nb::gil_scoped_release release;
            return arrays_of(x.ptr->encrypt(given).arrays);
          },
          "inputs"_a, "singles"_a, "The ciphertexts of every input.")
      .def(
          "decrypt",
          [](const ProgramClient& x, bool check, const std::string& program, std::uint64_t examples,
             bool single, bool is_reply, const Arrays& arrays) {
            std::vector<std::vector<double>> results;
            {
              const auto message = message_of(program, examples, single, is_reply, arrays);
              const nb::gil_scoped_release release;
              results = x.ptr->decrypt(message, check ? ckks::Check::yes : ckks::Check::no);
            }
            nb::list out;
            for (auto& numbers : results) {
              const WipedAtEnd wiped(numbers);
              out.append(array_of(numbers));
            }
            return out;
          },
          "check"_a, "program"_a, "examples"_a, "single"_a, "is_reply"_a, "arrays"_a,
          nb::sig("def decrypt(self, check: bool, program: str, examples: int, single: bool, "
                  "is_reply: bool, arrays: Sequence[Sequence[jali._jali.ckks.Ciphertext]]) -> "
                  "list[NDArray[numpy.float64]]"),
          "The numbers of every output.");
}

}  // namespace

void bind_program(nb::module_& m) {
  bind_layout(m);
  bind_port(m);
  bind_manifest(m);
  bind_messages(m);
  bind_program_client(m);
}

}  // namespace jali::python
