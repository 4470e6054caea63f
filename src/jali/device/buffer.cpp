#include "jali/device/buffer.h"

#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jali/base/error.h"

namespace jali::device {

namespace {

constexpr std::size_t kAlignment = 64;

// Sizes are rounded to a sixteenth of their power of two, so that a freed block fits many requests
// and at most 1/16 is wasted.
std::size_t size_class(std::size_t bytes) {
  std::size_t granule = kAlignment;
  while (granule * 32 < bytes) granule *= 2;
  return (bytes + granule - 1) / granule * granule;
}

}  // namespace

struct Pool::State {
  bool wipe = false;
  std::shared_ptr<Memory> memory;
  mutable std::mutex mutex;
  std::unordered_map<std::size_t, std::vector<void*>> free;
  std::size_t in_use = 0;
  std::size_t cached = 0;
};

Pool::Pool(bool wipe, std::shared_ptr<Memory> memory) : state_(std::make_unique<State>()) {
  state_->wipe = wipe;
  state_->memory = std::move(memory);
}

std::shared_ptr<Pool> Pool::create(bool wipe, std::shared_ptr<Memory> memory) {
  return std::shared_ptr<Pool>(new Pool(wipe, std::move(memory)));
}

Memory& Pool::memory() const { return *state_->memory; }

Pool::~Pool() { trim(); }

Buffer Pool::allocate(std::size_t bytes) {
  const std::size_t size = size_class(bytes == 0 ? 1 : bytes);
  void* data = nullptr;
  {
    std::lock_guard lock(state_->mutex);
    if (auto it = state_->free.find(size); it != state_->free.end() && !it->second.empty()) {
      data = it->second.back();
      it->second.pop_back();
      state_->cached -= size;
    }
    state_->in_use += size;
  }
  if (data == nullptr) {
    data = state_->memory->allocate(size);
    if (data == nullptr) {
      std::lock_guard lock(state_->mutex);
      state_->in_use -= size;
      throw OutOfMemory("could not allocate " + std::to_string(size) + " bytes; " +
                        std::to_string(state_->in_use) +
                        " bytes are in use by this library: free ciphertexts or keys, or use "
                        "smaller batches");
    }
  }
  return Buffer(shared_from_this(), data, bytes);
}

void Pool::release(void* data, std::size_t bytes) noexcept {
  const std::size_t size = size_class(bytes == 0 ? 1 : bytes);
  if (state_->wipe) state_->memory->wipe(data, size);
  std::lock_guard lock(state_->mutex);
  state_->in_use -= size;
  try {
    state_->free[size].push_back(data);
    state_->cached += size;
  } catch (...) {
    state_->memory->free(data, size);
  }
}

void Pool::trim() {
  std::lock_guard lock(state_->mutex);
  for (auto& [size, blocks] : state_->free) {
    for (void* block : blocks) state_->memory->free(block, size);
  }
  state_->free.clear();
  state_->cached = 0;
}

std::size_t Pool::bytes_in_use() const {
  std::lock_guard lock(state_->mutex);
  return state_->in_use;
}

std::size_t Pool::bytes_cached() const {
  std::lock_guard lock(state_->mutex);
  return state_->cached;
}

Buffer::Buffer(std::shared_ptr<Pool> pool, void* data, std::size_t bytes) noexcept
    : pool_(std::move(pool)), data_(data), bytes_(bytes) {}

Buffer::Buffer(Buffer&& other) noexcept
    : pool_(std::move(other.pool_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    if (data_ != nullptr) pool_->release(data_, bytes_);
    pool_ = std::move(other.pool_);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

bool Buffer::host_accessible() const noexcept {
  return pool_ == nullptr || pool_->memory().host_accessible();
}

Memory* Buffer::memory() const noexcept { return pool_ == nullptr ? nullptr : &pool_->memory(); }

void Buffer::copy_out(void* host) const {
  if (bytes_ != 0) pool_->memory().copy_out(host, data_, bytes_);
}

Buffer::~Buffer() {
  if (data_ != nullptr) pool_->release(data_, bytes_);
}

}  // namespace jali::device
