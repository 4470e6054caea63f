// Mathematics: mod_down.cu. One launch: residues are converted where the transform reads a row and
// divided where it writes it, so that conversions never see memory. Few long rows are converted
// before, and divided in the same way.
#include "jali/backend/cuda/mod_down/mod_down.cuh"
#include "jali/backend/cuda/ntt/transform.cuh"

namespace jali::backend::cuda {

namespace {

/// kLimbs: limbs of the digit, 1 or 2, which are read together. 0: the digit has `count` limbs,
/// which are read one after the other, as more registers would spill.
template <class W, int kLimbs>
struct ConversionLoad {
  using R = typename W::R;
  using Stored = typename W::Stored;
  /// The targets of a row follow each other, while y is in L2.
  using LimbsFirst = void;
  DirectConversion<W> direct;
  unsigned count, rows;
  int log_n;

  // Some residues at a time, so that sums stay in registers.
  template <int kCount, class K>
  __device__ __forceinline__ void whole(const Row<W>& row, K&& k, R (&x)[kCount]) const {
    const Stored* factors = direct.matrix + row.limb * (count + 1);
    if constexpr (kLimbs == 1) {
      return direct.template each_of_one<kCount>(0, factors[1], rows, row.b, log_n, row.prime, k,
                                                 [&](int e, R v) { x[e] = v; });
    }
    constexpr int kPart = 8;
    static_assert(kDirectLimbs < W::kTerms);
    const std::size_t limb = static_cast<std::size_t>(rows) << log_n;
#pragma unroll
    for (int part = 0; part < kCount; part += kPart) {
      const Stored* from = direct.y + (static_cast<std::size_t>(row.b) << log_n);
      Stored y[kPart][kLimbs == 0 ? 1 : kLimbs];
      const auto fetch = [&](int i) {
#pragma unroll
        for (int e = 0; e < kPart; ++e) y[e][i] = from[k(part + e)];
        from += limb;
      };
      typename W::Sum sum[kPart];
      double s[kPart];
#pragma unroll
      for (int e = 0; e < kPart; ++e) s[e] = 0.5;
      const auto add = [&](unsigned i, int at) {
        const R factor = W::load(factors[i]);
        const double inverse = direct.reciprocal[i];
#pragma unroll
        for (int e = 0; e < kPart; ++e) {
          const R residue = W::load(y[e][at]);
          s[e] = __fma_rn(exact_double(residue), inverse, s[e]);
          W::add(sum[e], residue, factor, row.prime);
        }
      };
      if constexpr (kLimbs == 0) {
#pragma unroll 1
        for (unsigned i = 0; i < count; ++i) fetch(0), add(i, 0);
      } else {
#pragma unroll
        for (int i = 0; i < kLimbs; ++i) fetch(i);
#pragma unroll
        for (int i = 0; i < kLimbs; ++i) add(static_cast<unsigned>(i), i);
      }
      const R factor = W::load(factors[count]);
#pragma unroll
      for (int e = 0; e < kPart; ++e) {
        W::add(sum[e], W::load(static_cast<Stored>(floor_bits(s[e]))), factor, row.prime);
        x[part + e] = W::total_lazy(sum[e], row.prime);
      }
      __syncwarp();  // later loads stay behind it
    }
  }
};

template <class W>
struct ModDownStore {
  using R = typename W::R;
  using Stored = typename W::Stored;
  ModDownView d;
  const Factor<R>*keep, *divide;
  int log_n;

