#include <algorithm>
#include <string>
#include <string_view>

#include "jali/base/error.h"
#include "jali/params/tfhe_noise.h"
#include "jali/wire/demands.h"
#include "jali/wire/reader.h"
#include "jali/wire/tfhe.h"
#include "jali/wire/writer.h"

namespace jali::wire {

namespace {

constexpr std::size_t kFixedBytes = 3 * 4 + 14 + 2 + 2 * 8 + 1;

}  // namespace

Bytes to_bytes(const tfhe::Params& params) {
  const tfhe::Literal& literal = params.literal();
  Writer writer(kTfheParams, params.hash(), kFixedBytes + literal.name.size());
  for (const std::size_t x : {literal.n.value, literal.k.value, literal.N.value}) {
    writer.u32(static_cast<std::uint32_t>(x));
  }
  for (const int x : {backend::torus_bits(literal.torus), static_cast<int>(literal.rotation),
                      literal.group, literal.rotation_gadget.base_log,
                      literal.rotation_gadget.levels, literal.switch_gadget.base_log,
                      literal.switch_gadget.levels, literal.lwe_noise_bits, literal.glwe_noise_bits,
                      literal.message_bits, literal.carry_bits, static_cast<int>(literal.order)}) {
    writer.u8(static_cast<std::uint8_t>(x));
  }
  writer.u16(static_cast<std::uint16_t>(literal.security));
  writer.f64(literal.max_norm2);
  writer.f64(0 - literal.log2_p_fail);  // of at least 0, and not -0
  writer.u8(static_cast<std::uint8_t>(literal.name.size()));
  writer.raw({reinterpret_cast<const std::uint8_t*>(literal.name.data()), literal.name.size()});
  return writer.finish();
}

tfhe::ParamsPtr tfhe_params_from_bytes(std::span<const std::uint8_t> bytes, const Limits& limits) {
  check_demands(limits);
  const Frame frame = open_frame(bytes, kTfheParams, limits);
  Reader reader(frame, limits);
  tfhe::Literal literal;
  literal.n = tfhe::LweDimension(reader.u32());
  literal.k = tfhe::GlweDimension(reader.u32());
  literal.N = tfhe::PolynomialSize(reader.u32());
  literal.torus = static_cast<tfhe::Torus>(reader.u8());
  literal.rotation = static_cast<tfhe::Rotation>(reader.u8());
  for (int* x :
       {&literal.group, &literal.rotation_gadget.base_log, &literal.rotation_gadget.levels,
        &literal.switch_gadget.base_log, &literal.switch_gadget.levels, &literal.lwe_noise_bits,
        &literal.glwe_noise_bits, &literal.message_bits, &literal.carry_bits}) {
    *x = reader.u8();
  }
  literal.order = static_cast<tfhe::Order>(reader.u8());
  literal.security = reader.u16();
  literal.max_norm2 = reader.magnitude("its largest squared norm");
  literal.log2_p_fail = 0 - reader.magnitude("its probability of failure");
  const auto name = reader.raw(reader.u8());
  literal.name.assign(name.begin(), name.end());
  reader.finish();
  // Parameters of less security than is demanded are refused as such, and not for their name.
  demand_security(limits, literal.security);
  tfhe::ParamsPtr params;
  try {
    params = tfhe::Params::create(literal);
  } catch (const Error& error) {
    reader.fail_without_advice(error);
  }
  require<ParamsMismatch>(params->hash() == frame.params_hash,
                          "cannot read a parameter set: it has another fingerprint than its bytes "
                          "say: use the release of Jali that wrote them");
  // Insecure parameters may state any probability: the formulas tell.
  if (limits.max_log2_p_fail < 0) {
    demand_failure(limits, std::max(literal.log2_p_fail, tfhe::log2_p_fail(literal)));
  }
  return params;
}

}  // namespace jali::wire
