#include <string>
#include <string_view>

#include "jali/base/error.h"
#include "jali/wire/ckks.h"
#include "jali/wire/demands.h"
#include "jali/wire/reader.h"
#include "jali/wire/writer.h"

namespace jali::wire {

namespace {

constexpr std::size_t kMaxName = 255;
// Twice what the largest ring may use. It bounds the search for primes that a few bytes can ask
// for.
constexpr double kMaxModulusBits = 8192;
constexpr int kMaxBootstrapLevels = 64;

}  // namespace

// Writes the literal with every choice made and, if it has a plan, the plan's numbers. Everything
// else follows from these. The hash in the header tells a reader whether it came out the same.
Bytes to_bytes(const ckks::Params& params) {
  const ckks::Literal& literal = params.literal();
  require<InvalidArgument>(literal.name.size() <= kMaxName,
                           "cannot write parameters whose name is longer than 255 bytes");
  Writer writer(kCkksParams, params.hash(), 64 + literal.name.size());
  writer.u16(static_cast<std::uint16_t>(params.depth()));
  writer.u16(static_cast<std::uint16_t>(literal.security));
  writer.u16(static_cast<std::uint16_t>(params.dnum()));
  writer.u8(static_cast<std::uint8_t>(params.log_n()));
  writer.u8(static_cast<std::uint8_t>(params.word()));
  writer.f64(literal.scale_bits);
  writer.f64(literal.integer_bits);
  writer.u8(static_cast<std::uint8_t>(literal.name.size()));
  writer.raw({reinterpret_cast<const std::uint8_t*>(literal.name.data()), literal.name.size()});
  if (const auto& b = literal.bootstrap) {
    writer.u8(static_cast<std::uint8_t>(b->order));
    for (int x : {b->weight, b->range, b->degree, b->doublings, b->inverse_sine, b->cts_levels,
                  b->stc_levels}) {
      writer.u16(static_cast<std::uint16_t>(x));
    }
    for (double x : {b->ratio_bits, b->cts_bits, b->mod_bits, b->stc_bits}) writer.f64(x);
    if (b->head_bits != 0) writer.u8(static_cast<std::uint8_t>(b->head_bits));
  }
  if (const auto& plan = params.plan()) {
    writer.u8(plan->levels);
    writer.u8(plan->bootstrap);
  }
  return writer.finish();
}

// The work is bounded before any is done. Every number has a range, and the sizes alone have to fit
// the security table. Then one table of levels is made, the one that the bytes name. Nothing is
// searched for. If the parameters are refused, nothing that would fit is looked for either.
ckks::ParamsPtr params_from_bytes(std::span<const std::uint8_t> bytes, const Limits& limits) {
  require<InvalidArgument>(limits.min_security == 0 || limits.min_security == 128 ||
                               limits.min_security == 192 || limits.min_security == 256,
                           "security must be 128, 192 or 256, or 0 for any");
  check_demands(limits);
  const Frame frame = open_frame(bytes, kCkksParams, limits);
  Reader reader(frame, limits);
  ckks::Literal literal;
  literal.depth = reader.u16();
  literal.security = reader.u16();
  literal.dnum = reader.u16();
  literal.log_n = reader.u8();
  const std::uint8_t word = reader.u8();
  literal.scale_bits = reader.magnitude("the scale");
  literal.integer_bits = reader.magnitude("the room for the integer part");
  const auto name = reader.raw(reader.u8());
  constexpr std::size_t kPlanBytes = 2;
  if (reader.remaining() > kPlanBytes) {
    auto& b = literal.bootstrap.emplace();
    const std::uint8_t order = reader.u8();
    reader.check(order <= 1, "its order of bootstrapping is unknown");
    b.order = static_cast<params::BootstrapOrder>(order);
    for (int* x : {&b.weight, &b.range, &b.degree, &b.doublings, &b.inverse_sine, &b.cts_levels,
                   &b.stc_levels}) {
      *x = reader.u16();
    }
    for (double* x : {&b.ratio_bits, &b.cts_bits, &b.mod_bits, &b.stc_bits}) {
      *x = reader.magnitude("a size of bootstrapping");
    }
    if (reader.remaining() % kPlanBytes != 0) {
      b.head_bits = reader.u8();
      reader.check(b.head_bits != 0, "its head_bits are written although they are 0");
    }
    reader.check(b.levels() <= kMaxBootstrapLevels, "its bootstrapping has too many levels");
  }
  std::optional<params::PlanNumbers> plan;
  if (reader.remaining() > 0) {
    plan.emplace();
    plan->levels = reader.u8();
    plan->bootstrap = reader.u8();
  }
  reader.finish();
  reader.check(word <= static_cast<std::uint8_t>(Word::w64), "its word is unknown");
  reader.check(literal.log_n != 0 && literal.dnum != 0, "its log_n or its dnum is not written");
  reader.check((literal.depth + 1) * literal.scale_bits + literal.integer_bits +
                       (literal.bootstrap ? literal.bootstrap->bits() : 0) <=
                   kMaxModulusBits,
               "its modulus is larger than any ring can use");
  literal.word = static_cast<Word>(word);
  literal.name.assign(name.begin(), name.end());
  if (literal.security == 0) demand_security(limits, 0);
  ckks::ParamsPtr params;
  try {
    params = ckks::Params::create_written(literal, plan, limits.search);
  } catch (const LimitExceeded&) {
    throw LimitExceeded(
        "cannot read a parameter set: the plan of its levels is not written and would have to be "
        "searched for, which only search=True allows");
  } catch (const Error& error) {
    reader.fail_without_advice(error);
  }
  require<ParamsMismatch>(params->hash() == frame.params_hash,
                          "cannot read a parameter set: this build makes other moduli from it than "
                          "the build that wrote it");
  demand_security(limits, params->security());  // the table may grant more than was asked for
  if (const auto& b = params->bootstrap()) {
    demand_failure(limits, params::log2_bootstrap_failure(b->weight, b->range, params->n()));
  }
  return params;
}

}  // namespace jali::wire
