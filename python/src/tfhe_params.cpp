// TFHE parameters for Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ckks_params.h"
#include "files.h"
#include "jali/params/lwe_security.h"
#include "jali/params/tfhe_noise.h"
#include "jali/params/tfhe_presets.h"
#include "jali/wire/tfhe.h"
#include "methods.h"
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

/// Checks the arguments of questions about a sum that is looked up.
void check_sum(const tfhe::Params& params, double norm2, int log_many) {
  require<InvalidArgument>(std::isfinite(norm2) && norm2 >= 0,
                           "norm2 must be a number of at least 0");
  const int most = std::countr_zero(params.N().value);
  require<InvalidArgument>(log_many >= 0 && log_many <= most, [&] {
    return "log_many must be 0 to " + std::to_string(most) + ", not " + std::to_string(log_many);
  });
}

/// What is demanded of parameters that are read. security: the other name of min_security.
wire::Limits limits_of(int min_security, std::optional<int> security, double log2_p_fail) {
  require<InvalidArgument>(!security || min_security == 128,
                           "security and min_security are two names of one argument: give one");
  wire::Limits limits;
  limits.min_security = security.value_or(min_security);
  limits.max_log2_p_fail = log2_p_fail;
  return limits;
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
look-up must bring them back. One more bit, the padding, lies above.

>>> params = tfhe.Params.preset("message_2_carry_2")
>>> params.message_bits, params.carry_bits, params.security
(2, 2, 128))");
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
      .def_static("presets",
                  checked({"Params.presets", 0, {}},
                          [] {
                            nb::dict out;
                            add_purposes(out, tfhe::presets());
                            return out;
                          }),
                  nb::sig("def presets() -> dict[str, str]"),
                  "What each preset is for, by its name.")
      .def_static(
          "from_bytes",
          checked({"Params.from_bytes",
                   2,
                   {{"data"},
                    {"min_security", nb::int_(128)},
                    {"security", nb::none()},
                    {"log2_p_fail", nb::float_(0.0)}}},
                  [](nb::handle data, int min_security, std::optional<int> security,
                     double log2_p_fail) {
                    const BytesView view(data);
                    const wire::Limits limits = limits_of(min_security, security, log2_p_fail);
                    nb::gil_scoped_release release;
                    return TfheParams{wire::tfhe_params_from_bytes(view.span(), limits)};
                  }),
          nb::sig(
              "def from_bytes(data: bytes | bytearray | memoryview, min_security: int = 128, *, "
              "security: int | None = None, log2_p_fail: float = 0.0) -> Params"),
          R"(Load what to_bytes made. Every byte is checked.

min_security: parameters with fewer bits are refused. 0 also accepts insecure parameters for experiments.
security: another name of min_security, that of ckks.Params.from_bytes.
log2_p_fail: parameters are refused if they state a larger log2 of the probability of failure, or the noise formulas give one.
    0 accepts any.

Raises CorruptData, VersionError, InsecureParams or LimitExceeded.)")
      .def_static(
          "load",
          checked({"Params.load",
                   1,
                   {{"file"},
                    {"min_security", nb::int_(128)},
                    {"security", nb::none()},
                    {"log2_p_fail", nb::float_(0.0)}}},
                  [](nb::handle file, int min_security, std::optional<int> security,
                     double log2_p_fail) {
                    const wire::Limits limits = limits_of(min_security, security, log2_p_fail);
                    return TfheParams{load_from(
                        file,
                        [&](auto bytes) { return wire::tfhe_params_from_bytes(bytes, limits); },
                        [&](const wire::Source& source) {
                          return wire::tfhe_params_from_bytes(wire::read_object(source, limits),
                                                              limits);
                        })};
                  }),
          nb::sig("def load(file: str | os.PathLike[str] | typing.BinaryIO | bytes, *, "
                  "min_security: int = 128, security: int | None = None, log2_p_fail: float = 0.0) "
                  "-> Params"),
          "Read what save wrote, from a path, a file opened with \"rb\", or bytes. The other "
          "arguments and the errors are those of from_bytes, and FileError.")
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
          "Bits of security against classical attacks: what was stated, and at most what the table "
          "of the lattice estimator's results grants.")
      .def_prop_ro(
          "log2_p_fail", [](const TfheParams& p) { return p.ptr->log2_p_fail(); },
          "log2 of the probability that a look-up gives a wrong result.")
      .def_prop_ro(
          "max_norm2", [](const TfheParams& p) { return p.ptr->max_norm2(); },
          "The largest squared norm of the integer weights of a sum between two look-ups.")
      .def_prop_ro(
          "key_security",
          [](const TfheParams& p) {
            const tfhe::KeySecurity bits = tfhe::key_security(p.ptr->literal());
            return std::pair(bits.small, bits.large);
          },
          "(of the small key, of the large key): the bits of security that the table of the "
          "lattice estimator's results grants; 0 if it knows nothing.")
      .def_prop_ro(
          "fresh_variance",
          [](const TfheParams& p) {
            const tfhe::NoiseModel noise(p.ptr->literal());
            return p.ptr->order() == tfhe::Order::switch_first ? noise.fresh_large()
                                                               : noise.fresh_small();
          },
          "The variance of a fresh ciphertext's phase, on a torus of circumference 1.")
      .def_prop_ro(
          "fresh_public_variance",
          [](const TfheParams& p) { return tfhe::NoiseModel(p.ptr->literal()).fresh_public(); },
          "The same of a ciphertext that Encryptor made. It is that of the large key, whatever the "
          "order.")
      .def_prop_ro(
          "bootstrapped_variance",
          [](const TfheParams& p) {
            return tfhe::NoiseModel(p.ptr->literal()).bootstrapped(p.ptr->order());
          },
          "The same of a result of a look-up.")
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
          "torus_bits", [](const TfheParams& p) { return backend::torus_bits(p.ptr->torus()); },
          "Bits of a word of GLWE and large LWE ciphertexts: 32 or 64. Small ones have words of 32 "
          "bits.")
      .def_prop_ro(
          "lwe_noise_bits", [](const TfheParams& p) { return p.ptr->literal().lwe_noise_bits; },
          "b of the errors TUniform(b) of small LWE ciphertexts, in words of 32 bits.")
      .def_prop_ro(
          "glwe_noise_bits", [](const TfheParams& p) { return p.ptr->literal().glwe_noise_bits; },
          "b of the errors TUniform(b) of GLWE and large LWE ciphertexts, in words of torus_bits.")
      .def_prop_ro(
          "rotation_key_bytes", [](const TfheParams& p) { return p.ptr->rotation_key_bytes(); },
          "Bytes of the bootstrapping key, with its masks as seeds.")
      .def_prop_ro(
          "switch_key_bytes", [](const TfheParams& p) { return p.ptr->switch_key_bytes(); },
          "Bytes of the key-switching key, with its masks as seeds.")
      .def_prop_ro(
          "key_bytes", [](const TfheParams& p) { return p.ptr->key_bytes(); },
          "Bytes of the evaluation keys, with their masks as seeds.")
      .def_prop_ro(
          "public_key_bytes", [](const TfheParams& p) { return p.ptr->public_key_bytes(); },
          "Bytes of a public key, with its masks as a seed.")
      .def_prop_ro(
          "expanded_key_bytes", [](const TfheParams& p) { return p.ptr->expanded_key_bytes(); },
          "The same with their masks expanded.");
  const auto bytes = [](const TfheParams& p) { return wire::to_bytes(*p.ptr); };
  add_to_bytes(type, bytes);
  add_save(type, bytes);
  method(
      type, "variance_before_look_up", 2, {{"norm2"}, {"log_many", nb::int_(0)}},
      [](const TfheParams& p, double norm2, int log_many) {
        check_sum(*p.ptr, norm2, log_many);
        return tfhe::NoiseModel(p.ptr->literal()).before_rotation(p.ptr->order(), norm2, log_many);
      },
      R"(The variance of the phase that is looked up, of a sum of look-ups' results.

norm2: the squared norm of the integer weights of the sum.
log_many: log2 of how many results the look-up gives.
The rounding of the body is not in it: it is exact, and log2_failure counts it in the width of a value's box.)");
  method(
      type, "log2_failure", 3, {{"norm2"}, {"half_box", nb::none()}, {"log_many", nb::int_(0)}},
      [](const TfheParams& p, double norm2, std::optional<double> half_box, int log_many) {
        check_sum(*p.ptr, norm2, log_many);
        require<InvalidArgument>(
            !half_box || (*half_box > 0 && *half_box <= 0.5),
            "half_box must be above 0 and at most 1/2, as a part of the torus");
        const tfhe::Literal& literal = p.ptr->literal();
        return tfhe::NoiseModel(literal).log2_p_fail(
            literal.order, norm2, half_box.value_or(tfhe::half_box(literal)), log_many);
      },
      R"(log2 of the probability that a look-up of such a sum leaves a value's box of +- half_box of the torus.

norm2, log_many: as for variance_before_look_up.
half_box: None stands for that of messages, 2^-(message_bits + carry_bits + 2).)");
  method(
      type, "ciphertext_bytes", 1, {{"count", nb::int_(1)}},
      [](const TfheParams& p, std::size_t count) { return p.ptr->ciphertext_bytes(count); },
      "Bytes in memory of this many LWE ciphertexts: one a message, several an integer.");
  method(
      type, "seeded_ciphertext_bytes", 1, {{"count", nb::int_(1)}},
      [](const TfheParams& p, std::size_t count) { return p.ptr->seeded_ciphertext_bytes(count); },
      "The same of fresh encryptions as they are sent: their masks are a seed.");
  method(
      type, "compact_ciphertext_bytes", 1, {{"count", nb::int_(1)}},
      [](const TfheParams& p, std::size_t count) {
        return tfhe::compact_bytes(*p.ptr, count, tfhe::public_batch(p.ptr->literal()));
      },
      "The same of encryptions under a public key: up to N messages share one mask.");
  share_identity(type);
  type.def("__repr__", &repr);
  share_copies(type);
}

}  // namespace jali::python
