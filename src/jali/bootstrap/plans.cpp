#include "jali/bootstrap/plans.h"

#include <algorithm>

namespace jali::bootstrap {

Plans::Plans(std::shared_ptr<const ckks::Engine> engine)
    : engine_(std::move(engine)),
      turns_("the set-up of bootstrapping", engine_->ring()->checkpoint()) {}

std::shared_ptr<BootstrapPlan> Plans::at(const BootstrapperOptions& options) const {
  const Turns::Turn turn = turns_.take();
  const auto known = std::ranges::find(made_, options, &Made::options);
  if (known != made_.end()) return known->plan;
  auto plan = std::make_shared<BootstrapPlan>(engine_->params(), options);
  made_.push_back({options, plan, false});
  return plan;
}

void Plans::prepare(const std::shared_ptr<BootstrapPlan>& plan, const Progress& progress) const {
  const Turns::Turn turn = turns_.take();
  const auto known = std::ranges::find(made_, plan, &Made::plan);
  if (known != made_.end() && known->prepared) return;
  plan->prepare(*engine_, progress);
  if (known != made_.end()) known->prepared = true;
}

}  // namespace jali::bootstrap
