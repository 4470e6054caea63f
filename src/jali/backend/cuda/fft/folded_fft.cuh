// The folded negacyclic transform of real polynomials of N coefficients: N/2 complex points in the
// registers of G = N/64 threads, 32 points a thread, with one exchange through shared memory.
//
// Folding. c_j = a_j + i a_{j + N/2}, j < M = N/2, is the residue of a(X) modulo X^M - i. The
// transform evaluates c at the M roots of Y^M = i by the tree of remainders: a node of depth d
// stands for Y^(M / 2^d) - r, the root for r = i. With z^2 = r the children of a node are those of
// z and of -z, and a butterfly is (lo + z hi, lo - z hi): the twist by roots of X^N + 1 is part of
// the butterflies. If an even node has the twiddle z, its sibling has i z, so that tables hold the
// twiddles of even nodes alone.
//
// A butterfly takes 6 operations that round (t = a + z b by four FMAs, then 2 a - t by two), so
// that a transform takes 3 M log2(M). Run backwards it would be (u + v, conj(z) (u - v)), 8
// operations. The inverse transform therefore takes residues modulo Y^h - r as cyclic ones: with
// rho^h = r, the numbers c_j rho^j have a plain transform of h points, whose butterflies (u + w v,
// u - w v) take 6 operations, or 4 if w is a power of i. Its parts are: transforms of G points;
// rho^-j, a table, merged with the first level after the exchange; transforms of 32 points; exp(-i
// pi i / 64). That is 3.1 M log2(M) in all for M = 1,024, against 4. The factor 1/M is in the key.
//
// Thread g holds the points g + G i, i < 32, for the five levels on top, whose twiddles are the
// same for all threads and all N. After the exchange it holds the points 32 g + i for the other
// levels.
#pragma once

#include <cuda_runtime.h>

