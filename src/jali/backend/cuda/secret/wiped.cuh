// Seeds of secrets in the parameters of launches.
#pragma once

#include "jali/base/wipe.h"

namespace jali::backend::cuda {

/// Wipes an object's memory when this is destroyed, also by an exception.
template <class T>
class Wiped {
 public:
  explicit Wiped(T& object) : object_(object) {}
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
  ~Wiped() { wipe(&object_, sizeof(T)); }

 private:
  T& object_;
};

}  // namespace jali::backend::cuda
