// Records the copies that layers above make within an engine's memory.
#pragma once

#include <memory>

#include "jali/backend/trace/recorder.h"
#include "jali/device/memory.h"

namespace jali::backend::trace {

/// Hands everything to another memory, and records copies within it as operations "copy".
class TraceMemory final : public device::Memory {
 public:
  /// blank: a record with the shape that a copy has. recorder must outlive it.
  TraceMemory(const Recorder& recorder, std::shared_ptr<device::Memory> inner, Record blank)
      : recorder_(recorder), inner_(std::move(inner)), blank_(std::move(blank)) {}

  void* allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void free(void* data, std::size_t bytes) noexcept override { inner_->free(data, bytes); }
  void wipe(void* data, std::size_t bytes) noexcept override { inner_->wipe(data, bytes); }
  void fill(void* data, std::uint8_t byte, std::size_t bytes) noexcept override {
    inner_->fill(data, byte, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override;
  void copy_in(void* to, const void* host, std::size_t bytes) override {
    inner_->copy_in(to, host, bytes);
  }
  void copy_secret_in(void* to, const void* host, std::size_t bytes) override {
    inner_->copy_secret_in(to, host, bytes);
  }
  void copy_out(void* host, const void* from, std::size_t bytes) override {
    inner_->copy_out(host, from, bytes);
  }
  void copy_rows(void* to, std::size_t to_stride, const void* from, std::size_t from_stride,
                 std::size_t bytes, std::size_t rows) override;
  void gather(void* to, std::span<const void* const> from, std::size_t bytes,
              std::size_t rows) override;
  void scatter(std::span<void* const> to, const void* from, std::size_t bytes,
               std::size_t rows) override;
  bool copy_from(Memory& other, void* to, const void* from, std::size_t bytes) override {
    return inner_->copy_from(other, to, from, bytes);
  }
  void synchronize() override { inner_->synchronize(); }
  void trim() noexcept override { inner_->trim(); }
  std::size_t available() const override { return inner_->available(); }
  bool host_accessible() const override { return inner_->host_accessible(); }

 private:
  const Recorder& recorder_;
  const std::shared_ptr<device::Memory> inner_;
  const Record blank_;
};

}  // namespace jali::backend::trace