namespace jali::backend::cuda::fft {

inline constexpr int kPoints = 32;  // of a thread
// Of a buffer for the exchange, in doubles: a row of 32 takes 33, so that a half warp meets every
// bank once both when it writes along rows and when it reads across them.
__host__ __device__ constexpr int exchange_doubles(int threads) { return 33 * threads; }

// Even nodes of depths 0 to 4, as real and imaginary part: exp(i pi angle / 2), where the angle of
// the root is 1/2 and those of the children of a node of angle a are a/2 and a/2 + 1.
static __constant__ double kTop[32] = {
    0.70710678118654757, 0.70710678118654746,  0.92387953251128674, 0.38268343236508978,
    0.98078528040323043, 0.19509032201612825,  0.55557023301960229, 0.83146961230254524,
    0.99518472667219693, 0.098017140329560604, 0.63439328416364549, 0.77301045336273699,
    0.88192126434835505, 0.47139673682599764,  0.29028467725446233, 0.95694033573220894,
    0.99879545620517241, 0.049067674327418015, 0.67155895484701833, 0.74095112535495911,
    0.90398929312344334, 0.42755509343028208,  0.33688985339222005, 0.94154406518302081,
    0.97003125319454397, 0.24298017990326387,  0.51410274419322166, 0.85772861000027212,
    0.80320753148064494, 0.59569930449243336,  0.14673047445536175, 0.98917650996478101,
};

// exp(-i pi j / 16)
static __constant__ double kRoots[32] = {
    1,
    -0,
    0.98078528040323043,
    -0.19509032201612825,
    0.92387953251128674,
    -0.38268343236508978,
    0.83146961230254524,
    -0.55557023301960218,
    0.70710678118654757,
    -0.70710678118654746,
    0.55557023301960229,
    -0.83146961230254524,
    0.38268343236508984,
    -0.92387953251128674,
    0.19509032201612833,
    -0.98078528040323043,
    6.123233995736766e-17,
    -1,
    -0.19509032201612819,
    -0.98078528040323043,
    -0.38268343236508973,
    -0.92387953251128674,
    -0.55557023301960196,
    -0.83146961230254546,
    -0.70710678118654746,
    -0.70710678118654757,
    -0.83146961230254535,
    -0.55557023301960218,
    -0.92387953251128674,
    -0.38268343236508989,
    -0.98078528040323043,
    -0.19509032201612861,
};
// exp(-i pi i / 64)
static __constant__ double kLastTwist[64] = {
    1,
    -0,
    0.99879545620517241,
    -0.049067674327418015,
    0.99518472667219693,
    -0.098017140329560604,
    0.98917650996478101,
    -0.14673047445536175,
    0.98078528040323043,
    -0.19509032201612825,
    0.97003125319454397,
    -0.24298017990326387,
    0.95694033573220882,
    -0.29028467725446233,
    0.94154406518302081,
    -0.33688985339222005,
    0.92387953251128674,
    -0.38268343236508978,
    0.90398929312344334,
    -0.42755509343028208,
    0.88192126434835505,
    -0.47139673682599764,
    0.85772861000027212,
    -0.51410274419322166,
    0.83146961230254524,
    -0.55557023301960218,
    0.80320753148064494,
    -0.59569930449243336,
    0.77301045336273699,
    -0.63439328416364549,
    0.74095112535495911,
    -0.67155895484701833,
    0.70710678118654757,
    -0.70710678118654746,
    0.67155895484701833,
    -0.74095112535495911,
    0.63439328416364549,
    -0.77301045336273699,
    0.59569930449243347,
    -0.80320753148064483,
    0.55557023301960229,
    -0.83146961230254524,
    0.51410274419322166,
    -0.85772861000027212,
    0.47139673682599781,
    -0.88192126434835494,
    0.4275550934302822,
    -0.90398929312344334,
    0.38268343236508984,
    -0.92387953251128674,
    0.33688985339222005,
    -0.94154406518302081,
    0.29028467725446233,
    -0.95694033573220894,
    0.24298017990326398,
    -0.97003125319454397,
    0.19509032201612833,
    -0.98078528040323043,
    0.14673047445536175,
    -0.98917650996478101,
    0.09801714032956077,
    -0.99518472667219682,
    0.049067674327418126,
    -0.99879545620517241,
};

// (a + w b, a - w b), w multiplied by i if `turned`.
template <bool turned>
__device__ __forceinline__ void forward_butterfly(double2& a, double2& b, double wr, double wi) {
  double tr, ti;
  if constexpr (turned) {
    tr = fma(-wr, b.y, fma(-wi, b.x, a.x));
    ti = fma(wr, b.x, fma(-wi, b.y, a.y));
  } else {
    tr = fma(wr, b.x, fma(-wi, b.y, a.x));
    ti = fma(wr, b.y, fma(wi, b.x, a.y));
  }
  b.x = fma(2.0, a.x, -tr);
  b.y = fma(2.0, a.y, -ti);
  a.x = tr;
  a.y = ti;
}
// (a + b, conj(w) (a - b))
template <bool turned>
__device__ __forceinline__ void inverse_butterfly(double2& a, double2& b, double wr, double wi) {
  const double dr = a.x - b.x, di = a.y - b.y;
  a.x += b.x;
  a.y += b.y;
  const double re = fma(wr, dr, wi * di), im = fma(wr, di, -(wi * dr));
  if constexpr (turned) {
    b.x = im;
    b.y = -re;
  } else {
    b.x = re;
    b.y = im;
  }
}

// `Blocks` blocks of 32 / Blocks points, each the residue of one node, through one level.
// twiddle(e): entry e, of the first of a pair of siblings; of the node itself if there is one
// block.
template <int Blocks, int First, class Twiddle>
__device__ __forceinline__ void forward_level(double2 (&x)[kPoints], Twiddle twiddle) {
  constexpr int size = kPoints / Blocks, half = size / 2, entries = Blocks < 2 ? 1 : Blocks / 2;
#pragma unroll
  for (int e = 0; e < entries; ++e) {
    const double2 w = twiddle(First + e);
#pragma unroll
    for (int i = 0; i < half; ++i) {
      if constexpr (Blocks == 1) {
        forward_butterfly<false>(x[i], x[half + i], w.x, w.y);
      } else {
        forward_butterfly<false>(x[2 * e * size + i], x[2 * e * size + half + i], w.x, w.y);
        forward_butterfly<true>(x[(2 * e + 1) * size + i], x[(2 * e + 1) * size + half + i], w.x,
                                w.y);
      }
    }
  }
}
// Levels from `Blocks` blocks down to single points.
template <int Blocks, int First, class Twiddle>
__device__ __forceinline__ void forward_levels(double2 (&x)[kPoints], Twiddle twiddle) {
  if constexpr (Blocks < kPoints) {
    forward_level<Blocks, First>(x, twiddle);
    forward_levels<2 * Blocks, First + (Blocks < 2 ? 1 : Blocks / 2)>(x, twiddle);
  }
}
/// Entries of a thread in the table of the lower levels of a transform by `threads` <= 32 threads.
__host__ __device__ constexpr int low_entries(int threads) {
  int entries = 0;
  for (int blocks = 32 / threads; blocks < kPoints; blocks *= 2)
    entries += blocks < 2 ? 1 : blocks / 2;
  return entries;
}

struct Top {
  __device__ __forceinline__ double2 operator()(int e) const {
    return make_double2(kTop[2 * e], kTop[2 * e + 1]);
  }
};
template <int G>
struct Low {
  const double2* table;  // [entry][thread], in shared memory, at this thread's column
  __device__ __forceinline__ double2 operator()(int e) const { return table[e * G]; }
};

// From the points g + G i to the points 32 g + i. meet: waits for all threads of the transform.
// buffer: exchange_doubles(G) doubles of this transform, free on entry and on return.
template <int G, class Meet>
__device__ __forceinline__ void rows_from_columns(double2 (&x)[kPoints], double* buffer, int g,
                                                  Meet meet) {
  double* column = buffer + g;
  double* row = buffer + 33 * g;
#pragma unroll
  for (int i = 0; i < kPoints; ++i) column[G * i + (G * i) / 32] = x[i].x;
  meet();
#pragma unroll
  for (int i = 0; i < kPoints; ++i) x[i].x = row[i];
  meet();
#pragma unroll
  for (int i = 0; i < kPoints; ++i) column[G * i + (G * i) / 32] = x[i].y;
  meet();
#pragma unroll
  for (int i = 0; i < kPoints; ++i) x[i].y = row[i];
  meet();
}
template <int G, class Meet>
__device__ __forceinline__ void columns_from_rows(double2 (&x)[kPoints], double* buffer, int g,
                                                  Meet meet) {
  double* column = buffer + g;
  double* row = buffer + 33 * g;
#pragma unroll
  for (int i = 0; i < kPoints; ++i) row[i] = x[i].x;
  meet();
#pragma unroll
  for (int i = 0; i < kPoints; ++i) x[i].x = column[G * i + (G * i) / 32];
  meet();
#pragma unroll
  for (int i = 0; i < kPoints; ++i) row[i] = x[i].y;
  meet();
#pragma unroll
  for (int i = 0; i < kPoints; ++i) x[i].y = column[G * i + (G * i) / 32];
  meet();
}

/// in: points g + G i. out: points 32 g + i of the tree's order.
template <int G, class Meet>
__device__ __forceinline__ void forward(double2 (&x)[kPoints], double* buffer, const double2* low,
                                        int g, Meet meet) {
  forward_levels<1, 0>(x, Top{});
  rows_from_columns<G>(x, buffer, g, meet);
  forward_levels<32 / G, 0>(x, Low<G>{low + g});
}

// One level of plain transforms of `Size` points from bits reversed: blocks of 2 h, w = exp(-i pi j
// / h).
template <int h>
__device__ __forceinline__ void plain_level(double2 (&x)[kPoints]) {
#pragma unroll
  for (int at = 0; at < kPoints; at += 2 * h) {
#pragma unroll
    for (int j = 0; j < h; ++j) {
      double2 &u = x[at + j], &v = x[at + j + h];
      if (j == 0) {
        const double2 t = v;
        v = make_double2(u.x - t.x, u.y - t.y);
        u = make_double2(u.x + t.x, u.y + t.y);
      } else if (2 * j == h) {  // -i
        const double2 t = v;
        v = make_double2(u.x - t.y, u.y + t.x);
        u = make_double2(u.x + t.y, u.y - t.x);
      } else {
        forward_butterfly<false>(u, v, kRoots[2 * (j * (16 / h))], kRoots[2 * (j * (16 / h)) + 1]);
      }
    }
  }
}
template <int h, int Size>
__device__ __forceinline__ void plain_levels(double2 (&x)[kPoints]) {
  if constexpr (h < Size) {
    plain_level<h>(x);
    plain_levels<2 * h, Size>(x);
  }
}
/// The inverse, times M. twist: exp(-i pi angle(5, i) g / G) at [i][g], in shared memory, as
/// kernels' tables.h makes it.
template <int G, class Meet>
__device__ __forceinline__ void inverse(double2 (&x)[kPoints], double* buffer, const double2* twist,
                                        int g, Meet meet) {
  plain_levels<1, G>(x);
  columns_from_rows<G>(x, buffer, g, meet);
#pragma unroll
  for (int i = 0; i < kPoints; i += 2) {
    const double2 s = twist[i * G + g], t = twist[(i + 1) * G + g], u = x[i];
    x[i].x = fma(s.x, u.x, -(s.y * u.y));
    x[i].y = fma(s.x, u.y, s.y * u.x);
    forward_butterfly<false>(x[i], x[i + 1], t.x, t.y);
  }
  plain_levels<2, kPoints>(x);
#pragma unroll
  for (int i = 1; i < kPoints; ++i) {
    const double2 u = x[i];
    const double re = kLastTwist[2 * i], im = kLastTwist[2 * i + 1];
    x[i].x = fma(re, u.x, -(im * u.y));
    x[i].y = fma(re, u.y, im * u.x);
  }
}

}  // namespace jali::backend::cuda::fft
