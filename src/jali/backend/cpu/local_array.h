// A short array on the stack: the row addresses of one task, without an allocation in the usual
// case.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

namespace jali::backend::cpu {

template <class T, std::size_t capacity>
class LocalArray {
 public:
  explicit LocalArray(std::size_t size)
      : heap_(size > capacity ? std::make_unique<T[]>(size) : nullptr),
        data_(heap_ ? heap_.get() : local_.data()) {}
  LocalArray(const LocalArray&) = delete;
  LocalArray& operator=(const LocalArray&) = delete;

  T& operator[](std::size_t i) { return data_[i]; }
  T* data() { return data_; }

 private:
  std::array<T, capacity> local_{};
  std::unique_ptr<T[]> heap_;
  T* data_;
};

}  // namespace jali::backend::cpu
