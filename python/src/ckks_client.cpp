// The side that holds the secret, and public-key encryption.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "arrays.h"
#include "binding.h"
#include "bytes.h"
#include "checked.h"
#include "ckks_circuits.h"
#include "ckks_here.h"
#include "commit.h"
#include "files.h"
#include "interrupts.h"
#include "jali/base/wipe.h"
#include "jali/bootstrap/secret/evaluation_keys.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/schemes/ckks/encryptor.h"
#include "jali/schemes/ckks/range.h"
#include "jali/schemes/ckks/secret/decryption.h"
#include "jali/schemes/ckks/secret/decryptor.h"
#include "jali/schemes/ckks/secret/encryptor.h"
#include "jali/schemes/ckks/secret/release.h"
#include "jali/wire/secret/secret_key.h"
#include "program.h"
#include "progress.h"
#include "trace.h"

namespace jali::python {

using namespace nb::literals;
using circuits::Layout;

namespace {

std::shared_ptr<const ring::Ring> cpu_ring(const ckks::Params& params, int threads) {
  return ckks::make_ring(params, "cpu", threads == 0 ? default_threads() : threads,
                         backend::Variants{}, interrupts());
}

/// Throws InvalidArgument unless the numbers are slots in which vectors lie so.
void require_laid(const Vectors& v, const ckks::Packing& lies, std::size_t slots) {
  bool laid = v.count() == slots;
  if (laid) {
    std::vector<std::complex<double>> store;
    const WipedAtEnd wiped(store);
    const auto values = v.as_complex(store);
    auto numbers = ckks::from_slots(values, v.batch(), lies);
    const WipedAtEnd wiped_numbers(numbers);
    auto again = ckks::to_slots(numbers, v.batch(), lies, slots);
    const WipedAtEnd wiped_again(again);
    laid = std::ranges::equal(again, values);
  }
  require<InvalidArgument>(
      laid,
      "the array was made by pack(), and its numbers no longer lie as they "
      "did: encrypt what pack() gives for these slots, or a copy of the array");
}

/// Encodes and encrypts an array with any encryptor. Encryption under the secret and the public key
/// share it.
template <class Encrypt>
ckks::Ciphertext encrypt_array(const ckks::ParamsPtr& params, const ckks::Encoder& encoder,
                               nb::handle values, int level, std::int64_t slots,
                               const std::optional<ViewTuple>& view,
                               const std::optional<Layout>& layout, std::size_t part, double peak,
                               const Encrypt& encrypt) {
  const Vectors v(values);
  level = checked_level(*params, level);
  // Before anything is encoded: what is declared may be told, and how far the numbers themselves
  // are out of range may not.
  ckks::require_peak(*params, peak, params->scale(level), level);
  const int log_slots = checked_log_slots(*params, slots);
  ckks::Packing packing = ckks::packing_of_fresh(v.count(), log_slots, v.batched(), v.is_complex());
  if (view) {
    packing.view = view_of(*view);
    packing.rest = 0;
    packing.batched = true;
    require<InvalidArgument>(
        packing.length == 0 &&
            ckks::is_within(*packing.view, std::size_t{1} << log_slots, v.batch()),
        "the elements of this view do not lie in the slots");
  } else if (layout) {
    const ckks::Packing& lies = packing_in(*layout, part);
    require_laid(v, lies, std::size_t{1} << log_slots);
    packing.length = lies.length;
    packing.tiling = lies.tiling;
    packing.rest = lies.rest;
  }
  const double scale = params->scale(level);
  nb::gil_scoped_release release;
  const ckks::Plaintext plaintext =
      v.is_complex() ? encoder.encode(v.complex(), v.batch(), level, scale, log_slots)
                     : encoder.encode(v.real(), v.batch(), level, scale, log_slots);
  ckks::Ciphertext out = encrypt(plaintext);
  out.packing = packing;
  return out;
}

/// The first `length` slots of every vector, or, if it is 0, its numbers.
nb::object shown(std::span<const std::complex<double>> values, const ckks::Ciphertext& c,
                 std::size_t length, bool complex_values) {
  const bool batched = ckks::is_batched(c);
  if (length != 0) return to_numpy(values, c.batch(), length, batched, complex_values);
  length = ckks::length_of(c);
  if (ckks::is_in_order(c.packing)) {
    return to_numpy(values, c.batch(), length, batched, complex_values);
  }
  auto numbers = ckks::from_slots(values, c.batch(), c.packing);
  const WipedAtEnd wiped(numbers);
  return to_numpy(numbers, c.batch(), length, batched, complex_values);
}

/// Holds the secret key. Only secret_to_bytes returns it.
class Client {
 public:
  /// trace: whether the operations of the device are recorded, for benchmarks.
  Client(const Params& params, int threads, const std::string& device, bool trace)
      : params_(params.ptr),
        host_(cpu_ring(*params_, threads)),
        trace_(trace ? std::make_shared<backend::Trace>(commit()) : nullptr) {
    rlwe::KeyGenerator generator(params_, host_);
    adopt(std::make_shared<const rlwe::SecretKey>(generator.secret_key()), threads, device);
  }

