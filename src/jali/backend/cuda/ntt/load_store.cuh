// How a transform reads and writes memory. Its first reading and its last writing of every residue
// are function objects, so that work on single residues (scaling, base conversion, sums) needs no
// pass of its own.
//
//   struct Load {   // every residue that goes in, once
//     template <int V>
//     __device__ void operator()(const Row<W>& row, int k, typename W::R (&x)[V]) const;
//   };
//   struct Store {  // every residue that comes out, once
//     template <int V>
//     __device__ void operator()(const Row<W>& row, int k, const typename W::R (&x)[V]) const;
//   };
//
// If rows take one pass, a Load may instead read all residues of a thread at once, x[r] from place
// k(r):
//     template <int kCount, class K>
//     __device__ void whole(const Row<W>& row, K&& k, typename W::R (&x)[kCount]) const;
// For an inverse, a Load that reads in one of several ways may decide once a row: it calls f(read),
// and read(k, x) reads:
//     template <class F>
//     __device__ void reading(const Row<W>& row, F&& f) const;
// A Load with a type LimbsFirst has the limbs of one batch entry follow each other in the order of
// blocks. A Store may read words of its own before it is called; it is then given them as one more
// argument:
//     template <int V>
//     __device__ Words<V> ahead(const Row<W>& row, int k) const;
//
// Both take the V residues k, k + 1, .., k + V - 1 of a row: V words are up to 16 bytes and k is a
// multiple of V, so read_words and write_words move them at once. load may leave any values below
// 2q (w32, w64) or within (-8q, 8q) (w52); store is given lazy values, which W::store makes
// canonical. Every residue of a row is loaded before any of the row is stored: a block may be
// transformed in place.
#pragma once

#include <cstddef>

#include "jali/backend/cuda/ntt/ntt.cuh"

namespace jali::backend::cuda {

/// The row being transformed.
template <class W>
struct Row {
  unsigned limb, b;  // its limb, counted in the call's limbs, and its batch entry
  std::size_t at;  // its first word in a block of the call's shape: (limb * batch + b) * N
  const typename W::Prime& prime;
};

template <class W, int V>
__device__ __forceinline__ void read_words(const typename W::Stored* from, typename W::R (&x)[V]) {
  struct alignas(sizeof(typename W::Stored) * V) Words {
    typename W::Stored w[V];
  };
  const Words words = *reinterpret_cast<const Words*>(from);
#pragma unroll
  for (int i = 0; i < V; ++i) x[i] = W::load(words.w[i]);
}
template <class W, int V>
__device__ __forceinline__ void write_words(typename W::Stored* to, const typename W::R (&x)[V],
                                            const typename W::Prime& prime) {
  struct alignas(sizeof(typename W::Stored) * V) Words {
    typename W::Stored w[V];
  };
  Words words;
#pragma unroll
  for (int i = 0; i < V; ++i) words.w[i] = W::store(x[i], prime);
  *reinterpret_cast<Words*>(to) = words;
}

/// From and to a block of the call's shape.
template <class W>
struct ReadBlock {
  const typename W::Stored* data;
  template <int V>
  __device__ __forceinline__ void operator()(const Row<W>& row, int k,
                                             typename W::R (&x)[V]) const {
    read_words<W, V>(data + row.at + k, x);
  }
};
template <class W>
struct WriteBlock {
  typename W::Stored* data;
  template <int V>
  __device__ __forceinline__ void operator()(const Row<W>& row, int k,
                                             const typename W::R (&x)[V]) const {
    write_words<W, V>(data + row.at + k, x, row.prime);
  }
};

}  // namespace jali::backend::cuda
