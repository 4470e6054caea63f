// How a transform meets memory. Its first reading and its last writing of every residue are function
// objects, so that work on single residues (scaling, base conversion, sums) needs no pass of its own.
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
// For rows of one pass a Load may have, instead, all residues of a thread at once, x[r] of place k(r):
//     template <int kCount, class K>
//     __device__ void whole(const Row<W>& row, K&& k, typename W::R (&x)[kCount]) const;
// and for an inverse, where it reads in one of several ways, f(read) with the one that the row wants, read(k, x):
//     template <class F>
//     __device__ void reading(const Row<W>& row, F&& f) const;
// and a type LimbsFirst, where blocks of one batch entry's limbs should follow each other.
// A Store may read words of its own before it is called, which it is then given as one more argument:
//     template <int V>
//     __device__ Words<V> ahead(const Row<W>& row, int k) const;
//
// Both meet the V residues k, k + 1, .., k + V - 1 of a row: V words are up to 16 bytes and k is a
// multiple of V, so read_words and write_words move them at once. load may leave any values below 2q
// (w32, w64) or within (-8q, 8q) (w52); store is given lazy values, which W::store makes canonical.
// Every residue of a row is loaded before any of the row is stored: a block may be transformed in place.
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
