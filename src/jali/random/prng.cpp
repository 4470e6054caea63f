#include "jali/random/prng.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "jali/base/error.h"
#include "jali/random/chacha.h"

namespace jali::random {

static_assert(std::endian::native == std::endian::little, "the stream is defined little end first");

namespace {

constexpr std::uint64_t kStreamBlocks = std::uint64_t{1} << 32;

// Overwrites 16 KiB of dead stack below the caller's frame. If registers cannot hold all of its
// state, the block function leaves words of the seed in its own frame. That frame lies below the
// frame of a sampler, which has at most 8 KiB of working memory.
[[gnu::noinline]] void wipe_frames() {
  std::uint8_t frames[std::size_t{16} << 10];
  wipe(frames, sizeof(frames));
}

}  // namespace

Prng::Prng(const Seed& seed, std::uint64_t stream) {
  static_assert(sizeof(block_) == kGroupBytes);
  // RFC 8439, section 2.3: constants, key, counter, nonce.
  state_ = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  std::memcpy(&state_[4], seed.data(), 32);
  state_[13] = static_cast<std::uint32_t>(stream);
  state_[14] = static_cast<std::uint32_t>(stream >> 32);
}

Prng::~Prng() {
  wipe(state_.data(), sizeof(state_));
  wipe(block_.data(), sizeof(block_));
  wipe_frames();
}

void Prng::generate(std::size_t groups, std::uint8_t* out) {
  if (groups == 0) return;
  require<InternalError>(groups <= (kStreamBlocks - next_block_) / kGroupBlocks,
                         "a random stream ran out after 2^38 bytes: use another stream or seed");
  state_[12] = static_cast<std::uint32_t>(next_block_);
  chacha20_best()(state_.data(), groups, out);
  next_block_ += groups * kGroupBlocks;
}

void Prng::fill(std::span<std::uint8_t> out) {
  const auto take = [&](std::size_t count) {
    std::copy_n(block_.begin() + static_cast<std::ptrdiff_t>(used_), count, out.begin());
    used_ += count;
    out = out.subspan(count);
  };
  take(std::min(out.size(), block_.size() - used_));
  if (out.empty()) return;
  const std::size_t whole = out.size() / kGroupBytes;
  generate(whole, out.data());
  out = out.subspan(whole * kGroupBytes);
  if (out.empty()) return;
  generate(1, block_.data());
  used_ = 0;
  take(out.size());
}

std::uint64_t Prng::next_u64() {
  std::uint64_t word = 0;
  fill({reinterpret_cast<std::uint8_t*>(&word), sizeof(word)});
  return word;
}

void Prng::seek(std::uint64_t offset) {
  require<InvalidArgument>(offset / 64 < kStreamBlocks,
                           "a random stream has 2^38 bytes: seek to an offset below that");
  next_block_ = offset / kGroupBytes * kGroupBlocks;
  generate(1, block_.data());
  used_ = offset % kGroupBytes;
}

}  // namespace jali::random
