// The tables of circuits in an engine's memory. A circuit's tables are uploaded once, and stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "jali/backend/tfhe_ops.h"
#include "jali/device/buffer.h"
#include "jali/params/tfhe_params.h"

namespace jali::integers {

/// A polynomial for each table, in the order of the tables.
struct Polynomials {
  device::Buffer data;
  std::size_t count = 0;
};

/// May be used from several threads.
class TfheTables {
 public:
  /// most: the bytes that are kept for later.
  TfheTables(tfhe::ParamsPtr params, std::size_t most);

  /// tables: as in RowLookUps. Whoever holds the result keeps the polynomials; for others they stay
  /// while there is room.
  std::shared_ptr<const Polynomials> of(const backend::TfheOps& engine,
                                        std::span<const std::int16_t> tables) const;
  /// Polynomials of the caller's own. In a recording they are part of it.
  Polynomials made(const backend::TfheOps& engine, std::span<const std::int16_t> tables) const;

 private:
  tfhe::ParamsPtr params_;
  std::size_t most_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, std::weak_ptr<const Polynomials>> made_;
  mutable std::vector<std::shared_ptr<const Polynomials>> kept_;
  mutable std::size_t bytes_ = 0;  // of kept_
};

}  // namespace jali::integers
