// What the design of the latency kernel hangs on, in clocks of one SM: dependent FP64 operations,
// conversions, barriers of a block and of a cluster, a message through distributed shared memory,
// and FP64 tensor cores against FP64 FMAs. Usage: cluster_micro; prints JSON lines.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>

namespace cg = cooperative_groups;

constexpr int kSteps = 512;

__global__ void fma_latency(double* out, long long* clocks, double a) {
  double x = out[threadIdx.x];
  const long long begin = clock64();
#pragma unroll 16
  for (int i = 0; i < kSteps; ++i) x = fma(x, a, a);
  const long long end = clock64();
  out[threadIdx.x] = x;
  if (threadIdx.x == 0) *clocks = end - begin;
}
template <int Chains>
__global__ void fma_rate(double* out, long long* clocks, double a) {
  double x[Chains];
  for (int c = 0; c < Chains; ++c) x[c] = out[threadIdx.x] + c;
  __syncthreads();
  const long long begin = clock64();
#pragma unroll 8
  for (int i = 0; i < kSteps; ++i) {
#pragma unroll
    for (int c = 0; c < Chains; ++c) x[c] = fma(x[c], a, a);
  }
  __syncthreads();
  const long long end = clock64();
  double sum = 0;
  for (int c = 0; c < Chains; ++c) sum += x[c];
  out[threadIdx.x] = sum;
  if (threadIdx.x == 0) *clocks = end - begin;
}
__global__ void f2i_rate(double* out, long long* clocks, double a) {
  double x[8];
  unsigned sum = 0;
  for (int c = 0; c < 8; ++c) x[c] = out[threadIdx.x] + c;
  __syncthreads();
  const long long begin = clock64();
#pragma unroll 4
  for (int i = 0; i < kSteps; ++i) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      sum ^= static_cast<unsigned>(__double2ll_rn(x[c]));
      x[c] = __hiloint2double(__double2hiint(x[c]), static_cast<int>(sum));
    }
  }
  __syncthreads();
  const long long end = clock64();
  out[threadIdx.x] = sum * a;
  if (threadIdx.x == 0) *clocks = end - begin;
}
__global__ void block_barrier(double* out, long long* clocks, double) {
  const long long begin = clock64();
#pragma unroll 16
  for (int i = 0; i < kSteps; ++i) __syncthreads();
  const long long end = clock64();
  if (threadIdx.x == 0) *clocks = end - begin;
  out[threadIdx.x] = 0;
}
// A store to shared memory, a barrier of the block, and a load of what another warp stored.
__global__ void block_exchange(double* out, long long* clocks, double) {
  __shared__ double buffer[2][1024];
  double x = threadIdx.x;
  const int other = (threadIdx.x + 32) % blockDim.x;
  const long long begin = clock64();
#pragma unroll 16
  for (int i = 0; i < kSteps; ++i) {
    buffer[i & 1][threadIdx.x] = x;
    __syncthreads();
    x = buffer[i & 1][other];
  }
  const long long end = clock64();
  if (threadIdx.x == 0) *clocks = end - begin;
  out[threadIdx.x] = x;
}
__global__ void warp_exchange(double* out, long long* clocks, double) {
  __shared__ double buffer[1024];
  double x = threadIdx.x;
  const int other = (threadIdx.x & ~31u) + (threadIdx.x + 7) % 32;
  const long long begin = clock64();
#pragma unroll 16
  for (int i = 0; i < kSteps; ++i) {
    buffer[threadIdx.x] = x;
    __syncwarp();
    x = buffer[other];
    __syncwarp();
  }
  const long long end = clock64();
  if (threadIdx.x == 0) *clocks = end - begin;
  out[threadIdx.x] = x;
}
__global__ void shuffle_latency(double* out, long long* clocks, double) {
  double x = threadIdx.x;
  const long long begin = clock64();
#pragma unroll 16
  for (int i = 0; i < kSteps; ++i) x = __shfl_xor_sync(~0u, x, 5);
  const long long end = clock64();
  if (threadIdx.x == 0) *clocks = end - begin;
  out[threadIdx.x] = x;
}
__global__ void cluster_barrier(double* out, long long* clocks, double) {
  auto cluster = cg::this_cluster();
  cluster.sync();
  const long long begin = clock64();
  for (int i = 0; i < kSteps; ++i) {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
  }
  const long long end = clock64();
  if (threadIdx.x == 0 && blockIdx.x == 0) *clocks = end - begin;
  out[threadIdx.x] = 0;
}
// Every thread sends `Words` complex numbers to the next block of the cluster by st.async and waits
// for those it is sent.
template <int Words>
__global__ void messages(double* out, long long* clocks, double) {
  __shared__ __align__(16) double2 box[2][Words * 128];
  __shared__ __align__(8) unsigned long long bars[2];
  auto cluster = cg::this_cluster();
  const unsigned to = (cluster.block_rank() + 1) % cluster.num_blocks();
  const auto address = [](const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
  };
  const auto remote = [&](unsigned local) {
    unsigned at;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(local), "r"(to));
    return at;
  };
  if (threadIdx.x == 0) {
    for (int b = 0; b < 2; ++b)
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address(&bars[b])));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster.sync();
  double2 x[Words];
  for (int w = 0; w < Words; ++w) x[w] = make_double2(threadIdx.x, w);
  unsigned boxes[2] = {remote(address(&box[0][threadIdx.x])),
                       remote(address(&box[1][threadIdx.x]))};
  unsigned there[2] = {remote(address(&bars[0])), remote(address(&bars[1]))};
  const long long begin = clock64();
  for (int i = 0; i < kSteps; ++i) {
    const int b = i & 1;
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(address(&bars[b])),
                   "r"(Words * 16 * blockDim.x)
                   : "memory");
    }
