#include "jali/backend/trace/rns_tracer.h"

#include <bit>
#include <string>

namespace jali::backend::trace {

Record rns_record(const char* op, Primes in, Primes out, std::size_t batch) {
  Record r;
  r.op = op;
  r.shape.set("primes_in", Shape::list_of(in));
  r.shape.set("primes_out", Shape::list_of(out));
  r.shape.set("batch", u64{batch});
  r.shape.set("digits", Shape::List());
  r.shape.set("terms", u64{1});
  r.shape.set("products", u64{0});
  r.shape.set("galois", Shape::List());
  r.shape.set("sources", Shape::List());
  r.shape.set("sums", Shape::List());
  r.shape.set("operands", Shape::List());
  r.shape.set("accumulate", false);
  return r;
}

Record RnsTracer::record(const char* op, ConstView out, std::initializer_list<ConstView> reads,
                         std::initializer_list<ConstView> writes, Kind writes_kind) const {
  Record r =
      rns_record(op, reads.size() > 0 ? reads.begin()->primes : Primes(), out.primes, out.batch);
  for (const ConstView& x : reads) read(r, x);
  for (const ConstView& x : writes) write(r, x, writes_kind);
  return r;
}

Shape header_of(const Engine& engine, const KeyLayout& keys) {
  const Config& config = engine.config();
  Shape out;
  out.set("scheme", std::string("ckks"));
  out.set("library", std::string("jali ") + JALI_VERSION);
  out.set("engine", engine.name());
  out.set("N", u64{config.n});
  out.set("word", std::string(word_name(config.word)));
  out.set("word_bytes", u64{word_bytes(config.word)});
  Shape::List bits;
  for (const u64 q : config.primes) bits.push_back(static_cast<u64>(std::bit_width(q)));
  out.set("prime_bits", bits);
  out.set("digits", keys.digits);
  out.set("special_primes", keys.special_primes);
  return out;
}

}  // namespace jali::backend::trace
