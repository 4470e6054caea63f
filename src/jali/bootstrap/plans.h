// The plans of bootstrapping with their matrices, which the clients of an engine share.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "jali/base/progress.h"
#include "jali/base/turns.h"
#include "jali/bootstrap/bootstrapper.h"

namespace jali::bootstrap {

/// No matrix of bootstrapping depends on a key, so each is encoded once for an engine. All are
/// kept, because captured functions read them. May be used from several threads; errors are those
/// of BootstrapPlan and Turns.
class Plans {
 public:
  explicit Plans(std::shared_ptr<const ckks::Engine> engine);

  const std::shared_ptr<const ckks::Engine>& engine() const { return engine_; }
  /// The plan with these options. Its matrices need not be encoded yet.
  std::shared_ptr<BootstrapPlan> at(const BootstrapperOptions& options) const;
  /// Encodes its matrices, if that has not been done. One thread does so while others wait.
  /// progress: called after each matrix.
  void prepare(const std::shared_ptr<BootstrapPlan>& plan, const Progress& progress = {}) const;

 private:
  struct Made {
    BootstrapperOptions options;
    std::shared_ptr<BootstrapPlan> plan;
    bool prepared = false;
  };
  const std::shared_ptr<const ckks::Engine> engine_;
  mutable Turns turns_;
  mutable std::vector<Made> made_;
};

}  // namespace jali::bootstrap