  /// secret: its bytes or, if is_file, anything that load_from takes.
  Client(nb::handle secret, const Params& params, int threads, const std::string& device,
         bool is_file)
      : params_(params.ptr), host_(cpu_ring(*params_, threads)) {
    const auto of_bytes = [&](std::span<const std::uint8_t> bytes) {
      return std::make_shared<const rlwe::SecretKey>(
          wire::secret_from_bytes(bytes, params_, *host_));
    };
    std::shared_ptr<const rlwe::SecretKey> key;
    if (is_file) {
      key = load_from(secret, of_bytes, [&](const wire::Source& source) {
        return of_bytes(wire::read_object<wire::SecretBytes>(source, {}));
      });
    } else {
      const BytesView view(secret);
      const nb::gil_scoped_release release;
      key = of_bytes(view.span());
    }
    const nb::gil_scoped_release release;
    adopt(std::move(key), threads, device);
  }

  void save_secret(nb::handle file) const {
    require<InvalidArgument>(!nb::hasattr(file, "write"),
                             "a secret key is saved to a path, so that nobody else can read the "
                             "file: for other places, see secret_to_bytes");
    const auto path = path_of(file, "a path");
    const nb::gil_scoped_release release;
    wire::save_secret(path, *kept_, *host_);
  }

  nb::bytes secret_to_bytes() const {
    return to_python_bytes([&] { return wire::secret_to_bytes(*kept_, *host_); });
  }
  std::string engine() const { return ring_->engine().name(); }
  std::optional<Trace> trace() const {
    if (trace_ == nullptr) return std::nullopt;
    return Trace{trace_};
  }

  Params params() const { return {params_}; }
  std::string key_id() const { return rlwe::to_string(kept_->id()); }

  ckks::Ciphertext encrypt(nb::handle values, int level, std::int64_t slots, double magnitude,
                           double peak, const std::optional<ViewTuple>& view,
                           const std::optional<Layout>& layout, std::size_t part, bool calibrated) {
    params::Declared declared = checked_declared(magnitude, peak);
    declared.calibrated = calibrated;
    return encrypt_array(params_, *encoder_, values, level, slots, view, layout, part,
                         declared.peak, [&](const ckks::Plaintext& p) {
                           ckks::Ciphertext c = encryptor_->encrypt(p, declared);
                           return is_on_host(c) ? std::move(c) : host_copy(c);
                         });
  }

  nb::object decrypt(const ckks::Ciphertext& c, std::size_t length, bool complex_values,
                     bool check) const {
    require_same(*params_, *c.params, "the ciphertext is");
    std::vector<std::complex<double>> values;
    const WipedAtEnd wiped(values);
    {
      nb::gil_scoped_release release;
      values = ckks::decrypt(*decryptor_, *encoder_, c, check ? ckks::Check::yes : ckks::Check::no);
    }
    return shown(values, c, length, complex_values);
  }

  nb::object release(const ckks::Ciphertext& c, const ckks::ReleasePolicy& policy,
                     std::size_t length, bool complex_values) const {
    require_same(*params_, *c.params, "the ciphertext is");
    std::vector<std::complex<double>> values;
    const WipedAtEnd wiped(values);
    {
      nb::gil_scoped_release release;
      values = ckks::release(*decryptor_, *encoder_, *ring_, c, policy);
    }
    return shown(values, c, length, complex_values);
  }

  /// bootstrap: the numbers of slots of the values that will be bootstrapped; 0 stands for all
  /// slots.
  EvaluationKeys evaluation_keys(const Rotations& rotations, bool conjugate, bool relinearise,
                                 const std::vector<std::int64_t>& bootstrap, bool minimum,
                                 const std::optional<Progress>& progress,
                                 std::optional<std::uint64_t> memory) const {
    rlwe::KeyGenerator generator(params_, ring_);
    const auto wanted = key_rotations(*params_, rotations, minimum);
    const auto plans = bootstrap_plans(params_, bootstrap, {minimum, memory}, wanted, conjugate);
    std::map<int, int> everywhere;  // every key serves every level
    for (const int steps : wanted) everywhere.emplace(steps, -1);
    auto keys = plans.empty()
                    ? generator.evaluation_keys(*secret_, everywhere, conjugate ? -1 : rlwe::kNoKey,
                                                relinearise ? -1 : rlwe::kNoKey, with_gil(progress))
                    : bootstrap::evaluation_keys(generator, *secret_, plans, wanted, conjugate,
                                                 with_gil(progress));
    if (!on_host()) keys = rlwe::host_copy(*ring_, keys);
    return {std::make_shared<const rlwe::EvaluationKeys>(std::move(keys)), params_};
  }

