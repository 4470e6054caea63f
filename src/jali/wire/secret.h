// Bytes of secret keys, in a library of their own (jali_wire_secret): servers do not link it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "jali/base/wipe.h"
#include "jali/params/ckks_params.h"
#include "jali/ring/poly.h"
#include "jali/rlwe/keys.h"
#include "jali/wire/frame.h"

namespace jali::wire {

/// Gives memory back wiped.
template <class T>
struct WipingAllocator {
  using value_type = T;
  WipingAllocator() = default;
  template <class U>
  WipingAllocator(const WipingAllocator<U>&) noexcept {}  // NOLINT: allocators convert

  T* allocate(std::size_t count) { return std::allocator<T>().allocate(count); }
  void deallocate(T* data, std::size_t count) noexcept {
    wipe(data, count * sizeof(T));
    std::allocator<T>().deallocate(data, count);
  }
  friend bool operator==(const WipingAllocator&, const WipingAllocator&) { return true; }
};

/// Bytes that are wiped when they die. Copies into other containers are the caller's to protect.
using SecretBytes = std::vector<std::uint8_t, WipingAllocator<std::uint8_t>>;

/// Two bits a coefficient. Throws InvalidArgument if the key is not ternary.
SecretBytes secret_to_bytes(const rlwe::SecretKey& key, const ring::Ring& ring);

/// Into memory that is wiped. Errors as in wire/ckks.h; none tells anything of the key.
rlwe::SecretKey secret_from_bytes(std::span<const std::uint8_t> bytes,
                                  const params::CkksParamsPtr& params, const ring::Ring& ring,
                                  const Limits& limits = {});

}  // namespace jali::wire
