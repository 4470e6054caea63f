#include "ckks_here.h"

#include <vector>

namespace jali::python {

ring::Poly host_copy(const ring::Poly& x) {
  ring::Poly out(device::Pool::create()->allocate(x.bytes(), x.buffer().secret()),
                 {x.primes().begin(), x.primes().end()}, x.n(), x.batch(), x.word(), x.form());
  x.buffer().copy_out(out.data());
  return out;
}

ckks::Ciphertext bring(const Server& server, const ckks::Ciphertext& x) {
  return server.evaluator->bring(x);
}

ckks::Plaintext bring(const Server& server, const ckks::Plaintext& x) {
  require_same(*server.params, *x.params, "the plaintext is");
  return {{server.ring->import(x.poly), x.level},
          x.params,
          x.scale,
          x.log_slots,
          x.message,
          x.peak,
          x.real};
}

ckks::Diagonal bring(const Server& server, const ckks::Diagonal& x) {
  require_same(*server.params, *x.params, "a diagonal is");
  return {x.params, server.ring->import(x.poly), x.scale, x.message, x.peak};
}

ckks::Extended bring(const Server& server, const ckks::Extended& x) {
  require_same(*server.params, *x.params, "the extended ciphertext is");
  return {{x.key_id, server.ring->import(x.c0), server.ring->import(x.c1), x.level},
          x.params,
          x.scale,
          x.log_slots,
          x.estimate};
}

bool is_on_host(const ckks::Ciphertext& x) {
  return x.parts.empty() || x.parts[0].buffer().host_accessible();
}
bool is_on_host(const ckks::Plaintext& x) { return x.poly.buffer().host_accessible(); }

ckks::Ciphertext host_copy(const ckks::Ciphertext& x) {
  std::vector<ring::Poly> parts;
  for (const auto& part : x.parts) parts.push_back(host_copy(part));
  return {{x.key_id, std::move(parts), x.level, x.seed},
          x.params,
          x.scale,
          x.log_slots,
          x.estimate,
          x.packing};
}

ckks::Plaintext host_copy(const ckks::Plaintext& x) {
  return {{host_copy(x.poly), x.level}, x.params, x.scale, x.log_slots, x.message, x.peak, x.real};
}

}  // namespace jali::python
