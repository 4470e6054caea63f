// TFHE parameters for Python.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "checked.h"
#include "files.h"
#include "jali/params/tfhe_presets.h"
#include "jali/wire/tfhe.h"
#include "refusals.h"
#include "tfhe.h"

namespace jali::python {

namespace {

using tfhe::Literal;

backend::Rotation parsed_rotation(const std::string& name) {
  if (name == "classic") return backend::Rotation::classic;
  if (name == "multi_bit") return backend::Rotation::multi_bit;
  if (name == "block_binary") return backend::Rotation::block_binary;
  throw InvalidArgument("unknown rotation \"" + name +
                        "\": use \"classic\", \"multi_bit\" or \"block_binary\"");
}
const char* name_of(backend::Rotation rotation) {
  switch (rotation) {
    case backend::Rotation::classic: return "classic";
    case backend::Rotation::multi_bit: return "multi_bit";
    case backend::Rotation::block_binary: return "block_binary";
  }
  return "";
}

tfhe::Order parsed_order(const std::string& name) {
  if (name == "switch_first") return tfhe::Order::switch_first;
  if (name == "bootstrap_first") return tfhe::Order::bootstrap_first;
  throw InvalidArgument("unknown order \"" + name +
                        "\": use \"switch_first\" or \"bootstrap_first\"");
}

/// (base_log, levels)
backend::Gadget parsed_gadget(nb::handle value, const char* what) {
  std::pair<int, int> out;
  if (!nb::try_cast(value, out)) {
    refuse(what, "a pair of whole numbers, (log2 of the base, levels)", value);
  }
  return {out.first, out.second};
}

TfheParams create(std::size_t n, std::size_t k, std::size_t big_n, nb::handle rotation_gadget,
                  nb::handle switch_gadget, int lwe_noise_bits, int glwe_noise_bits,
                  int message_bits, int carry_bits, const std::string& order,
                  const std::string& rotation, int group, int torus_bits, double max_norm2,
                  double log2_p_fail, int security, const std::string& name) {
  require<InvalidArgument>(torus_bits == 32 || torus_bits == 64,
                           "torus_bits is 32 or 64: the bits of a word");
  Literal literal;
  literal.name = name;
  literal.torus = torus_bits == 32 ? backend::Torus::t32 : backend::Torus::t64;
  literal.n = backend::LweDimension(n);
  literal.k = backend::GlweDimension(k);
  literal.N = backend::PolynomialSize(big_n);
  literal.rotation = parsed_rotation(rotation);
  literal.group = group;
  literal.rotation_gadget = parsed_gadget(rotation_gadget, "rotation_gadget");
  literal.switch_gadget = parsed_gadget(switch_gadget, "switch_gadget");
  literal.lwe_noise_bits = lwe_noise_bits;
  literal.glwe_noise_bits = glwe_noise_bits;
  literal.message_bits = message_bits;
  literal.carry_bits = carry_bits;
  literal.order = parsed_order(order);
  literal.max_norm2 = max_norm2;
  literal.log2_p_fail = log2_p_fail;
  literal.security = security;
  nb::gil_scoped_release release;
  return {tfhe::Params::create(literal)};
}

std::string repr(const TfheParams& self) {
  const tfhe::Params& p = *self.ptr;
  char text[200];
  std::snprintf(text, sizeof(text),
                "Params('%s', n=%zu, k=%zu, N=%zu, message_bits=%d, carry_bits=%d, "
                "log2_p_fail=%.1f, security=%d)",
                p.name().c_str(), p.n().value, p.k().value, p.N().value, p.message_bits(),
                p.carry_bits(), p.log2_p_fail(), p.security());
  return text;
}

std::string fingerprint(const TfheParams& self) {
  std::string hex;
  char digits[3];
  for (const std::uint8_t byte : self.ptr->hash()) {
    std::snprintf(digits, sizeof(digits), "%02x", byte);
    hex += digits;
  }
  return hex;
}

std::pair<int, int> pair_of(const backend::Gadget& gadget) {
  return {gadget.base_log, gadget.levels};
}

}  // namespace

void require_same(const tfhe::Params& expected, const tfhe::Params& given, const char* what) {
  require<ParamsMismatch>(expected.hash() == given.hash(), [&] {
    return std::string(what) + " of other parameters, " +
           (given.name().empty() ? "without a name" : given.name()) + ": use those of " +
           (expected.name().empty() ? "this object" : expected.name());
  });
}

void bind_tfhe_params(nb::module_& m) {
  nb::class_<TfheParams> type(m, "Params",
                              R"(TFHE parameters: immutable, validated, and safe to share.

A message is a whole number from 0 to 2^message_bits - 1. Sums may grow up to 2^(message_bits + carry_bits) - 1 before a
look-up must bring them back. One more bit, the padding, lies above.)");
  refuse_constructor(
      type, "parameters are made by Params.preset(name); Params.presets() lists the names");
  type.def_static(
          "preset",
          checked({"Params.preset", 1, {{"name"}}},
                  [](const std::string& name) {
                    return TfheParams{tfhe::Params::create(tfhe::preset(name))};
                  }),
          nb::sig("def preset(name: str) -> Params"),
          "A named set; Params.presets() lists the names. Raises InvalidArgument for another name.")
      .def_static(
          "presets",
          [] {
            nb::dict out;
            for (const auto& one : tfhe::presets()) {
              out[nb::str(one.name.data(), one.name.size())] =
                  nb::str(one.purpose.data(), one.purpose.size());
            }
            return out;
          },
          nb::sig("def presets() -> dict[str, str]"), "What each preset is for, by its name.")
      .def_static(
          "from_bytes",
          [](nb::handle data, int min_security) {
            const BytesView view(data);
            wire::Limits limits;
            limits.min_security = min_security;
            nb::gil_scoped_release release;
            return TfheParams{wire::tfhe_params_from_bytes(view.span(), limits)};
          },
          nb::arg("data"), nb::arg("min_security") = 128,
          nb::sig("def from_bytes(data: bytes | bytearray | memoryview, min_security: int = 128) "
                  "-> Params"),
          R"(Load what to_bytes made. Every byte is checked.

min_security: parameters with fewer bits are refused.
Raises CorruptData, VersionError, InsecureParams or LimitExceeded.)")
      .def_static(
          "create",
          checked({"Params.create",
                   0,
                   {{"n"},
                    {"k"},
                    {"N"},
                    {"rotation_gadget"},
                    {"switch_gadget"},
                    {"lwe_noise_bits"},
                    {"glwe_noise_bits"},
                    {"message_bits"},
                    {"carry_bits", nb::int_(0)},
                    {"order", nb::str("switch_first")},
                    {"rotation", nb::str("classic")},
                    {"group", nb::int_(1)},
                    {"torus_bits", nb::int_(64)},
                    {"max_norm2", nb::float_(1.0)},
                    {"log2_p_fail", nb::float_(0.0)},
                    {"security", nb::int_(0)},
                    {"name"}}},
                  &create),
          nb::sig("def create(*, n: int, k: int, N: int, rotation_gadget: tuple[int, int], "
                  "switch_gadget: tuple[int, int], lwe_noise_bits: int, glwe_noise_bits: int, "
                  "message_bits: int, carry_bits: int = 0, order: str = 'switch_first', "
                  "rotation: str = 'classic', group: int = 1, torus_bits: int = 64, "
                  "max_norm2: float = 1.0, log2_p_fail: float = 0.0, security: int = 0, "
                  "name: str) -> Params"),
          R"(Parameters of your own, for research. Params.preset(name) gives sets that are searched and proven.

n: the dimension of small LWE ciphertexts, whose words have 32 bits; a multiple of group.
k, N: GLWE ciphertexts have k mask polynomials of N coefficients.
rotation_gadget, switch_gadget: (log2 of the base, levels) of the bootstrapping and the key-switching key.
lwe_noise_bits, glwe_noise_bits: errors are TUniform(b): uniform on [-2^b, 2^b], with half the weight at both ends; in
    words of 32 bits, and of torus_bits.
message_bits, carry_bits: of a ciphertext.
order: "switch_first": users hold large ciphertexts, of dimension k N. "bootstrap_first": small ones, of dimension n.
rotation, group: "classic" with 1, "multi_bit" with 2 to 4, "block_binary" with 2 to 8 bits a step.
max_norm2: the largest squared norm of integer weights between two look-ups.
log2_p_fail, security: what you claim of them. Below 128 bits the name must begin with "insecure_".

Raises InsecureParams or InvalidArgument.)")
      .def(
          "to_bytes",
          [](const TfheParams& p) {
            return to_python_bytes([&] { return wire::to_bytes(*p.ptr); });
          },
          "Bytes for transport or storage. They are not authenticated.")
      .def_prop_ro(
          "name", [](const TfheParams& p) { return p.ptr->name(); }, "Its name.")
      .def_prop_ro(
          "n", [](const TfheParams& p) { return p.ptr->n().value; },
          "The dimension of small LWE ciphertexts.")
      .def_prop_ro(
          "k", [](const TfheParams& p) { return p.ptr->k().value; },
          "Mask polynomials of a GLWE ciphertext.")
      .def_prop_ro(
          "N", [](const TfheParams& p) { return p.ptr->N().value; },
          "Coefficients of a polynomial.")
      .def_prop_ro(
          "message_bits", [](const TfheParams& p) { return p.ptr->message_bits(); },
          "Bits of a message.")
      .def_prop_ro(
          "carry_bits", [](const TfheParams& p) { return p.ptr->carry_bits(); },
          "Bits above the message, into which sums may grow.")
      .def_prop_ro(
          "security", [](const TfheParams& p) { return p.ptr->security(); },
          "Bits of security against classical attacks.")
      .def_prop_ro(
          "log2_p_fail", [](const TfheParams& p) { return p.ptr->log2_p_fail(); },
          "log2 of the probability that a look-up gives a wrong result.")
      .def_prop_ro(
          "max_norm2", [](const TfheParams& p) { return p.ptr->max_norm2(); },
          "The largest squared norm of the integer weights of a sum between two look-ups.")
      .def_prop_ro(
          "rotation", [](const TfheParams& p) { return name_of(p.ptr->literal().rotation); },
          "How a blind rotation goes: \"classic\", \"multi_bit\" or \"block_binary\".")
      .def_prop_ro(
          "group", [](const TfheParams& p) { return p.ptr->literal().group; },
          "Bits of the secret that a step of the rotation takes.")
      .def_prop_ro(
          "order",
          [](const TfheParams& p) {
            return p.ptr->order() == tfhe::Order::switch_first ? "switch_first" : "bootstrap_first";
          },
          "\"switch_first\" if ciphertexts are large, \"bootstrap_first\" if they are small.")
      .def_prop_ro(
          "rotation_gadget",
          [](const TfheParams& p) { return pair_of(p.ptr->literal().rotation_gadget); },
          "(log2 of the base, levels) of the bootstrapping key.")
      .def_prop_ro(
          "switch_gadget",
          [](const TfheParams& p) { return pair_of(p.ptr->literal().switch_gadget); },
          "(log2 of the base, levels) of the key-switching key.")
      .def_prop_ro(
          "key_bytes", [](const TfheParams& p) { return p.ptr->key_bytes(); },
          "Bytes of the evaluation keys, with their masks as seeds.")
      .def_prop_ro(
          "expanded_key_bytes", [](const TfheParams& p) { return p.ptr->expanded_key_bytes(); },
          "The same with their masks expanded.")
      .def(
          "ciphertext_bytes",
          [](const TfheParams& p, std::size_t count) { return p.ptr->ciphertext_bytes(count); },
          nb::arg("count") = 1,
          "Bytes in memory of this many LWE ciphertexts: one a message, several an integer.")
      .def_prop_ro("fingerprint", &fingerprint,
                   "SHA-256, in hexadecimal, of everything that computation depends on.")
      .def("__repr__", &repr)
      .def(
          "__eq__",
          [](const TfheParams& a, nb::handle b) {
            return nb::isinstance<TfheParams>(b) &&
                   nb::cast<const TfheParams&>(b).ptr->hash() == a.ptr->hash();
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const TfheParams& a) {
        std::size_t out = 0;
        std::memcpy(&out, a.ptr->hash().data(), sizeof(out));
        return out;
      });
  share_copies(type);
}

}  // namespace jali::python
