// What every table of operations has in common.
//
// A table is an abstract class: the operations of one layer, which each engine implements. All
// outputs are canonical, in [0, q), and every rounding is specified at the operation, so that
// results are bit-identical on every engine. Aliasing. An output may be the very same block as an
// input of the same shape unless the operation says otherwise; partial overlap is never allowed.
// Broadcast. If an operation says so, an input of batch 1 serves every batch entry of the output.
// Threads. Every operation may be called from several threads at once on disjoint outputs.
// Defaults. An operation that is not pure virtual is written once, in terms of others, in the
// table's .cpp; an engine overrides it to be faster, with the same bits.
#pragma once

namespace jali::backend {

class Engine;

class Table {
 public:
  /// The engine that offers it, which outlives it.
  explicit Table(const Engine& engine) : engine_(engine) {}
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  virtual ~Table() = default;

  /// Its other tables and its memory, which defaults are made of.
  const Engine& engine() const { return engine_; }

 private:
  const Engine& engine_;
};

}  // namespace jali::backend