  template <int V>
  struct alignas(sizeof(Stored) * V) Words {
    Stored w[V];
  };
  template <int V>
  struct Ahead {
    Words<V> kept, addend;
    Factor<R> keep, divide;
  };
  template <int V>
  __device__ __forceinline__ Ahead<V> ahead(const Row<W>& row, int k) const {
    const unsigned part = part_of(row.b, d.batch), b = row.b - part * d.batch;
    const unsigned from = d.source.prime[row.limb];
    Ahead<V> a;
    a.keep = keep[row.limb], a.divide = divide[row.limb];
    if (from != kSkip) {
      const auto* x = static_cast<const Stored*>(d.x[part]);
      a.kept = *reinterpret_cast<const Words<V>*>(
          x + ((static_cast<std::size_t>(from) * d.batch + b) << log_n) + k);
    }
    if (const auto* addend = static_cast<const Stored*>(d.addend[part]); addend != nullptr) {
      addend += (static_cast<std::size_t>(row.limb) * d.batch + b) << log_n;
      if (d.g == 1) {
        a.addend = *reinterpret_cast<const Words<V>*>(addend + k);
      } else {
#pragma unroll
        for (int c = 0; c < V; ++c) {
          a.addend.w[c] = addend[source_ntt(static_cast<unsigned>(k + c), d.g, log_n)];
        }
      }
    }
    return a;
  }
  template <int V>
  __device__ __forceinline__ void operator()(const Row<W>& row, int k, const R (&x)[V],
                                             const Ahead<V>& a) const {
    const unsigned part = part_of(row.b, d.batch), b = row.b - part * d.batch;
    Words<V> out;
#pragma unroll
    for (int c = 0; c < V; ++c) {
      out.w[c] = mod_down_residue<W>(x[c], a.divide, d.source.prime[row.limb] != kSkip, a.kept.w[c],
                                     a.keep, d.addend[part] != nullptr, a.addend.w[c], row.prime);
    }
    auto* to = static_cast<Stored*>(d.out[part]) +
               ((static_cast<std::size_t>(row.limb) * d.batch + b) << log_n) + k;
    *reinterpret_cast<Words<V>*>(to) = out;
  }
};

}  // namespace

template <class W>
bool mod_down_takes_one_pass(const Context<W>& context, const BaseConversionPlan<W>& plan) {
  return sizeof(typename W::R) == 4 && plan.from_count > 0 && plan.largest_digit <= kDirectLimbs &&
         transforms_once(context.transforms, context.log_n);
}

template <class W>
void mod_down_in_one_pass(const Context<W>& context, const BaseConversionPlan<W>& plan,
                          const Targets& targets, unsigned rows, const void* y,
                          const ModDownView& d) {
  using F = Factor<typename W::R>;
  if constexpr (sizeof(typename W::R) == 4) {
    const ModDownStore<W> store{d, plan.keep.template as<F>(), plan.divide.template as<F>(),
                                context.log_n};
    const auto divide = [&]<int kLimbs>() {
      transform_once<W>(context.stream, context.transforms,
                        ConversionLoad<W, kLimbs>{direct_conversion(plan, y), plan.largest_digit,
                                                  rows, context.log_n},
                        store, targets.prime, targets.count, rows, context.log_n);
    };
    switch (plan.largest_digit) {
      case 1: return divide.template operator()<1>();
      case 2: return divide.template operator()<2>();
      default: return divide.template operator()<0>();
    }
  }
}

template <class W>
bool mod_down_has_few_rows(const Context<W>& context, const BaseConversionPlan<W>& plan,
                           unsigned rows) {
  return plan.tensor.usable() && context.log_n == kFewLongRows && context.stream.wide_clusters() &&
         context.transforms.ntt_variant == own_choice<W>(kFewLongRows) &&
         plan.to_count * rows <= kFewRows<kFewLongRows>;
}

template <class W>
void mod_down_few_rows(const Context<W>& context, const BaseConversionPlan<W>& plan,
                       const Targets& targets, unsigned rows, const void* converted,
                       const ModDownView& d) {
  using F = Factor<typename W::R>;
  if constexpr (std::is_same_v<W, W32>) {
    const ReadBlock<W> load{static_cast<const typename W::Stored*>(converted)};
    const ModDownStore<W> store{d, plan.keep.template as<F>(), plan.divide.template as<F>(),
                                context.log_n};
    const Transform<W, false, ReadBlock<W>, ModDownStore<W>> t{
        context.stream, context.transforms, load, store,  nullptr,
        targets.prime,  targets.count,      rows, nullptr};
    t.template one_pass<kFewLongRows, true, kFewBlocks<kFewLongRows, true>, 4>();
  }
}

#define JALI_INSTANTIATE(W)                                                                      \
  template bool mod_down_takes_one_pass<W>(const Context<W>&, const BaseConversionPlan<W>&);     \
  template bool mod_down_has_few_rows<W>(const Context<W>&, const BaseConversionPlan<W>&,        \
                                         unsigned);                                              \
  template void mod_down_few_rows<W>(const Context<W>&, const BaseConversionPlan<W>&,            \
                                     const Targets&, unsigned, const void*, const ModDownView&); \
  template void mod_down_in_one_pass<W>(const Context<W>&, const BaseConversionPlan<W>&,         \
                                        const Targets&, unsigned, const void*,                   \
                                        const ModDownView&);
JALI_INSTANTIATE(W32)
JALI_INSTANTIATE(W52)
JALI_INSTANTIATE(W64)
#undef JALI_INSTANTIATE

}  // namespace jali::backend::cuda
