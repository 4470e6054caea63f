#include <string>

#include "jali/base/error.h"
#include "jali/wire/demands.h"
#include "jali/wire/discrete.h"
#include "jali/wire/reader.h"
#include "jali/wire/writer.h"

namespace jali::wire {

// Writes the literal with every choice made. Everything else follows from it. The hash in the
// header tells a reader whether it came out the same.
Bytes to_bytes(const discrete::Params& params) {
  const discrete::Literal& literal = params.literal();
  require<InvalidArgument>(literal.name.size() <= 255,
                           "cannot write parameters whose name is longer than 255 bytes");
  Writer writer(kDiscreteParams, params.hash(), 32 + literal.name.size());
  writer.u16(static_cast<std::uint16_t>(params.depth()));
  writer.u16(static_cast<std::uint16_t>(literal.security));
  writer.u16(static_cast<std::uint16_t>(params.dnum()));
  writer.u8(static_cast<std::uint8_t>(params.log_n()));
  writer.u8(static_cast<std::uint8_t>(params.word()));
  writer.u8(static_cast<std::uint8_t>(literal.multiplication));
  writer.u8(static_cast<std::uint8_t>(literal.packing));
  writer.u8(static_cast<std::uint8_t>(literal.integers));
  writer.u64(literal.modulus.value_or(0));  // 0 as well for 2^64
  writer.u8(static_cast<std::uint8_t>(literal.name.size()));
  writer.raw({reinterpret_cast<const std::uint8_t*>(literal.name.data()), literal.name.size()});
  return writer.finish();
}

// Every number has a range, and the levels are made once, from what is written.
discrete::ParamsPtr discrete_params_from_bytes(std::span<const std::uint8_t> bytes,
                                               const Limits& limits) {
  check_demands(limits);
  const Frame frame = open_frame(bytes, kDiscreteParams, limits);
  Reader reader(frame, limits);
  discrete::Literal literal;
  literal.depth = reader.u16();
  literal.security = reader.u16();
  literal.dnum = reader.u16();
  literal.log_n = reader.u8();
  const std::uint8_t word = reader.u8(), multiplication = reader.u8(), packing = reader.u8();
  literal.integers = reader.u8();
  const std::uint64_t modulus = reader.u64();
  const auto name = reader.raw(reader.u8());
  reader.finish();
  reader.check(word <= static_cast<std::uint8_t>(Word::w64), "its word is unknown");
  reader.check(multiplication <= 1 && packing <= 1, "its multiplication or packing is unknown");
  reader.check(literal.integers == 0 || modulus == 0, "it has a modulus and integers");
  reader.check(literal.log_n != 0 && literal.dnum != 0, "its log_n or its dnum is not written");
  literal.word = static_cast<Word>(word);
  literal.multiplication = static_cast<discrete::Multiplication>(multiplication);
  literal.packing = static_cast<discrete::Packing>(packing);
  if (literal.integers == 0) literal.modulus = modulus;
  literal.name.assign(name.begin(), name.end());
  if (literal.security == 0) demand_security(limits, 0);
  discrete::ParamsPtr params;
  try {
    params = discrete::Params::create_written(literal);
  } catch (const Error& error) {
    reader.fail_without_advice(error);
  }
  require<ParamsMismatch>(params->hash() == frame.params_hash,
                          "cannot read a parameter set: this build makes other moduli from it than "
                          "the build that wrote it");
  demand_security(limits, params->security());  // the table may grant more than was asked for
  return params;
}

}  // namespace jali::wire
