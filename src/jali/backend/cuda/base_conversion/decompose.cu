// The inverse transform of a source, wherever its residues come from, ending with y's factors.
#include "jali/backend/cuda/base_conversion/base_conversion.cuh"
#include "jali/backend/cuda/ntt/transform.cuh"

namespace jali::backend::cuda {

namespace {

template <class W>
struct ReadSource {
  Source source;
  int log_n;
  template <class F>
  __device__ __forceinline__ void reading(const Row<W>& row, F&& f) const {
    source.reading<W>(row.limb, row.b, log_n, row.prime, f);
  }
  template <int V>
  __device__ __forceinline__ void operator()(const Row<W>& row, int k,
                                             typename W::R (&x)[V]) const {
    reading(row, [&](const auto& read) { read(static_cast<unsigned>(k), x); });
  }
};

}  // namespace

template <class W>
void decompose(const Context<W>& context, const BaseConversionPlan<W>& plan, const Source& x,
               unsigned rows, void* y) {
  auto* words = static_cast<typename W::Stored*>(y);
  transform<W, true>(context.stream, context.transforms, ReadSource<W>{x, context.log_n},
                     WriteBlock<W>{words}, words, plan.from, plan.from_count, rows, context.log_n,
                     plan.inverse_hat.template as<Factor<typename W::R>>());
}

#define JALI_INSTANTIATE(W)                                                                  \
  template void decompose<W>(const Context<W>&, const BaseConversionPlan<W>&, const Source&, \
                             unsigned, void*);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
