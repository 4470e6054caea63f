#include "jali/lwe/keys.h"

#include <algorithm>

#include "jali/base/error.h"

namespace jali::lwe {

std::size_t EvaluationKeys::bytes() const {
  return rotation.rows.bytes() + switching.bytes() + (packing ? packing->bytes() : 0);
}

bool fits(const backend::TfheConfig& config, const Params& params) {
  const backend::TfheConfig own = params.config();
  return config.torus == own.torus && config.n == own.n && config.k == own.k && config.N == own.N &&
         config.rotation_gadget == own.rotation_gadget &&
         config.switch_gadget == own.switch_gadget && config.rotation == own.rotation &&
         config.group == own.group && config.mean_bit == own.mean_bit;
}

namespace {

bool has_shape(const SeededGlwe& key, const Params& params, std::size_t count) {
  return key.torus == params.torus() && key.k == params.k() && key.N == params.N() &&
         key.count == count &&
         key.bodies.bytes() >= count * key.N.value * backend::torus_bytes(key.torus);
}

bool has_shape(const SeededLwe& key, const Params& params, std::size_t count) {
  return key.torus == Torus::t32 && key.dimension == params.n() && key.count == count &&
         key.bodies.bytes() >= count * backend::torus_bytes(key.torus);
}

}  // namespace

void check_sizes(const EvaluationKeys& keys) {
  require<InvalidArgument>(keys.params != nullptr, "these evaluation keys have no parameters");
  const Params& params = *keys.params;
  require<ParamsMismatch>(
      keys.rotation.gadget == params.literal().rotation_gadget &&
          has_shape(keys.rotation.rows, params, params.glwe_rows()) &&
          has_shape(keys.switching, params, params.switch_rows()) &&
          (!keys.packing || has_shape(*keys.packing, params, params.packing_rows())),
      "the evaluation keys have other sizes than their parameters ask for: use keys that were made "
      "for these parameters");
}

void check_sizes(const PublicKey& key) {
  require<InvalidArgument>(key.params != nullptr, "this public key has no parameters");
  require<ParamsMismatch>(has_shape(key.zeros, *key.params, key.params->k().value),
                          "the public key has another size than its parameters ask for: use the "
                          "public_key() of the client");
}

PreparedKeys prepare(const backend::TfheOps& engine, const EvaluationKeys& keys,
                     const Progress& progress, const Checkpoint& checkpoint) {
  check_sizes(keys);
  const Params& params = *keys.params;
  const backend::TfheConfig& config = engine.config();
  require<ParamsMismatch>(fits(config, params),
                          "the engine was made for other parameters than the keys: make it with "
                          "the config() of the keys' parameters");
  device::Pool& pool = *engine.device()->pool();
  PreparedKeys out{pool.allocate(engine.rotation_key_bytes()),
                   pool.allocate(engine.switch_key_bytes()),
                   {},
                   keys.key_id};

  // A part is at most 16 MiB of expanded ciphertexts, but at least one step.
  const std::size_t step_bytes =
      config.units() * config.ggsw_words() * backend::torus_bytes(params.torus());
  const std::size_t part =
      std::clamp<std::size_t>((std::size_t{1} << 24) / step_bytes, 1, config.steps());
  const std::size_t total = (config.steps() + part - 1) / part + 1 + (keys.packing ? 1 : 0);
  std::size_t done = 0;
  const auto tell = [&] {
    ++done;
    if (progress) progress(done, total);
  };
  if (checkpoint) checkpoint();
  engine.prepare_seeded_switch_key(out.switching.data(),
                                   {keys.switching.seed, keys.switching.bodies.data()});
  tell();
  for (std::size_t first = 0; first < config.steps(); first += part) {
    if (checkpoint) checkpoint();
    const SeededGlwe& rows = keys.rotation.rows;
    engine.prepare_seeded_rotation_key(out.rotation.data(), {rows.seed, rows.bodies.data()}, first,
                                       std::min(part, config.steps() - first));
    tell();
  }
  if (keys.packing) {
    if (checkpoint) checkpoint();
    const backend::KeyShape shape = backend::packing_key_shape(config, params.dimension());
    out.packing = pool.allocate(shape.rows * shape.row_bytes());
    engine.prepare_seeded_packing_key(out.packing.data(), params.dimension(),
                                      {keys.packing->seed, keys.packing->bodies.data()});
    tell();
  }
  return out;
}

}  // namespace jali::lwe
