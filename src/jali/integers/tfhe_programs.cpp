#include "jali/integers/tfhe_programs.h"

#include <algorithm>
#include <utility>

#include "jali/base/error.h"

namespace jali::integers {

std::shared_ptr<TfhePrograms::Program> TfhePrograms::of(const Circuit& circuit, const Run& run,
                                                        bool& fresh) {
  std::vector<bool> broadcast;
  for (const Operand& operand : run.operands) broadcast.push_back(operand.broadcast);
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find_if(programs_, [&](const auto& program) {
    return program->circuit.get() == &circuit && program->lanes == run.lanes &&
           program->broadcast == broadcast;
  });
  fresh = at == programs_.end();
  if (!fresh) {
    programs_.splice(programs_.begin(), programs_, at);
    return programs_.front();
  }
  auto program = std::make_shared<Program>();
  program->circuit = circuit.weak_from_this().lock();
  program->lanes = run.lanes;
  program->broadcast = std::move(broadcast);
  if (program->circuit == nullptr) return program;  // its address could become another circuit's
  programs_.push_front(program);
  if (programs_.size() > most_) programs_.pop_back();
  return program;
}

void TfhePrograms::record(const Machine& machine, Program& program) const {
  std::vector<Operand> operands;
  for (std::size_t k = 0; k < program.broadcast.size(); ++k) {
    const std::size_t integers = program.broadcast[k] ? 1 : program.lanes;
    program.inputs.push_back(machine.allocate(integers * program.circuit->operands[k]));
    operands.push_back({program.inputs.back().get(), program.broadcast[k]});
  }
  const auto again = [&program, operands = std::move(operands)] {
    program.output = program.work({operands, {}, program.lanes});
  };
  program.graph = device_->record(again);
}

std::unique_ptr<Rows> TfhePrograms::run(const Machine& machine, const Circuit& circuit,
                                        const Run& run, const Work& work) {
  bool fresh = false;
  const std::shared_ptr<Program> program = of(circuit, run, fresh);
  if (fresh) return work(run);
  const std::lock_guard turn(program->turn);
  if (!program->refused && program->graph == nullptr) {
    try {
      program->work = work;
      record(machine, *program);
    } catch (const OutOfMemory&) {
      program->refused = true;
      program->work = nullptr;
      program->inputs.clear();
      program->output.reset();
      if (refused_) refused_();
    }
  }
  if (program->refused) return work(run);
  for (std::size_t k = 0; k < run.operands.size(); ++k) {
    Rows& to = *program->inputs[k];
    if (to.count()) machine.copy(to, 0, *run.operands[k].rows, 0, to.count());
  }
  program->graph->run();
  auto out = machine.allocate(program->output->count());
  machine.copy(*out, 0, *program->output, 0, out->count());
  return out;
}

std::size_t TfhePrograms::recorded() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(programs_, [](const auto& program) {
    const std::lock_guard turn(program->turn);
    return program->graph != nullptr;
  }));
}

}  // namespace jali::integers
