// Chooses the cluster kernel of a size.
#include "jali/backend/cuda/blind_rotation/cluster_rotation.cuh"
#include "jali/backend/cuda/blind_rotation/cluster_size.cuh"

namespace jali::backend::cuda {

namespace {

// Kernels that take P = 4 points a thread, in clusters of four blocks.
template <int LogN, int K1, int Levels, bool Summed>
using Small = ClusterSize<LogN, K1, 4, 4, Levels, Summed>;
// Kernels that take P = 8 points a thread, in clusters of eight blocks: one warp a block.
template <int LogN, int Levels, bool Summed = false>
using Wide = ClusterSize<LogN, 2, 8, 8, Levels, Summed>;
template <int LogN, int Blocks>
using Large = ClusterSize<LogN, 2, Blocks, 16, 1, false>;

// Calls f with the kernels of a configuration, or, if there are none, does nothing. Several levels
// are transformed at once if there is a kernel for that, else one after the other.
template <class F>
void with_cluster_size(const TfheConfig& config, F&& f) {
  const auto N = config.N.value, k = config.k.value;
  const auto [base_log, levels] = config.rotation_gadget;
  if (levels * base_log > 28) return;
  if (config.rotation != Rotation::classic) {
    if (N == 2048 && k == 1 && levels == 1) f(Wide<11, 1, true>{});
    if (N == 2048 && k == 1 && levels > 1) f(Small<11, 2, 1, true>{});
    if (N == 1024 && k == 1) f(Small<10, 2, 1, true>{});
    if (N == 1024 && k == 2) f(Small<10, 3, 1, true>{});
    if (N == 512 && k == 3) f(Small<9, 4, 1, true>{});
    if (N == 512 && k == 4) f(Small<9, 5, 1, true>{});
  } else if (N == 2048 && k == 1) {
    if (levels == 2)
      f(Small<11, 2, 2, false>{});
    else if (levels == 3)
      f(Small<11, 2, 3, false>{});
    else
      f(Wide<11, 1>{});
  } else if (N == 1024 && k == 1) {
    if (levels == 2)
      f(Wide<10, 2>{});
    else if (levels == 3)
      f(Small<10, 2, 3, false>{});
    else
      f(Small<10, 2, 1, false>{});
  } else if (N == 1024 && k == 2) {
    f(Small<10, 3, 1, false>{});
  } else if (N == 512 && k == 3) {
    if (levels == 2)
      f(Small<9, 4, 2, false>{});
    else
      f(Small<9, 4, 1, false>{});
  } else if (N == 512 && k == 4) {
    f(Small<9, 5, 1, false>{});
  } else if (k == 1) {
    if (N == 4096) f(Large<12, 4>{});
    if (N == 8192) f(Large<13, 4>{});
    if (N == 16384) f(Large<14, 8>{});
  }
}

}  // namespace

ClusterKey cluster_key(const TfheConfig& config) {
  ClusterKey key{};
  with_cluster_size(config, [&](auto size) {
    key.blocks = size.blocks;
    key.points = size.points;
    key.part = static_cast<unsigned>(config.N.value / 2) / size.blocks;
    key.levels = static_cast<unsigned>(config.rotation_gadget.levels);
    key.k1 = static_cast<unsigned>(config.k.value + 1);
    key.units = static_cast<unsigned>(config.units());
  });
  return key;
}

// Measured on an H200: while every ciphertext has a cluster, they are faster.
std::size_t cluster_batch(const Stream& stream, const TfheConfig& config) {
  stream.enter();
  if (config.N.value > 2048) return static_cast<std::size_t>(-1);
  std::size_t most = 0;
  with_cluster_size(config, [&](auto size) { most = size.at_once(); });
  return most;
}

void rotate_in_clusters(const Stream& stream, const TfheConfig& config, const AnyTables& tables,
                        const RotationCall& call) {
  ClusterArgs args{};
  args.call = call;
  args.tables = tables;
  args.n = static_cast<unsigned>(config.n.value);
  args.steps =
      config.rotation == Rotation::classic ? static_cast<unsigned>(config.steps()) : call.steps;
  args.levels = config.rotation_gadget.levels;
  args.base_log = config.rotation_gadget.base_log;
  args.torus = torus_bits(config.torus);
  args.mean = config.mean_bit;
  with_cluster_size(config, [&](auto size) { size.rotate(stream, args); });
}

}  // namespace jali::backend::cuda
