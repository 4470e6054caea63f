#include "jali/backend/embedding_ops.h"
#include "jali/backend/trace/cost.h"
#include "jali/backend/trace/rns_tracer.h"
#include "jali/backend/trace/tables.h"

namespace jali::backend::trace {
namespace {

class TraceEmbedding final : public EmbeddingOps, private RnsTracer {
 public:
  TraceEmbedding(const Engine& engine, const Engine& inner, const Recorder& recorder)
      : EmbeddingOps(engine), RnsTracer(inner.config(), recorder), inner_(inner.embedding()) {}

  void embed(View out, const Embedding& embedding, std::span<const Complex> values, int log_slots,
             double factor) const override {
    Record r = record("embed", out, {}, {out}, Kind::plaintext);
    read_host(r, values);
    r.mults = residues(out);
    r.complex_butterflies = out.batch * cost::embedding(std::size_t{1} << log_slots);
    run(std::move(r), [&] { inner_.embed(out, embedding, values, log_slots, factor); });
  }
  void unembed(std::span<Complex> slots, const Embedding& embedding, ConstView x, int log_slots,
               double divisor) const override {
    Record r = record("unembed", {nullptr, {}, x.batch}, {x}, {});
    write_host(r, slots);
    r.mults = residues(x);  // small integers take no more than one for each residue
    r.complex_butterflies = x.batch * cost::embedding(std::size_t{1} << log_slots);
    run(std::move(r), [&] { inner_.unembed(slots, embedding, x, log_slots, divisor); });
  }

 private:
  const EmbeddingOps& inner_;
};

}  // namespace

std::unique_ptr<EmbeddingOps> trace_embedding(const Engine& engine, const Engine& inner,
                                              const Recorder& recorder) {
  return std::make_unique<TraceEmbedding>(engine, inner, recorder);
}

}  // namespace jali::backend::trace
