// Plaintexts, ciphertexts and public keys for Python: opaque and immutable.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "binding.h"
#include "bytes.h"
#include "checked.h"
#include "ckks_here.h"
#include "files.h"
#include "interrupts.h"
#include "jali/circuits/ckks/layout.h"
#include "jali/wire/ckks.h"
#include "log.h"
#include "refusals.h"

namespace jali::python {

namespace {

double expected_bits(const ckks::Ciphertext& c) {
  return params::NoiseModel(*c.params).expected_bits(c.estimate, c.scale);
}

double independent_bits(const ckks::Ciphertext& c) {
  return params::NoiseModel(*c.params).independent_bits(c.estimate, c.scale);
}

std::size_t bytes_of(const ckks::Ciphertext& c) {
  std::size_t total = 0;
  for (const auto& part : c.parts) total += part.bytes();
  return total;
}

wire::Limits limited(std::size_t max_bytes) {
  wire::Limits limits;
  limits.max_bytes = max_bytes;
  return limits;
}

/// from_bytes of T, as a function of Python.
template <class T>
T from_bytes(nb::handle data, const Params& params, std::size_t max_bytes) {
  const BytesView view(data);
  nb::gil_scoped_release release;
  return wire::from_bytes<T>(view.span(), params.ptr, *params.ring(), limited(max_bytes));
}

/// T from a path, a file object or bytes.
template <class T>
T load(nb::handle file, const Params& params, std::size_t max_bytes) {
  const wire::Limits limits = limited(max_bytes);
  const auto of_bytes = [&](std::span<const std::uint8_t> bytes) {
    return wire::from_bytes<T>(bytes, params.ptr, *params.ring(), limits);
  };
  return load_from(file, of_bytes, [&](const wire::Source& source) {
    return of_bytes(wire::read_object(source, limits));
  });
}

/// The parameters of from_bytes and load. call: e.g. "Ciphertext.load"; first: the name of their
/// first one.
Call of_bytes(const char* call, const char* first) {
  return {call, 2, {{first}, {"params"}, {"max_bytes", nb::int_(wire::Limits{}.max_bytes)}}};
}

constexpr const char* kProgressType = "collections.abc.Callable[[int, int], object] | None";
constexpr const char* kFromBytes = R"(Load what to_bytes made. Every byte is checked.

max_bytes: a bound on the size of the input, and also on the memory of the result.
Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.)";
constexpr const char* kLoad =
    R"(Read what save wrote, from a path, a file opened with "rb", or bytes.

The other arguments and the errors are those of from_bytes, and FileError for a file that cannot be read. From a file
object, one object is read, and no byte after it.)";

/// The signatures of from_bytes and load of a class.
std::string from_bytes_signature(const char* name) {
  return std::string(
             "def from_bytes(data: bytes | bytearray | memoryview, params: Params, *, "
             "max_bytes: int = ...) -> ") +
         name;
}
std::string load_signature(const char* name) {
  return std::string(
             "def load(file: str | os.PathLike[str] | typing.BinaryIO | bytes, "
             "params: Params, *, max_bytes: int = ...) -> ") +
         name;
}

/// Adds to_bytes() and save() of objects that may lie in any memory.
template <class T>
void add_bytes(nb::class_<T>& type) {
  const auto bytes = [](const T& x) {
    return is_on_host(x) ? wire::to_bytes(x) : wire::to_bytes(host_copy(x));
  };
  add_to_bytes(type, bytes);
  add_save(type, bytes);
}

std::string repr(const ckks::Ciphertext& c) {
  char text[160];
  std::snprintf(text, sizeof(text), "Ciphertext(level=%d, scale=2^%.2f, parts=%zu, %zu bytes)",
                c.level, std::log2(c.scale), c.parts.size(), bytes_of(c));
  return text;
}

EvaluationKeys loaded(rlwe::EvaluationKeys keys, const Params& params) {
  log_info("evaluation keys loaded: %d bytes", keys.bytes());
  return {std::make_shared<const rlwe::EvaluationKeys>(std::move(keys)), params.ptr};
}

/// The function, for work without the interpreter's lock; it may be None.
wire::Progress progress_of(nb::handle function) {
  require<InvalidArgument>(function.is_none() || PyCallable_Check(function.ptr()) != 0,
                           "progress must be a function of two whole numbers, or None");
  if (function.is_none()) return {};
  return [function](std::size_t done, std::size_t total) {
    const nb::gil_scoped_acquire gil;
    function(done, total);
  };
}