  EvaluationKeys keys_for(const KeyDemand& demand, const std::optional<Progress>& progress) const {
    require_same(*params_, *demand.params, "the function's keys are");
    rlwe::KeyGenerator generator(params_, ring_);
    auto keys = generator.keys_for(*secret_, demand.keys, with_gil(progress));
    if (!on_host()) keys = rlwe::host_copy(*ring_, keys);
    return {std::make_shared<const rlwe::EvaluationKeys>(std::move(keys)), params_};
  }

  /// The client of a compiled program, which shares this key.
  ProgramClient of_program(const ProgramManifest& manifest) const {
    return {std::make_shared<const client::Client>(
        *manifest.ptr, client::Holder{params_, ring_, secret_, encoder_, encryptor_, decryptor_})};
  }

  PublicKey public_key() const {
    rlwe::KeyGenerator generator(params_, ring_);
    rlwe::PublicKey key = generator.public_key(*secret_);
    if (!on_host()) key = rlwe::host_copy(*ring_, key);
    return {std::make_shared<const rlwe::PublicKey>(std::move(key)), params_};
  }

 private:
  bool on_host() const { return ring_->memory().host_accessible(); }

  /// Keeps the secret in the host's memory, and copies it to the device that computes.
  void adopt(std::shared_ptr<const rlwe::SecretKey> secret, int threads,
             const std::string& device) {
    kept_ = secret_ = std::move(secret);
    ring_ = device == "cpu"
                ? host_
                : ckks::make_ring(*params_, device, threads == 0 ? default_threads() : threads,
                                  backend::Variants{}, interrupts());
    if (trace_ != nullptr) ring_ = traced(ring_, *params_, trace_);
    if (!on_host()) {
      secret_ = std::make_shared<const rlwe::SecretKey>(
          wire::secret_from_bytes(wire::secret_to_bytes(*kept_, *host_), params_, *ring_));
    }
    encoder_ = std::make_shared<const ckks::Encoder>(params_, ring_);
    encryptor_ = std::make_shared<ckks::SecretEncryptor>(secret_, ring_);
    decryptor_ = std::make_shared<const ckks::Decryptor>(secret_, ring_);
  }

  ckks::ParamsPtr params_;
  std::shared_ptr<const ring::Ring> host_, ring_;
  std::shared_ptr<backend::Trace> trace_;  // null if nothing is recorded
  std::shared_ptr<const rlwe::SecretKey> kept_, secret_;  // in the host's memory; in that of ring_
  std::shared_ptr<const ckks::Encoder> encoder_;
  std::shared_ptr<ckks::SecretEncryptor> encryptor_;
  std::shared_ptr<const ckks::Decryptor> decryptor_;
};

class Encryptor {
 public:
  Encryptor(const PublicKey& key, int threads)
      : params_(key.params),
        ring_(cpu_ring(*params_, threads)),
        encoder_(params_, ring_),
        encryptor_(key.ptr, ring_) {}

  Params params() const { return {params_}; }

  ckks::Ciphertext encrypt(nb::handle values, int level, std::int64_t slots, double magnitude,
                           double peak, const std::optional<ViewTuple>& view,
                           const std::optional<Layout>& layout, std::size_t part, bool calibrated) {
    params::Declared declared = checked_declared(magnitude, peak);
    declared.calibrated = calibrated;
    return encrypt_array(params_, encoder_, values, level, slots, view, layout, part, declared.peak,
                         [&](const ckks::Plaintext& p) { return encryptor_.encrypt(p, declared); });
  }

