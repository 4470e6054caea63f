#include "jali/backend/engine.h"

#include <utility>

namespace jali::backend {

namespace {

class Rerun final : public Captured {
 public:
  explicit Rerun(std::function<void()> work) : work_(std::move(work)) {}
  void run() override { work_(); }

 private:
  const std::function<void()> work_;
};

}  // namespace

std::shared_ptr<device::Pool> Engine::pool() const {
  return device::Pool::create(/*wipe=*/false, memory());
}

std::unique_ptr<Captured> Engine::capture(std::function<void()> work) const {
  work();
  return std::make_unique<Rerun>(std::move(work));
}

}  // namespace jali::backend
