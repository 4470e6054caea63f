// The evaluator of TFHE that Python holds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "jali/backend/trace/trace.h"
#include "jali/schemes/tfhe/evaluator.h"
#include "jali/schemes/tfhe/gates.h"
#include "progress.h"
#include "tfhe.h"

namespace jali::python {

class TfheEvaluator {
 public:
  TfheEvaluator(const TfheParams& params, const TfheKeys& keys, const std::string& device,
                int threads, bool trace, const std::optional<Progress>& progress,
                const std::string& transform);

  const tfhe::Evaluator& operator*() const { return *evaluator_; }
  const tfhe::Evaluator* operator->() const { return evaluator_.get(); }
  const std::shared_ptr<const tfhe::Evaluator>& shared() const { return evaluator_; }
  /// Throws Unsupported for parameters whose ciphertexts do not hold one bit.
  const tfhe::Gates& gates() const;
  /// The engine's name, also if it is traced.
  const std::string& engine() const { return engine_; }
  /// The transform that the engine takes, see backend::TfheConfig.
  const std::string& transform() const { return (*evaluator_).engine().config().transform; }
  /// Null if nothing is recorded.
  const std::shared_ptr<backend::Trace>& trace() const { return trace_; }

 private:
  std::string engine_;
  std::shared_ptr<backend::Trace> trace_;
  std::shared_ptr<const tfhe::Evaluator> evaluator_;
  std::unique_ptr<const tfhe::Gates> gates_;  // null unless ciphertexts hold one bit
};

}  // namespace jali::python
