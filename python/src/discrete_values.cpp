// Ciphertexts and public keys of exact integers for Python: opaque and immutable.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bytes.h"
#include "checked.h"
#include "ckks_here.h"
#include "discrete.h"
#include "files.h"
#include "interrupts.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/composed.h"
#include "jali/wire/discrete.h"
#include "jali/wire/keys.h"
#include "log.h"
#include "methods.h"
#include "refusals.h"

namespace jali::python {

namespace {

std::size_t bytes_of(const DiscreteArray& a) {
  std::size_t total = 0;
  for (const auto& part : a.block.parts) total += part.bytes();
  return total;
}

nb::tuple counts_of(const DiscreteArray& a) {
  nb::list counts;
  if (a.view) {
    for (const auto& axis : std::get<0>(*a.view)) counts.append(axis.first);
  } else {
    counts.append(a.rows());
    counts.append(a.block.params->n() / 2);
  }
  return nb::tuple(counts);
}

/// Of a ciphertext that a program in C++ wrote without a view: (vectors, N) numbers.
ckks::View view_of_vectors(const discrete::Ciphertext& a) {
  const auto n = static_cast<std::uint32_t>(a.params->n());
  ckks::View out;
  out.axes = {{static_cast<std::uint32_t>(a.batch()), static_cast<std::int32_t>(n)}, {n, 1}};
  return out;
}

wire::Limits limited(std::size_t max_bytes) {
  wire::Limits limits;
  limits.max_bytes = max_bytes;
  return limits;
}

using Input = std::span<const std::uint8_t>;

template <class T>
T read(Input bytes, const DiscreteParams& params, const wire::Limits& limits) {
  if constexpr (std::is_same_v<T, DiscreteArray>) {
    wire::DiscreteArray out =
        wire::discrete_array_from_bytes(bytes, params.ptr, *params.ring(), limits);
    const ckks::View view = out.view ? *out.view : view_of_vectors(out.block);
    return {std::move(out.block), tuple_of(view), out.padded};
  } else {
    return wire::from_bytes<T>(bytes, params.ptr, *params.ring(), limits);
  }
}

/// from_bytes of T, a ciphertext or keys, as a function of Python.
template <class T>
T from_bytes(nb::handle data, const DiscreteParams& params, std::size_t max_bytes) {
  const BytesView view(data);
  nb::gil_scoped_release release;
  return read<T>(view.span(), params, limited(max_bytes));
}
template <class T>
T load(nb::handle file, const DiscreteParams& params, std::size_t max_bytes) {
  const wire::Limits limits = limited(max_bytes);
  const auto of_bytes = [&](Input bytes) { return read<T>(bytes, params, limits); };
  return load_from(file, of_bytes, [&](const wire::Source& source) {
    return of_bytes(wire::read_object(source, limits));
  });
}

/// The parameters of from_bytes and load. call: e.g. "PublicKey.load"; first: the name of their
/// first one.
Call of_bytes(const char* call, const char* first) {
  return {call, 2, {{first}, {"params"}, {"max_bytes", nb::int_(wire::Limits{}.max_bytes)}}};
}

constexpr const char* kFromBytes = R"(Load what to_bytes made. Every byte is checked.

max_bytes: a bound on the size of the input, and also on the memory of the result.
Raises CorruptData, VersionError, ParamsMismatch or LimitExceeded.)";
constexpr const char* kLoad =
    R"(Read what save wrote, from a path, a file opened with "rb", or bytes.

The other arguments and the errors are those of from_bytes, and FileError for a file that cannot be read. From a file
object, one object is read, and no byte after it.)";

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

DiscreteKeys loaded(rlwe::EvaluationKeys keys, const DiscreteParams& params) {
  log_info("evaluation keys loaded: %d bytes", keys.bytes());
  return {std::make_shared<const rlwe::EvaluationKeys>(std::move(keys)), params.ptr};
}
DiscreteArray loaded(DiscreteArray array, const DiscreteParams&) { return array; }
DiscretePublicKey loaded(rlwe::PublicKey key, const DiscreteParams& params) {
  return {std::make_shared<const rlwe::PublicKey>(std::move(key)), params.ptr};
}