#pragma unroll
    for (int w = 0; w < Words; ++w) {
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, "
          "[%3];" ::"r"(boxes[b] + w * 2048),
          "l"(__double_as_longlong(x[w].x)), "l"(__double_as_longlong(x[w].y)), "r"(there[b])
          : "memory");
    }
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@!done "
        "bra again;\n}" ::"r"(address(&bars[b])),
        "r"(i >> 1 & 1)
        : "memory");
#pragma unroll
    for (int w = 0; w < Words; ++w) x[w] = box[b][threadIdx.x + 128 * w];
  }
  const long long end = clock64();
  if (threadIdx.x == 0 && blockIdx.x == 0) *clocks = end - begin;
  cluster.sync();
  out[threadIdx.x] = x[0].x;
}
// m16n8k16 of FP64: 2,048 FMAs a warp and instruction.
__global__ void tensor_rate(double* out, long long* clocks, double a) {
  double c[2][4] = {}, x[8], y[4];
  for (int i = 0; i < 8; ++i) x[i] = a + i;
  for (int i = 0; i < 4; ++i) y[i] = a - i;
  __syncthreads();
  const long long begin = clock64();
#pragma unroll 4
  for (int i = 0; i < kSteps; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, "
          "{%4,%5,%6,%7,%8,%9,%10,%11}, "
          "{%12,%13,%14,%15}, {%0,%1,%2,%3};"
          : "+d"(c[j][0]), "+d"(c[j][1]), "+d"(c[j][2]), "+d"(c[j][3])
          : "d"(x[0]), "d"(x[1]), "d"(x[2]), "d"(x[3]), "d"(x[4]), "d"(x[5]), "d"(x[6]), "d"(x[7]),
            "d"(y[0]), "d"(y[1]), "d"(y[2]), "d"(y[3]));
    }
  }
  __syncthreads();
  const long long end = clock64();
  out[threadIdx.x] = c[0][0] + c[1][0] + c[0][1] + c[1][1];
  if (threadIdx.x == 0) *clocks = end - begin;
}

template <class Kernel>
void report(const char* what, Kernel kernel, int threads, int cluster, double per) {
  double* out;
  long long* clocks;
  cudaMalloc(&out, 8 * 1024);
  cudaMemset(out, 0, 8 * 1024);
  cudaMalloc(&clocks, 8);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(cluster);
  config.blockDim = dim3(threads);
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  config.attrs = &attribute;
  config.numAttrs = 1;
  long long have = 0, best = 1ll << 60;
  for (int i = 0; i < 5; ++i) {
    cudaLaunchKernelEx(&config, kernel, out, clocks, 1.0000001);
    cudaMemcpy(&have, clocks, 8, cudaMemcpyDeviceToHost);
    best = have < best ? have : best;
  }
  const auto error = cudaGetLastError();
  std::printf(
      "{\"what\": \"%s\", \"threads\": %d, \"cluster\": %d, \"clocks\": %.1f, \"error\": \"%s\"}\n",
      what, threads, cluster, static_cast<double>(best) / kSteps / per, cudaGetErrorString(error));
  cudaFree(out);
  cudaFree(clocks);
}

int main() {
  report("dependent FMA", fma_latency, 32, 1, 1);
  for (int threads : {32, 128, 256, 512})
    report("FMAs of 8 chains, a warp instruction", fma_rate<8>, threads, 1, 8);
  for (int threads : {32, 128, 256})
    report("FMAs of 4 chains, a warp instruction", fma_rate<4>, threads, 1, 4);
  for (int threads : {32, 128, 256}) report("F2I, a warp instruction", f2i_rate, threads, 1, 8);
  for (int threads : {128, 512}) report("m16n8k16, an instruction", tensor_rate, threads, 1, 2);
  for (int threads : {64, 128, 256}) report("block barrier", block_barrier, threads, 1, 1);
  for (int threads : {64, 128, 256})
    report("store, block barrier, load", block_exchange, threads, 1, 1);
  report("store, warp barrier, load", warp_exchange, 32, 1, 1);
  report("shuffle of a double", shuffle_latency, 32, 1, 1);
  for (int cluster : {2, 4, 8}) report("cluster barrier", cluster_barrier, 128, cluster, 1);
  for (int cluster : {2, 4, 8})
    report("message of 1 complex a thread", messages<1>, 128, cluster, 1);
  for (int cluster : {2, 4}) report("message of 4 complex a thread", messages<4>, 128, cluster, 1);
  for (int cluster : {2, 4}) report("message of 8 complex a thread", messages<8>, 64, cluster, 1);
}
