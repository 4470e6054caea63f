// Operands in the memory where they are needed: on an evaluator's device for operations, on the
// host for bytes.
#pragma once

#include <optional>
#include <utility>

#include "ckks_server.h"

namespace jali::python {

/// A ciphertext before its division by P, with the packing that its source had.
struct Sum {
  ckks::Extended value;
  ckks::Packing packing;
};

inline bool is_here(const Server& s, const ckks::Ciphertext& x) { return s.evaluator->is_here(x); }
inline bool is_here(const Server& s, const ckks::Plaintext& x) { return s.ring->holds(x.poly); }
inline bool is_here(const Server& s, const ckks::Diagonal& x) { return s.ring->holds(x.poly); }
inline bool is_here(const Server& s, const ckks::Extended& x) { return s.ring->holds(x.c0); }

/// A copy in the memory of the server's device. Throws ParamsMismatch for an object of other
/// parameters.
ckks::Ciphertext bring(const Server& server, const ckks::Ciphertext& x);
ckks::Plaintext bring(const Server& server, const ckks::Plaintext& x);
ckks::Diagonal bring(const Server& server, const ckks::Diagonal& x);
ckks::Extended bring(const Server& server, const ckks::Extended& x);

/// An operand on the server's device. It is the object itself if that is there already, else a copy
/// that lives as long as this.
template <class T>
class Here {
 public:
  Here(const Server& server, const T& x) : at_(&x) {
    if (!is_here(server, x)) [[unlikely]]
      at_ = &copy_.emplace(bring(server, x));
  }
  Here(Here&& other) noexcept : copy_(std::move(other.copy_)), at_(copy_ ? &*copy_ : other.at_) {}
  Here& operator=(Here&&) = delete;
  operator const T&() const { return *at_; }
  const T& operator*() const { return *at_; }
  const T* operator->() const { return at_; }

 private:
  std::optional<T> copy_;
  const T* at_;
};

/// The explicit evaluator as Python holds it.
struct Explicit {
  std::shared_ptr<const Server> server;
  const ckks::Evaluator* operator->() const { return server->evaluator.get(); }
  template <class T>
  Here<T> here(const T& x) const {
    return {*server, x};
  }
  /// Moves an operand that will be changed in place to the device.
  ckks::Extended& move_here(ckks::Extended& x) const {
    if (!is_here(*server, x)) x = bring(*server, x);
    return x;
  }
};

/// A copy in the host's memory.
ring::Poly host_copy(const ring::Poly& x);
ckks::Ciphertext host_copy(const ckks::Ciphertext& x);
ckks::Plaintext host_copy(const ckks::Plaintext& x);
bool is_on_host(const ckks::Ciphertext& x);
bool is_on_host(const ckks::Plaintext& x);

}  // namespace jali::python
