// Circuits that are recorded: a run of the same circuit on as many integers is one graph of the
// device.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "jali/device/device.h"
#include "jali/integers/circuit.h"
#include "jali/integers/digits.h"

namespace jali::integers {

/// May be used from several threads. A shape is run as it is for the first time, and recorded at
/// the second.
class TfhePrograms {
 public:
  /// refused: called once for each shape that the device has no memory to record. It then runs by
  /// its work, at every call.
  TfhePrograms(std::shared_ptr<device::Device> device, std::size_t most,
               std::function<void()> refused = {})
      : device_(std::move(device)), most_(most), refused_(std::move(refused)) {}

  using Work = std::function<std::unique_ptr<Rows>(const Run&)>;
  /// Runs the circuit by `work`, or plays back what work did for the same circuit, number of lanes
  /// and kinds of operands. The circuit has no clear digits, and work uploads nothing.
  std::unique_ptr<Rows> run(const Machine& machine, const Circuit& circuit, const Run& run,
                            const Work& work);
  /// How many shapes are recorded.
  std::size_t recorded() const;

 private:
  struct Program {
    std::shared_ptr<const Circuit> circuit;
    std::size_t lanes = 0;
    std::vector<bool> broadcast;  // of each operand
    Work work;  // and what it keeps, as long as the graph may run
    bool refused = false;  // the device had no memory for it
    std::mutex turn;  // a graph has one user at a time
    std::vector<std::unique_ptr<Rows>> inputs;
    std::unique_ptr<Rows> output;
    std::unique_ptr<device::Graph> graph;  // null before it is recorded
  };
  std::shared_ptr<Program> of(const Circuit& circuit, const Run& run, bool& fresh);
  void record(const Machine& machine, Program& program) const;

  const std::shared_ptr<device::Device> device_;
  const std::size_t most_;
  const std::function<void()> refused_;
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<Program>> programs_;  // the one used last comes first
};

}  // namespace jali::integers
