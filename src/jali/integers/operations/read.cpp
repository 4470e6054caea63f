#include "jali/base/error.h"
#include "jali/integers/arithmetic.h"
#include "jali/integers/arrays.h"
#include "jali/integers/operations/operation.h"

namespace jali::integers {

Integers Arithmetic::read(std::span<const Wide> table, IntegerType type,
                          const Integers& index) const {
  check_type(type);
  check_values(table, type);
  require<InvalidArgument>(!index.type().is_signed, "an index is unsigned: cast it first");
  require<InvalidArgument>(!table.empty(), "an array has at least one entry");
  std::string key = "read clear";
  append(key, type);
  append(key, table.data(), table.size_bytes());
  return run_one(key, {{index, index.type()}}, 1, [&](Builder& b, const Words& w, std::size_t) {
    return integers::read(b, w[0], table, type);
  });
}

Integers Arithmetic::read(const Integers& table, const Integers& index) const {
  require<InvalidArgument>(!index.type().is_signed, "an index is unsigned: cast it first");
  require<InvalidArgument>(table.count() > 0, "an array has at least one entry");
  check_type(table.type());
  return run_one("read", {{table, table.type(), table.count()}, {index, index.type()}}, 1,
                 [&](Builder& b, const Words& w, std::size_t) {
                   Words entries;
                   for (std::size_t i = 0; i < table.count(); ++i) {
                     entries.push_back(part(w[0], i, table.type(), b.m()));
                   }
                   return integers::read(b, w[1], entries);
                 });
}

}  // namespace jali::integers