void save_keys(const EvaluationKeys& keys, nb::handle file, nb::handle progress) {
  const wire::Progress told = progress_of(progress);
  save_to(file, [&](const wire::Sink& sink) { wire::write(*keys.ptr, sink, told); });
}

EvaluationKeys load_keys(nb::handle file, const Params& params, std::size_t max_bytes,
                         nb::handle progress) {
  const wire::Progress told = progress_of(progress);
  const wire::Limits limits = limited(max_bytes);
  return loaded(load_from(
                    file,
                    [&](std::span<const std::uint8_t> bytes) {
                      return wire::from_bytes<rlwe::EvaluationKeys>(bytes, params.ptr,
                                                                    *params.ring(), limits);
                    },
                    [&](const wire::Source& source) {
                      return wire::read_keys(source, params.ptr, *params.ring(), limits, told);
                    }),
                params);
}

}  // namespace

void bind_values(nb::module_& m) {
  nb::class_<ckks::Plaintext> plaintext(m, "Plaintext", R"(An encoded vector, or batch of vectors.

>>> server = ckks.Evaluator(ckks.Params.create(depth=1))
>>> encoded = server.explicit.encode([0.5, -1.25])
>>> server.explicit.decode(encoded).real[:2].round(3)
array([ 0.5 , -1.25]))");
  refuse_constructor(plaintext, "a Plaintext is made by Evaluator.explicit.encode(values)");
  share_copies(plaintext);
  add_bytes(plaintext);
  plaintext.def_ro("level", &ckks::Plaintext::level, "The level whose primes it has.")
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
      .def_static("from_bytes",
                  checked(of_bytes("Plaintext.from_bytes", "data"), &from_bytes<ckks::Plaintext>),
                  nb::sig(from_bytes_signature("Plaintext").c_str()), kFromBytes)
      .def_static("load", checked(of_bytes("Plaintext.load", "file"), &load<ckks::Plaintext>),
                  nb::sig(load_signature("Plaintext").c_str()), kLoad)
      .def("__repr__", [](const ckks::Plaintext& p) {
        char text[120];
        std::snprintf(text, sizeof(text), "Plaintext(level=%d, scale=2^%.2f, %zu bytes)", p.level,
                      std::log2(p.scale), p.poly.bytes());
        return std::string(text);
      });

  nb::class_<ckks::CompactPlaintext> compact(
      m, "CompactPlaintext",
      R"(An encoded vector, or batch of vectors, as integers, which serve every level.

>>> server = ckks.Evaluator(ckks.Params.create(depth=1))
>>> compact = server.explicit.encode_compact([0.5, -1.25])
>>> compact.nbytes < server.explicit.expand(compact).nbytes
True)");
  refuse_constructor(compact,
                     "a CompactPlaintext is made by Evaluator.explicit.encode_compact(values)");
  share_copies(compact);
  compact
      .def_ro("scale", &ckks::CompactPlaintext::scale,
              "The factor between the numbers and the integers.")
      .def_prop_ro(
          "slots", [](const ckks::CompactPlaintext& p) { return std::size_t{1} << p.log_slots; },
          "Numbers in each vector.")
      .def_ro("batch", &ckks::CompactPlaintext::batch, "Vectors in the batch.")
      .def_prop_ro("nbytes", &ckks::CompactPlaintext::bytes, "Bytes in memory.")
      .def_prop_ro(
          "params", [](const ckks::CompactPlaintext& p) { return Params{p.params}; },
          "Its parameters.")
      .def("__repr__", [](const ckks::CompactPlaintext& p) {
        char text[120];
        std::snprintf(text, sizeof(text), "CompactPlaintext(scale=2^%.2f, %zu bytes)",
                      std::log2(p.scale), p.bytes());
        return std::string(text);
      });

  nb::class_<ckks::Ciphertext> ciphertext(m, "Ciphertext",
                                          R"(An encrypted vector, or batch of vectors.

It holds nothing secret. To compute with it, bind it to an Evaluator.

>>> client = ckks.Client(ckks.Params.create(depth=1))
>>> sent = client.encrypt([0.5, -1.25]).to_bytes()
>>> client.decrypt(ckks.Ciphertext.from_bytes(sent, client.params)).round(3)
array([ 0.5 , -1.25]))");
  refuse_constructor(ciphertext,
                     "a Ciphertext is made by Client.encrypt(values) or read by "
                     "Ciphertext.from_bytes(data, params)");
  share_copies(ciphertext);
  add_bytes(ciphertext);
  refuse_methods(
      ciphertext,
      {"__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__",
       "__rtruediv__", "__pow__", "__matmul__", "__rmatmul__", "__neg__", "__getitem__", "__len__"},
      "a Ciphertext does not compute: bind it to an Evaluator first, "
      "x = evaluator.bind(ciphertext)");
  ciphertext.def_ro("level", &ckks::Ciphertext::level, "How many multiplications may follow.")
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
          "is_padded", [](const ckks::Ciphertext& c) { return c.packing.rest == 0; },
          "Whether the slots that hold none of its numbers are known to be zero.")
      .def_prop_ro("rest", &ckks::rest_of,
                   "A bound on the modulus of what the slots hold that hold none of its numbers: 0 "
                   "if they are zero or there are none, and the peak if nothing else is known.")
      .def_prop_ro(
          "repeats",
          [](const ckks::Ciphertext& c) -> std::optional<std::uint32_t> {
            if (!ckks::is_in_order(c.packing)) return std::nullopt;
            return c.packing.tiling.window;
          },
          "After how many slots the numbers of a vector come again: 0 if they do not, None if they "
          "lie in the windows of a plan.")
      .def_prop_ro(
          "layout",
          [](const ckks::Ciphertext& c) {
            const std::size_t slots = std::size_t{1} << c.log_slots;
            ckks::Packing packing = c.packing;
            packing.tiling.first = 0;
            packing.view.reset();
            return circuits::Layout::of(ckks::length_of(c), slots, {packing});
          },
          "How the numbers lie in the slots.")
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
      .def_prop_ro(
          "expected_bits", &expected_bits,
          "The precision in bits that is expected of independent numbers: precision_bits, or "
          "up to 1.5 more. It is for planners, which keep a margin of their own.")
      .def_prop_ro(
          "independent_bits", &independent_bits,
          "The precision in bits if no terms of its sums have related errors. It is for planners "
          "that know this.")
      .def_prop_ro(
          "peak", [](const ckks::Ciphertext& c) { return c.estimate.peak; },
          "The largest modulus that its numbers can have, as it was declared, computed or claimed. "
          "It holds for all slots.")
      .def_static("from_bytes",
                  checked(of_bytes("Ciphertext.from_bytes", "data"), &from_bytes<ckks::Ciphertext>),
                  nb::sig(from_bytes_signature("Ciphertext").c_str()), kFromBytes)
      .def_static("load", checked(of_bytes("Ciphertext.load", "file"), &load<ckks::Ciphertext>),
                  nb::sig(load_signature("Ciphertext").c_str()), kLoad)
      .def("__repr__", &repr);

  nb::class_<PublicKey> public_key(m, "PublicKey", R"(A key that encrypts and does not decrypt.

>>> client = ckks.Client(ckks.Params.create(depth=1))
>>> sent = client.public_key().to_bytes()
>>> ckks.PublicKey.from_bytes(sent, client.params).key_id == client.key_id
True)");
  refuse_constructor(public_key, "a PublicKey is made by Client.public_key()");
  share_copies(public_key);
  const auto public_bytes = [](const PublicKey& k) { return wire::to_bytes(*k.ptr); };
  add_to_bytes(public_key, public_bytes);
  add_save(public_key, public_bytes);
  public_key
      .def_prop_ro(
          "params", [](const PublicKey& k) { return Params{k.params}; }, "Its parameters.")
      .def_prop_ro(
          "key_id", [](const PublicKey& k) { return rlwe::to_string(k.ptr->key_id); },
          "The name of the secret key; see Client.key_id.")
      .def_prop_ro(
          "nbytes", [](const PublicKey& k) { return k.ptr->b.bytes() + sizeof(k.ptr->seed); },
          "Bytes of its stored half and its seed.")
      .def_static("from_bytes",
                  checked(of_bytes("PublicKey.from_bytes", "data"),
                          [](nb::handle data, const Params& params, std::size_t max_bytes) {
                            return PublicKey{
                                std::make_shared<const rlwe::PublicKey>(
                                    from_bytes<rlwe::PublicKey>(data, params, max_bytes)),
                                params.ptr};
                          }),
                  nb::sig(from_bytes_signature("PublicKey").c_str()), kFromBytes)
      .def_static("load",
                  checked(of_bytes("PublicKey.load", "file"),
                          [](nb::handle file, const Params& params, std::size_t max_bytes) {
                            return PublicKey{std::make_shared<const rlwe::PublicKey>(
                                                 load<rlwe::PublicKey>(file, params, max_bytes)),
                                             params.ptr};
                          }),
                  nb::sig(load_signature("PublicKey").c_str()), kLoad)
      .def("__repr__", [](const PublicKey& k) {
        return "PublicKey(" + std::to_string(k.ptr->b.bytes()) + " bytes)";
      });

  nb::class_<KeyDemand> demand(m, "KeyDemand", "The keys that functions use.");
  refuse_constructor(demand, "a KeyDemand is what an Evaluator that records its keys gives");
  demand.def_prop_ro(
      "rotations",
      [](const KeyDemand& d) {
        std::map<int, int> out;
        for (const auto& [element, level] : d.keys.galois) {
          if (const auto r = ckks::rotation_steps(d.params->n(), element)) out[*r] = level;
        }
        return out;
      },
      "The rotations, each with the highest level at which it is used.");

  nb::class_<EvaluationKeys> keys(
      m, "EvaluationKeys", R"(The public keys that an evaluator needs: relinearisation, rotations.

>>> client = ckks.Client(ckks.Params.create(depth=1))
>>> keys = client.evaluation_keys(rotations=[1, 2])
>>> keys.has_relinearisation, keys.has_rotation(3)
(True, True))");
  refuse_constructor(keys, "EvaluationKeys are made by Client.evaluation_keys(rotations=[...])");
  share_copies(keys);
  refuse_methods(keys, {"__add__", "__radd__", "__or__", "__ror__"},
                 "sets of evaluation keys are not joined: one call makes all of them, "
                 "client.evaluation_keys(rotations=[1, 2, 4])");
  method(
      keys, "has_rotation", 1, {{"steps"}},
      [](const EvaluationKeys& k, int steps) { return ckks::can_rotate(*k.ptr, steps); },
      "Whether a rotation by this many slots is possible, by its own key or composed of others.");
  add_to_bytes(keys, [](const EvaluationKeys& k) { return wire::to_bytes(*k.ptr, interrupts()); });
  method(
      keys, "save", 1, {{"file", std::nullopt, kFileType}, {"progress", nb::none(), kProgressType}},
      &save_keys,
      R"(Write to_bytes() to a path, or to a file opened with "wb", without making all of it in memory.

progress: called with how many bytes are written and how many there are. If it raises, the work ends.
A path is replaced at once: if anything fails or interrupts, the file is what it was before. Raises FileError.)");
  keys.def_prop_ro(
          "params", [](const EvaluationKeys& k) { return Params{k.params}; }, "Their parameters.")
      .def_prop_ro(
          "key_id", [](const EvaluationKeys& k) { return rlwe::to_string(k.ptr->key_id); },
          "The name of the secret key; see Client.key_id.")
      .def_prop_ro(
          "nbytes", [](const EvaluationKeys& k) { return k.ptr->bytes(); },
          "Bytes in memory, before an evaluator expands them: Params.key_bytes of the same "
          "rotations.")
      .def_prop_ro(
          "sent_bytes", [](const EvaluationKeys& k) { return wire::sent_bytes(*k.ptr); },
          "How many bytes to_bytes() and save() give. They are packed, and so fewer than nbytes.")
      .def_prop_ro(
          "count",
          [](const EvaluationKeys& k) {
            return k.ptr->galois.size() + (k.ptr->relinearisation.has_value() ? 1 : 0);
          },
          "The number of key-switching keys.")
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
      .def_static("from_bytes",
                  checked(of_bytes("EvaluationKeys.from_bytes", "data"),
                          [](nb::handle data, const Params& params, std::size_t max_bytes) {
                            return loaded(from_bytes<rlwe::EvaluationKeys>(data, params, max_bytes),
                                          params);
                          }),
                  nb::sig(from_bytes_signature("EvaluationKeys").c_str()), kFromBytes)
      .def_static(
          "load",
          checked({"EvaluationKeys.load",
                   2,
                   {{"file"},
                    {"params"},
                    {"max_bytes", nb::int_(wire::Limits{}.max_bytes)},
                    {"progress", nb::none()}}},
                  &load_keys),
          nb::sig("def load(file: str | os.PathLike[str] | typing.BinaryIO | bytes, "
                  "params: Params, *, max_bytes: int = ..., "
                  "progress: collections.abc.Callable[[int, int], object] | None = None) -> "
                  "EvaluationKeys"),
          R"(Read what save wrote, from a path, a file opened with "rb", or bytes.

From a path or a file, the bytes are never all in memory; from a file, one object is read, and no byte after it.
progress: called with how many bytes are read and how many there are. If it raises, the work ends.
The other arguments and the errors are those of from_bytes, and FileError for a file that cannot be read.)")
      .def("__repr__", [](const EvaluationKeys& k) {
        return "EvaluationKeys(" + std::to_string(k.ptr->galois.size()) + " rotations, " +
               std::to_string(k.ptr->bytes()) + " bytes)";
      });
}

}  // namespace jali::python
