#include "jali/backend/trace/rns_tracer.h"

#include <string>

namespace jali::backend::trace {

Record RnsTracer::record(const char* op, ConstView out, std::initializer_list<ConstView> reads,
                         std::initializer_list<ConstView> writes) const {
  Record r;
  r.op = op;
  const Primes in = reads.size() > 0 ? reads.begin()->primes : Primes();
  r.shape.set("n", u64{n()});
  r.shape.set("word", std::string(word_name(config_.word)));
  r.shape.set("primes_in", Shape::list_of(in));
  r.shape.set("primes_out", Shape::list_of(out.primes));
  r.shape.set("batch", u64{out.batch});
  r.shape.set("digits", Shape::List());
  r.shape.set("terms", u64{1});
  r.shape.set("galois", u64{1});
  r.shape.set("accumulate", false);
  for (const ConstView& x : reads) read(r, x);
  for (const ConstView& x : writes) write(r, x);
  return r;
}

}  // namespace jali::backend::trace