/// Adds to_bytes, save, from_bytes and load to a class that is, or holds, a T of the library.
template <class T, class Held, class Bytes>
void add_bytes(nb::class_<Held>& type, const char* name, Bytes bytes) {
  add_to_bytes(type, bytes);
  add_save(type, bytes);
  const std::string owner = name;
  type.def_static("from_bytes",
                  checked(of_bytes((owner + ".from_bytes").c_str(), "data"),
                          [](nb::handle data, const DiscreteParams& params, std::size_t most) {
                            return loaded(from_bytes<T>(data, params, most), params);
                          }),
                  nb::sig(from_bytes_signature(name).c_str()), kFromBytes)
      .def_static("load",
                  checked(of_bytes((owner + ".load").c_str(), "file"),
                          [](nb::handle file, const DiscreteParams& params, std::size_t most) {
                            return loaded(load<T>(file, params, most), params);
                          }),
                  nb::sig(load_signature(name).c_str()), kLoad);
}

}  // namespace

discrete::Ciphertext host_copy(const discrete::Ciphertext& x) {
  std::vector<ring::Poly> parts;
  for (const auto& part : x.parts) parts.push_back(host_copy(part));
  return {{x.key_id, std::move(parts), x.level, x.seed}, x.params, x.factor, x.estimate};
}

bool is_on_host(const discrete::Ciphertext& x) {
  return x.parts.empty() || x.parts[0].buffer().host_accessible();
}