 private:
  ckks::ParamsPtr params_;
  std::shared_ptr<const ring::Ring> ring_;
  ckks::Encoder encoder_;
  ckks::PublicEncryptor encryptor_;
};

void make_policy(ckks::ReleasePolicy* self, nb::handle origin, nb::handle error_bound,
                 nb::handle largest, double releases, int statistical_bits) {
  const std::string from = origin.is_none() ? "" : text(origin, "origin");
  require<InvalidArgument>(
      from == "derived" || from == "declared",
      "say where the bound on the error comes from: origin=\"derived\" for what was "
      "computed in this process, or origin=\"declared\" with error_bound= and largest= "
      "for the authenticated reply of a server");
  const ckks::ReleasePolicy policy{
      from == "derived" ? ckks::BoundOrigin::derived : ckks::BoundOrigin::declared,
      real(error_bound, "error_bound").value_or(0), real(largest, "largest").value_or(0), releases,
      statistical_bits};
  const bool derived = policy.origin == ckks::BoundOrigin::derived;
  // Bounds that are not given are taken from the ciphertext later.
  ckks::ReleasePolicy complete = policy;
  if (derived && error_bound.is_none()) complete.error_bound = 1;
  if (derived && largest.is_none()) complete.largest = 1;
  ckks::check(complete);
  new (self) ckks::ReleasePolicy(policy);
}

}  // namespace

void bind_client(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<ckks::ReleasePolicy> policy(m, "ReleasePolicy",
                                         R"(What the key holder declares before results are shared.

origin: where the bound on the error comes from. "derived": from the ciphertext itself, which was encrypted and
    computed on in this process; one that was read from bytes is refused. "declared": from the key holder, who knows
    the circuit and has checked that the reply comes from the server (jali.authenticated). Without that check, whoever
    can change a reply chooses its error.
error_bound: a bound on the noise of every slot that holds for all inputs of the circuit, in message
    units; see worst_case_noise. If the origin is "derived", None stands for the ciphertext's own bound.
largest: the largest modulus that a result of the circuit can have, in message units. If the origin is "derived",
    None stands for the ciphertext's own bound.
releases: how many decryptions under this key will be released in all, repeated ones included; at least 1.
statistical_bits: from 20 to 100. Someone who chooses the inputs and sees all releases can tell which of two
    computations with equal exact results was done with an advantage of at most 2^-statistical_bits.

Raises InvalidArgument for values out of range.

>>> client = ckks.Client(ckks.Params.create(depth=1, scale_bits=75, integer_bits=50))
>>> policy = ckks.ReleasePolicy(origin="derived", releases=100)
>>> client.release(client.encrypt([0.5, -1.25]), policy=policy).round(2)
array([ 0.5 , -1.25]))");
  policy
      .def("__init__",
           checked_method<ckks::ReleasePolicy*>({"ReleasePolicy",
                                                 0,
                                                 {{"origin", nb::none()},
                                                  {"error_bound", nb::none()},
                                                  {"largest", nb::none()},
                                                  {"releases", nb::float_(1.0)},
                                                  {"statistical_bits", nb::int_(40)}}},
                                                &make_policy),
           nb::sig(
               "def __init__(self, *, origin: str, error_bound: float | None = None, "
               "largest: float | None = None, releases: float = 1.0, statistical_bits: int = 40) "
               "-> None"))
      .def_prop_ro(
          "origin",
          [](const ckks::ReleasePolicy& p) {
            return p.origin == ckks::BoundOrigin::derived ? "derived" : "declared";
          },
          "Where the bound comes from.")
      .def_ro("error_bound", &ckks::ReleasePolicy::error_bound,
              "Bound on a slot's noise, in message units; 0 stands for the ciphertext's own.")
      .def_ro("largest", &ckks::ReleasePolicy::largest,
              "Bound on a result, in message units; 0 stands for the ciphertext's own.")
      .def_ro("releases", &ckks::ReleasePolicy::releases,
              "How many decryptions under this key will be released in all.")
      .def_ro("statistical_bits", &ckks::ReleasePolicy::statistical_bits,
              "The distinguishing advantage is at most 2^-statistical_bits.")
      .def("__repr__", [](const ckks::ReleasePolicy& p) {
        char text[160];
        std::snprintf(text, sizeof(text),
                      "ReleasePolicy(origin='%s', error_bound=%g, largest=%g, releases=%g, "
                      "statistical_bits=%d)",
                      p.origin == ckks::BoundOrigin::derived ? "derived" : "declared",
                      p.error_bound, p.largest, p.releases, p.statistical_bits);
        return std::string(text);
      });
  method(
      policy, "noise_std", 2, {{"slots"}, {"batch", nb::int_(1)}},
      [](const ckks::ReleasePolicy& p, std::size_t slots, std::size_t batch) {
        require<InvalidArgument>(p.error_bound > 0,
                                 "the bound is taken from the ciphertext: noise_std needs a "
                                 "policy with error_bound=");
        require<InvalidArgument>(slots > 0 && batch > 0, "slots and batch must be at least 1");
        return ckks::flooding_std(p, slots, batch);
      },
      R"(Standard deviation of the noise that release adds to the real and to the imaginary part of every slot.

It is in message units.
slots: the number of slots of the ciphertext (its ``slots``, not its length).
batch: the number of vectors in it. All of them are one release, and the noise grows with the square root of batch.

Raises InvalidArgument if the policy has no error_bound.)");
  m.def(
      "worst_case_noise",
      checked({"worst_case_noise", 1, {{"ciphertext"}}}, &ckks::worst_case_noise),
      nb::sig("def worst_case_noise(ciphertext: Ciphertext) -> float"),
      R"(A bound on the part of every slot's error that depends on keys or on random draws, in message units.

This is the part that release hides. If the ciphertext was read from bytes, the bound is what the sender claims. See
worst_case_error.

>>> client = ckks.Client(ckks.Params.create(depth=1))
>>> ckks.worst_case_noise(client.encrypt([0.5, -1.25])) < 1e-5
True)");
  m.def(
      "worst_case_error",
      checked({"worst_case_error", 1, {{"ciphertext"}}}, &ckks::worst_case_error),
      nb::sig("def worst_case_error(ciphertext: Ciphertext) -> float"),
      R"(A bound on the modulus of every slot's error, in message units, from the estimates in the ciphertext.

It holds for all inputs that are as declared (magnitude=, peak=). It fails with probability at most 2^-128, plus the
failure probability of any bootstrapping. It is infinity if no bound is known, for example if the input of a polynomial may
leave its interval. If the ciphertext was read from bytes, the bound is what the sender claims.

>>> client = ckks.Client(ckks.Params.create(depth=1))
>>> x = client.encrypt([0.5, -1.25])
>>> bool(np.abs(client.decrypt(x) - [0.5, -1.25]).max() <= ckks.worst_case_error(x))
True)");
  nb::class_<Client>(m, "ClientCore", "See jali.ckks.Client.")
      .def(nb::init<const Params&, int, const std::string&, bool>(), "params"_a, "threads"_a = 0,
           "device"_a = "cpu", "trace"_a = false, nogil())
      .def(nb::init<nb::handle, const Params&, int, const std::string&, bool>(), "secret"_a.none(),
           "params"_a, "threads"_a, "device"_a, "is_file"_a)
      .def("save_secret", &Client::save_secret, "file"_a.none())
      .def_prop_ro("engine", &Client::engine, "Backend and instruction set.")
      .def_prop_ro("trace", &Client::trace, "The record of operations, or None.")
      .def("secret_to_bytes", &Client::secret_to_bytes)
      .def_prop_ro("params", &Client::params, "Its parameters.")
      .def_prop_ro("key_id", &Client::key_id, "The name of the secret key.")
      .def("encrypt", &Client::encrypt, "values"_a.none(), "level"_a = -1, "slots"_a = 0,
           "magnitude"_a = 1.0, "peak"_a = 0.0, "view"_a = nb::none(), "layout"_a = nb::none(),
           "part"_a = 0, "calibrated"_a = false)
      .def("decrypt", &Client::decrypt, "ciphertext"_a, "length"_a, "complex_values"_a, "check"_a,
           nb::sig("def decrypt(self, ciphertext: Ciphertext, length: int, complex_values: bool, "
                   "check: bool) -> numpy.typing.NDArray[typing.Any]"))
      .def("release", &Client::release, "ciphertext"_a, "policy"_a, "length"_a, "complex_values"_a,
           nb::sig("def release(self, ciphertext: Ciphertext, policy: ReleasePolicy, length: int, "
                   "complex_values: bool) -> numpy.typing.NDArray[typing.Any]"))
      .def("evaluation_keys", &Client::evaluation_keys, "rotations"_a, "conjugate"_a,
           "relinearise"_a, "bootstrap"_a, "minimum"_a = false, "progress"_a = nb::none(),
           "memory"_a = nb::none(), nogil())
      .def("keys_for", &Client::keys_for, "demand"_a, "progress"_a = nb::none(), nogil())
      .def("of_program", &Client::of_program, "manifest"_a)
      .def("public_key", &Client::public_key, nogil());
  nb::class_<Encryptor>(m, "EncryptorCore", "See jali.ckks.Encryptor.")
      .def(nb::init<const PublicKey&, int>(), "key"_a, "threads"_a = 0, nogil())
      .def_prop_ro("params", &Encryptor::params, "Its parameters.")
      .def("encrypt", &Encryptor::encrypt, "values"_a.none(), "level"_a = -1, "slots"_a = 0,
           "magnitude"_a = 1.0, "peak"_a = 0.0, "view"_a = nb::none(), "layout"_a = nb::none(),
           "part"_a = 0, "calibrated"_a = false);
}

}  // namespace jali::python
