// Seeds of secrets, and where they come from.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "jali/random/prng.h"

namespace jali::random {

/// A seed that is wiped when it is destroyed, also by an exception. It cannot be copied; whoever
/// needs a copy takes its bytes() and protects them.
class SecretSeed {
 public:
  SecretSeed() = default;
  explicit SecretSeed(std::span<const std::uint8_t, 32> bytes) {
    std::ranges::copy(bytes, bytes_.begin());
  }
  SecretSeed(SecretSeed&& other) noexcept : bytes_(other.bytes_) { other.wipe_bytes(); }
  SecretSeed& operator=(SecretSeed&&) = delete;
  SecretSeed(const SecretSeed&) = delete;
  SecretSeed& operator=(const SecretSeed&) = delete;
  ~SecretSeed() { wipe_bytes(); }

  Seed& bytes() { return bytes_; }
  const Seed& bytes() const { return bytes_; }

 private:
  void wipe_bytes() noexcept { wipe(bytes_.data(), bytes_.size()); }
  Seed bytes_{};
};

/// The seeds of an object that encrypts or makes keys.
///
/// Without a root, each seed is drawn from the operating system when it is asked for, and nothing
/// of it is kept. Forked processes, threads and restored copies of a process therefore get
/// different seeds, and reading the object's memory later opens nothing that was made before.
///
/// With a root, the seeds follow from it in order. That is for tests and for keys that must be made
/// again. A forked process repeats them, and everybody who knows the root knows every secret that
/// was made from them.
class SeedSource {
 public:
  /// Which bytes of the root's expansion are seed k. streams: the first 32 bytes of stream k.
  /// bytes: bytes 32 k to 32 k + 31 of stream 0.
  enum class Order : std::uint8_t { streams, bytes };

  SeedSource(const std::optional<Seed>& root, Order order);

  /// The next seed. May be called from several threads. Throws InternalError if the operating
  /// system gives no bytes.
  SecretSeed next();
  /// Fills out, of at most 32 bytes, with fresh random bytes that anybody may see. With a root they
  /// come from stream 2^64 - 1 of its expansion, which no seed comes from, so they tell nothing
  /// about any seed, nor change the next.
  void fill_public(std::span<std::uint8_t> out);

 private:
  std::optional<SecretSeed> root_;
  Order order_;
  std::atomic<std::uint64_t> given_{0};  // seeds that followed from the root
  std::atomic<std::uint64_t> published_{0};  // calls of fill_public
};

}  // namespace jali::random
