// Compiled programs, recorded graphs, and what programs of trees and of exact integers have, as
// bytes. jali.program.container, jali.tfhe.trees and jali.program.integers give them their
// meaning.
#include "jali/wire/document.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binding.h"
#include "bytes.h"
#include "jali/base/checked.h"
#include "jali/wire/discrete.h"
#include "jali/wire/tfhe.h"
#include "jali/wire/writer.h"

namespace jali::python {

using namespace nb::literals;

namespace {

using Doubles = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

wire::Kind document_kind(const std::string& name) {
  if (name == "graph") return wire::kGraph;
  if (name == "program") return wire::kProgram;
  require<InvalidArgument>(name == "program of exact integers",
                           "kind is \"graph\", \"program\" or \"program of exact integers\"");
  return {wire::kDiscrete, wire::Object::program};
}

/// A document, and the Python object whose bytes it refers to.
struct ReadDocument {
  std::shared_ptr<BytesView> bytes;
  wire::DocumentView view;

  const wire::NumbersView& array(std::size_t k) const {
    require<InvalidArgument>(k < view.arrays.size(), "the document has fewer arrays");
    return view.arrays[k];
  }
};

/// What programs of a scheme have whose payloads Python defines: those of trees (jali.tfhe.trees)
/// and of exact integers (jali.program.integers).
wire::Kind payload_kind(const std::string& scheme, const std::string& name) {
  using wire::Object;
  require<InvalidArgument>(scheme == "tfhe" || scheme == "discrete",
                           "scheme is \"tfhe\" or \"discrete\"");
  const wire::Scheme of = scheme == "tfhe" ? wire::kTfhe : wire::kDiscrete;
  if (name == "manifest") return {of, Object::manifest};
  if (name == "message") return {of, Object::message};
  require<InvalidArgument>(name == "program", "kind is \"manifest\", \"program\" or \"message\"");
  return {of, Object::program};
}

}  // namespace

void bind_documents(nb::module_& m) {
  m.def(
      "payload_to_bytes",
      [](const std::string& scheme, const std::string& kind, const std::vector<nb::bytes>& parts) {
        std::uint64_t count = 0;
        for (const nb::bytes& part : parts) count += part.size();
        wire::Writer writer(payload_kind(scheme, kind), {}, count);
        for (const nb::bytes& part : parts) {
          writer.raw({static_cast<const std::uint8_t*>(part.data()), part.size()});
        }
        return to_python_bytes([&] { return writer.finish(); });
      },
      "scheme"_a, "kind"_a, "parts"_a, "The frame around a payload.");
  m.def(
      "payload_of",
      [](nb::handle data, const std::string& scheme, const std::string& kind,
         std::uint64_t max_bytes) {
        const BytesView bytes(data);
        wire::Limits limits;
        limits.max_bytes = max_bytes;
        const wire::Frame frame =
            wire::open_frame(bytes.span(), payload_kind(scheme, kind), limits);
        require<CorruptData>(frame.params_hash == wire::ParamsHash{}, [&] {
          return "cannot read a " + kind + ": it names parameters outside of its payload";
        });
        return std::pair(static_cast<std::size_t>(frame.payload.data() - bytes.span().data()),
                         frame.payload.size());
      },
      "data"_a, "scheme"_a, "kind"_a, "max_bytes"_a,
      "Where a payload begins in its frame, and how many bytes it has. The frame is checked.");
  m.def(
      "document_to_bytes",
      [](const std::string& kind, nb::handle text, const std::vector<Doubles>& arrays) {
        const BytesView bytes(text);
        wire::DocumentView document;
        document.text = {reinterpret_cast<const char*>(bytes.span().data()), bytes.span().size()};
        for (const Doubles& array : arrays) {
          wire::NumbersView& made = document.arrays.emplace_back();
          for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
            made.shape.push_back(checked_cast<std::uint32_t, InvalidArgument>(array.shape(axis)));
          }
          made.values = {reinterpret_cast<const std::uint8_t*>(array.data()),
                         array.size() * sizeof(double)};
        }
        return to_python_bytes([&] { return wire::to_bytes(document_kind(kind), document); });
      },
      "kind"_a, "text"_a, "arrays"_a,
      "The bytes of a compiled program (kind \"program\" or \"program of exact integers\") or a "
      "recorded graph (\"graph\").");
  nb::class_<ReadDocument>(m, "Document", "See jali.program.container.read.")
      .def_static(
          "from_bytes",
          [](nb::handle data, const std::string& kind, std::uint64_t max_bytes) {
            auto bytes = std::make_shared<BytesView>(data);
            const nb::gil_scoped_release release;
            wire::Limits limits;
            limits.max_bytes = max_bytes;
            auto view = wire::document_from_bytes(bytes->span(), document_kind(kind), limits);
            return ReadDocument{std::move(bytes), std::move(view)};
          },
          "data"_a, "kind"_a, "max_bytes"_a)
      .def_prop_ro(
          "text",
          [](const ReadDocument& x) { return nb::bytes(x.view.text.data(), x.view.text.size()); })
      .def("__len__", [](const ReadDocument& x) { return x.view.arrays.size(); })
      .def(
          "shape",
          [](const ReadDocument& x, std::size_t array) {
            return nb::typed<nb::tuple, int, nb::ellipsis>(
                nb::tuple(nb::cast(x.array(array).shape)));
          },
          "array"_a)
      .def(
          "offset",
          [](const ReadDocument& x, std::size_t array) {
            return static_cast<std::size_t>(x.array(array).values.data() - x.bytes->span().data());
          },
          "array"_a, "Where the array's doubles begin in the bytes.");
}

}  // namespace jali::python
