// Checks, counts and times the operations of an engine of TFHE, with real keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/engine/measured.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/lwe/keys.h"
#include "jali/lwe/secret/secret_key.h"

namespace jali::bench {

class TfheBench {
 public:
  /// params: serialized parameters, of any security. Keys are made here, by `threads` threads,
  /// which also compute on a CPU. transform: see backend::TfheConfig.
  TfheBench(std::span<const std::uint8_t> params, const std::string& device, int threads,
            const std::string& transform);

  std::string engine() const { return engine_->name(); }
  std::string transform() const { return engine_->config().transform; }
  /// Each operation with what it does.
  static std::vector<std::pair<std::string, std::string>> operations();
  /// Whether every one of `batch` results decrypts to what it should, on fresh random messages.
  bool check(const std::string& name, std::size_t batch) const;
  Cost cost(const std::string& name, std::size_t batch) const;
  /// See timed().
  std::vector<double> run(const std::string& name, std::size_t batch, double seconds) const;

 private:
  struct Operands;
  Operands operands(std::size_t batch) const;
  lwe::LweBlock encrypted(std::span<const std::uint64_t> values, bool large) const;
  std::vector<std::uint64_t> decrypted(const lwe::LweBlock& block, bool large) const;
  void call(const std::string& name, const backend::TfheOps& engine, Operands& x) const;

  tfhe::ParamsPtr params_;
  std::unique_ptr<const lwe::SecretKey> secret_;
  std::shared_ptr<const backend::TfheOps> engine_;
  lwe::PreparedKeys keys_;
  device::Buffer table_;
};

}  // namespace jali::bench
