// Plaintexts, ciphertexts and public keys for Python: opaque and immutable.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "binding.h"
#include "bytes.h"
#include "here.h"
#include "interrupts.h"
#include "jali/wire/ckks.h"
#include "log.h"

namespace jali::python {

using namespace nb::literals;

namespace {

std::size_t bytes_of(const ckks::Ciphertext& c) {
  std::size_t total = 0;
  for (const auto& part : c.parts) total += part.bytes();
  return total;
}

template <class T>
T load(nb::handle data, const Params& params, std::size_t max_bytes) {
  const BytesView view(data);
  nb::gil_scoped_release release;
  wire::Limits limits;
  limits.max_bytes = max_bytes;
  return wire::from_bytes<T>(view.span(), params.ptr, *params.ring(), limits);
}

constexpr const char* kToBytes = "Bytes for transport or storage. They are not authenticated.";
constexpr const char* kFromBytes = R"(Load what to_bytes made. Every byte is checked.

max_bytes: a bound on the size of the input, and also on the memory of the result.
Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.)";
constexpr std::size_t kMaxBytes = wire::Limits{}.max_bytes;

/// The bytes of x, which may lie in any memory.
template <class T>
nb::bytes bytes_from(const T& x) {
  return to_python_bytes(
      [&] { return is_on_host(x) ? wire::to_bytes(x) : wire::to_bytes(host_copy(x)); });
}

std::string repr(const ckks::Ciphertext& c) {
  char text[160];
  std::snprintf(text, sizeof(text), "Ciphertext(level=%d, scale=2^%.2f, parts=%zu, %zu bytes)",
                c.level, std::log2(c.scale), c.parts.size(), bytes_of(c));
  return text;
}

}  // namespace

