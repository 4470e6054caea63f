#include "jali/lwe/packing.h"

#include "jali/base/error.h"

namespace jali::lwe {

GlweBlock pack(const backend::TfheOps& engine, const Params& params, const PreparedKeys& keys,
               const backend::ConstLweView& in, std::span<const std::uint32_t> coefficients,
               std::size_t per) {
  require<ParamsMismatch>(fits(engine.config(), params),
                          "the engine was made for other parameters than the ciphertexts: make it "
                          "with the config() of their parameters");
  require<KeyMissing>(keys.packing.data() != nullptr,
                      "packing needs a key that was not made: make the evaluation keys with "
                      "packing");
  require<ParamsMismatch>(
      in.torus == params.ciphertext_torus() && in.dimension == params.dimension(),
      "the ciphertexts to pack have another dimension or torus than those of their parameters");
  require<InvalidArgument>(in.count >= 1 && per >= 1,
                           "packing needs at least one ciphertext for each output");
  GlweBlock out = make_glwe(*engine.device()->pool(), params.torus(), params.k(), params.N(),
                            (in.count - 1) / per + 1);
  out.key_id = keys.key_id;
  engine.pack(out.view(), in, coefficients, per, keys.packing.data());
  return out;
}

}  // namespace jali::lwe