void bind_discrete_values(nb::module_& m) {
  nb::class_<DiscreteArray> ciphertext(m, "Ciphertext",
                                       R"(An encrypted array of integers.

It holds nothing secret. To compute with it, bind it to an Evaluator.

>>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
>>> ciphertext = client.encrypt(np.array([3, -1, 7], dtype=np.int8))
>>> ciphertext.shape, ciphertext.range
((3,), (-128, 127))
>>> client.decrypt(discrete.Ciphertext.from_bytes(ciphertext.to_bytes(), client.params))
array([ 3, -1,  7]))");
  refuse_constructor(ciphertext,
                     "a Ciphertext is made by Client.encrypt(values) or read by "
                     "Ciphertext.from_bytes(data, params)");
  share_copies(ciphertext);
  add_bytes<DiscreteArray>(ciphertext, "Ciphertext", [](const DiscreteArray& a) {
    const auto view = a.view ? std::optional(view_of(*a.view)) : std::nullopt;
    return is_on_host(a.block) ? wire::to_bytes(a.block, view, a.padded)
                               : wire::to_bytes(host_copy(a.block), view, a.padded);
  });
  refuse_methods(
      ciphertext,
      {"__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__",
       "__rtruediv__", "__pow__", "__matmul__", "__rmatmul__", "__neg__", "__getitem__", "__len__"},
      "a Ciphertext does not compute: bind it to an Evaluator first, "
      "x = evaluator.bind(ciphertext)");
  ciphertext
      .def_prop_ro(
          "level", [](const DiscreteArray& a) { return a.block.level; },
          "How many multiplications may follow.")
      .def_prop_ro(
          "slots", [](const DiscreteArray& a) { return a.block.params->n() / 2; },
          "Numbers in each row.")
      .def_prop_ro("rows", &DiscreteArray::rows,
                   "How many rows it has, two for each vector of params.slots numbers.")
      .def_prop_ro("shape", &counts_of, nb::sig("def shape(self) -> tuple[int, ...]"),
                   "The shape that decryption gives.")
      .def_prop_ro(
          "view", [](const DiscreteArray& a) { return a.view; },
          "Where the elements lie: (count, stride) of every axis, the first address, and the "
          "period "
          "(0: none). An address counts the numbers of all rows.")
      .def_ro("is_padded", &DiscreteArray::padded,
              "Whether the slots that hold none of its numbers are known to be zero.")
      .def_prop_ro(
          "range",
          [](const DiscreteArray& a) {
            return std::make_pair(a.block.estimate.range.low, a.block.estimate.range.high);
          },
          "The lowest and the highest number that it can hold, as declared or computed. It is "
          "public.")
      .def_prop_ro(
          "wraps", [](const DiscreteArray& a) { return a.block.estimate.range.wraps; },
          "Whether its numbers are residues modulo params.modulus.")
      .def_prop_ro(
          "noise_budget",
          [](const DiscreteArray& a) {
            return discrete::NoiseModel(*a.block.params).budget(a.block.estimate, a.block.level);
          },
          "Bits by which its noise may still grow, from public facts alone. Decryption is right if "
          "it is positive.")
      .def_prop_ro("nbytes", &bytes_of, "Bytes in memory.")
      .def_prop_ro(
          "params", [](const DiscreteArray& a) { return DiscreteParams{a.block.params}; },
          "Its parameters.")
      .def_prop_ro(
          "key_id", [](const DiscreteArray& a) { return rlwe::to_string(a.block.key_id); },
          "The name of the secret key that decrypts it, 32 hexadecimal digits; see Client.key_id.")
      .def("__repr__", [](const DiscreteArray& a) {
        const std::string shape = nb::cast<std::string>(nb::str(counts_of(a)));
        return "Ciphertext(shape=" + shape + ", level=" + std::to_string(a.block.level) + ", " +
               std::to_string(bytes_of(a)) + " bytes)";
      });

  nb::class_<DiscretePublicKey> public_key(m, "PublicKey",
                                           R"(A key that encrypts and does not decrypt.

>>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
>>> sent = client.public_key().to_bytes()
>>> discrete.PublicKey.from_bytes(sent, client.params).key_id == client.key_id
True)");
  refuse_constructor(public_key, "a PublicKey is made by Client.public_key()");
  share_copies(public_key);
  add_bytes<rlwe::PublicKey>(public_key, "PublicKey",
                             [](const DiscretePublicKey& k) { return wire::to_bytes(*k.ptr); });
  public_key
      .def_prop_ro(
          "params", [](const DiscretePublicKey& k) { return DiscreteParams{k.params}; },
          "Its parameters.")
      .def_prop_ro(
          "key_id", [](const DiscretePublicKey& k) { return rlwe::to_string(k.ptr->key_id); },
          "The name of the secret key; see Client.key_id.")
      .def_prop_ro(
          "nbytes",
          [](const DiscretePublicKey& k) { return k.ptr->b.bytes() + sizeof(k.ptr->seed); },
          "Bytes of its stored half and its seed.")
      .def("__repr__", [](const DiscretePublicKey& k) {
        return "PublicKey(" + std::to_string(k.ptr->b.bytes()) + " bytes)";
      });

  nb::class_<DiscreteDemand> demand(m, "KeyDemand", "The keys that functions use.");
  refuse_constructor(demand, "a KeyDemand is what an Evaluator that records its keys gives");
  demand.def_prop_ro(
      "rotations",
      [](const DiscreteDemand& d) {
        std::map<int, int> out;
        for (const auto& [element, level] : d.keys.galois) {
          if (const auto r = rlwe::rotation_steps(d.params->n(), element)) out[*r] = level;
        }
        return out;
      },
      "The rotations of rows, each with the highest level at which it is used.");

  nb::class_<DiscreteKeys> keys(
      m, "EvaluationKeys",
      R"(The public keys that an evaluator needs: relinearisation, rotations.

>>> client = discrete.Client(discrete.Params.create(modulus=65537, depth=1))
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
      [](const DiscreteKeys& k, int steps) {
        const int half = static_cast<int>(k.params->n() / 2);
        return rlwe::can_rotate(*k.ptr, ((steps % half) + half) % half) &&
               k.ptr->galois.contains(ring::conjugation_element(k.params->n()));
      },
      "Whether a rotation by this many slots is possible, by its own key or composed of others.");
  add_bytes<rlwe::EvaluationKeys>(keys, "EvaluationKeys", [](const DiscreteKeys& k) {
    return wire::to_bytes(*k.ptr, interrupts());
  });
  keys.def_prop_ro(
          "params", [](const DiscreteKeys& k) { return DiscreteParams{k.params}; },
          "Their parameters.")
      .def_prop_ro(
          "key_id", [](const DiscreteKeys& k) { return rlwe::to_string(k.ptr->key_id); },
          "The name of the secret key; see Client.key_id.")
      .def_prop_ro(
          "nbytes", [](const DiscreteKeys& k) { return k.ptr->bytes(); },
          "Bytes in memory, before an evaluator expands them: Params.key_bytes of the same "
          "rotations.")
      .def_prop_ro(
          "sent_bytes", [](const DiscreteKeys& k) { return wire::sent_bytes(*k.ptr); },
          "How many bytes to_bytes() and save() give. They are packed, and so fewer than nbytes.")
      .def_prop_ro(
          "count",
          [](const DiscreteKeys& k) {
            return k.ptr->galois.size() + (k.ptr->relinearisation.has_value() ? 1 : 0);
          },
          "The number of key-switching keys.")
      .def_prop_ro(
          "has_relinearisation",
          [](const DiscreteKeys& k) { return k.ptr->relinearisation.has_value(); },
          "Whether products of ciphertexts can be relinearised.")
      .def("__repr__", [](const DiscreteKeys& k) {
        return "EvaluationKeys(" + std::to_string(k.ptr->galois.size()) + " rotations, " +
               std::to_string(k.ptr->bytes()) + " bytes)";
      });
}

}  // namespace jali::python