void bind_values(nb::module_& m) {
  nb::class_<ckks::Plaintext>(m, "Plaintext", "An encoded vector, or batch of vectors.")
      .def_ro("level", &ckks::Plaintext::level, "The level whose primes it has.")
      .def_ro("scale", &ckks::Plaintext::scale, "The factor between the numbers and the integers.")
      .def_prop_ro(
          "slots", [](const ckks::Plaintext& p) { return std::size_t{1} << p.log_slots; },
          "Numbers in each vector.")
      .def_prop_ro(
          "batch", [](const ckks::Plaintext& p) { return p.poly.batch(); }, "Vectors in the batch.")
      .def_prop_ro(
          "nbytes", [](const ckks::Plaintext& p) { return p.poly.bytes(); }, "Bytes in memory.")
      .def_prop_ro(
          "params", [](const ckks::Plaintext& p) { return Params{p.params}; }, "Its parameters.")
      .def("to_bytes", &bytes_from<ckks::Plaintext>, kToBytes)
      .def_static("from_bytes", &load<ckks::Plaintext>, "data"_a.none(), "params"_a, nb::kw_only(),
                  "max_bytes"_a = kMaxBytes,
                  nb::sig("def from_bytes(data: bytes | bytearray | memoryview, params: Params, *, "
                          "max_bytes: int = ...) -> Plaintext"),
                  kFromBytes)
      .def("__repr__", [](const ckks::Plaintext& p) {
        char text[120];
        std::snprintf(text, sizeof(text), "Plaintext(level=%d, scale=2^%.2f, %zu bytes)", p.level,
                      std::log2(p.scale), p.poly.bytes());
        return std::string(text);
      });

  nb::class_<ckks::Ciphertext>(m, "Ciphertext", R"(An encrypted vector, or batch of vectors.

It holds nothing secret. To compute with it, bind it to an Evaluator.)")
      .def_ro("level", &ckks::Ciphertext::level, "How many multiplications may follow.")
      .def_ro("scale", &ckks::Ciphertext::scale, "Its scale.")
      .def_prop_ro(
          "parts", [](const ckks::Ciphertext& c) { return c.parts.size(); },
          "The number of polynomials: 2, or 3 before relinearisation.")
      .def_prop_ro(
          "slots", [](const ckks::Ciphertext& c) { return std::size_t{1} << c.log_slots; },
          "Numbers in each vector, including those past its length.")
      .def_prop_ro(
          "batch", [](const ckks::Ciphertext& c) { return c.batch(); }, "Vectors in the batch.")
      .def_prop_ro(
          "length", [](const ckks::Ciphertext& c) { return ckks::length_of(c); },
          "Slots of each vector that decryption shows.")
      .def_prop_ro(
          "shape", [](const ckks::Ciphertext& c) { return shape_of(c); },
          nb::sig("def shape(self) -> tuple[int, ...]"),
          "The shape that decryption gives: (length,), (batch, length), or that of an array.")
      .def_prop_ro(
          "view",
          [](const ckks::Ciphertext& c) -> std::optional<ViewTuple> {
            if (!c.packing.view) return std::nullopt;
            return tuple_of(*c.packing.view);
          },
          "Where the elements of an array lie: (count, stride) of every axis, the first address, "
          "and the "
          "period (0: none). An address counts the slots of all vectors of the batch. None for a "
          "vector or "
          "a batch.")
      .def_prop_ro(
          "is_padded", [](const ckks::Ciphertext& c) { return c.packing.padded; },
          "Whether the slots that hold none of its numbers are known to be zero.")
      .def_prop_ro(
          "is_complex", [](const ckks::Ciphertext& c) { return c.packing.complex_values; },
          "Whether decryption gives complex numbers by default.")
      .def_prop_ro(
          "nbytes", &bytes_of,
          "Bytes in memory. to_bytes() of one that Client.encrypt made gives about half as "
          "many.")
      .def_prop_ro(
          "params", [](const ckks::Ciphertext& c) { return Params{c.params}; }, "Its parameters.")
      .def_prop_ro(
          "key_id", [](const ckks::Ciphertext& c) { return rlwe::to_string(c.key_id); },
          "The name of the secret key that decrypts it, 32 hexadecimal digits; see Client.key_id. "
          "Empty if it belongs to no key.")
      .def_prop_ro(
          "precision_bits",
          [](const ckks::Ciphertext& c) {
            return params::NoiseModel(*c.params).precision_bits(c.estimate, c.scale);
          },
          "Estimated bits of precision of a slot: -log2 of the standard deviation of its error.")
      .def("to_bytes", &bytes_from<ckks::Ciphertext>, kToBytes)
      .def_static("from_bytes", &load<ckks::Ciphertext>, "data"_a.none(), "params"_a, nb::kw_only(),
                  "max_bytes"_a = kMaxBytes,
                  nb::sig("def from_bytes(data: bytes | bytearray | memoryview, params: Params, *, "
                          "max_bytes: int = ...) -> Ciphertext"),
                  kFromBytes)
      .def("__repr__", &repr);

  nb::class_<PublicKey>(m, "PublicKey", "A key that encrypts and does not decrypt.")
      .def_prop_ro(
          "params", [](const PublicKey& k) { return Params{k.params}; }, "Its parameters.")
      .def_prop_ro(
          "key_id", [](const PublicKey& k) { return rlwe::to_string(k.ptr->key_id); },
          "The name of the secret key; see Client.key_id.")
      .def_prop_ro(
          "nbytes", [](const PublicKey& k) { return k.ptr->b.bytes() + sizeof(k.ptr->seed); },
          "Bytes of its stored half and its seed.")
      .def(
          "to_bytes",
          [](const PublicKey& x) {
            return to_python_bytes([&] { return wire::to_bytes(*x.ptr); });
          },
          kToBytes)
      .def_static(
          "from_bytes",
          [](nb::handle data, const Params& params, std::size_t max_bytes) {
            return PublicKey{std::make_shared<const rlwe::PublicKey>(
                                 load<rlwe::PublicKey>(data, params, max_bytes)),
                             params.ptr};
          },
          "data"_a.none(), "params"_a, nb::kw_only(), "max_bytes"_a = kMaxBytes,
          nb::sig("def from_bytes(data: bytes | bytearray | memoryview, params: Params, *, "
                  "max_bytes: int = ...) -> PublicKey"),
          kFromBytes)
      .def("__repr__", [](const PublicKey& k) {
        return "PublicKey(" + std::to_string(k.ptr->b.bytes()) + " bytes)";
      });

  nb::class_<KeyDemand>(m, "KeyDemand", "The keys that functions use.")
      .def_prop_ro(
          "rotations",
          [](const KeyDemand& d) {
            std::map<int, int> out;
            for (const auto& [element, level] : d.keys.galois) {
              if (const auto r = ckks::rotation_steps(d.params->n(), element)) out[*r] = level;
            }
            return out;
          },
          "The rotations, each with the highest level at which it is used.");

  nb::class_<EvaluationKeys>(m, "EvaluationKeys",
                             "The public keys that an evaluator needs: relinearisation, rotations.")
      .def_prop_ro(
          "params", [](const EvaluationKeys& k) { return Params{k.params}; }, "Their parameters.")
      .def_prop_ro(
          "key_id", [](const EvaluationKeys& k) { return rlwe::to_string(k.ptr->key_id); },
          "The name of the secret key; see Client.key_id.")
      .def_prop_ro(
          "nbytes", [](const EvaluationKeys& k) { return k.ptr->bytes(); },
          "Bytes as sent, equal to Params.key_bytes of the same rotations.")
      .def_prop_ro(
          "count",
          [](const EvaluationKeys& k) {
            return k.ptr->galois.size() + (k.ptr->relinearisation.has_value() ? 1 : 0);
          },
          "The number of key-switching keys.")
      .def(
          "has_rotation",
          [](const EvaluationKeys& k, int steps) { return ckks::can_rotate(*k.ptr, steps); },
          "steps"_a,
          "Whether a rotation by this many slots is possible, by its own key or composed of "
          "others.")
      .def_prop_ro(
          "has_conjugation",
          [](const EvaluationKeys& k) {
            return k.ptr->galois.contains(ring::conjugation_element(k.ptr->params->n()));
          },
          "Whether conjugation is possible.")
      .def_prop_ro(
          "has_relinearisation",
          [](const EvaluationKeys& k) { return k.ptr->relinearisation.has_value(); },
          "Whether products of ciphertexts can be relinearised.")
      .def(
          "to_bytes",
          [](const EvaluationKeys& x) {
            return to_python_bytes([&] { return wire::to_bytes(*x.ptr, interrupts()); });
          },
          kToBytes)
      .def_static(
          "from_bytes",
          [](nb::handle data, const Params& params, std::size_t max_bytes) {
            const auto keys = std::make_shared<const rlwe::EvaluationKeys>(
                load<rlwe::EvaluationKeys>(data, params, max_bytes));
            log_info("evaluation keys loaded: %d bytes", keys->bytes());
            return EvaluationKeys{keys, params.ptr};
          },
          "data"_a.none(), "params"_a, nb::kw_only(), "max_bytes"_a = kMaxBytes,
          nb::sig("def from_bytes(data: bytes | bytearray | memoryview, params: Params, *, "
                  "max_bytes: int = ...) -> EvaluationKeys"),
          kFromBytes)
      .def("__repr__", [](const EvaluationKeys& k) {
        return "EvaluationKeys(" + std::to_string(k.ptr->galois.size()) + " rotations, " +
               std::to_string(k.ptr->bytes()) + " bytes)";
      });
}

}  // namespace jali::python
