#include "jali/device/buffer.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jali/base/at_fork.h"
#include "jali/base/error.h"
#include "jali/device/arena.h"
#include "jali/device/block_ids.h"

namespace jali::device {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kRegionAlignment = 512;
constexpr std::size_t kLaterRegions = 16;  // the first region is larger by this factor
constexpr std::size_t kSlack = std::size_t{256} << 20;

// Sizes are rounded to a sixteenth of their power of two, at most a mebibyte, so that a freed block
// fits many requests and at most 1/16 is wasted.
std::size_t size_class(std::size_t bytes) {
  std::size_t granule = kAlignment;
  while (granule * 32 < bytes && granule < (std::size_t{1} << 20)) granule *= 2;
  return (bytes + granule - 1) / granule * granule;
}

}  // namespace

struct Pool::State {
  using Watchers = std::vector<std::weak_ptr<BlockIds>>;
  bool wipe = false, poison = false;
  bool joins = false;  // blocks are cut from regions, in the arena; otherwise they are kept by size
  std::size_t region = 0, later_regions = 0;  // bytes of the next region and of those after it
  std::shared_ptr<Memory> memory;
  mutable ForkSafe<std::mutex> mutex;
  // By size. Blocks of secrets are kept separately, at index 1.
  std::unordered_map<std::size_t, std::vector<void*>> free[2];
  Arena arena;
  std::size_t in_use = 0, cached = 0, peak = 0;
  std::size_t most = 0;  // in use at once, ever
  // The thread that allocates from another pool for now, that pool, and what the thread has freed
  // since. Only that thread uses the last two.
  std::atomic<std::thread::id> redirected;
  std::shared_ptr<Pool> redirect_to;
  struct Freed {
    void* data;
    std::size_t bytes;
    bool secret;
  };
  std::vector<Freed> deferred;
  // Told of every block, without the mutex, because they have one of their own. A list is replaced,
  // never changed.
  std::atomic<bool> watched = false;
  std::shared_ptr<const Watchers> watchers;

  template <class Tell>
  void tell(const Tell& tell) const {
    if (!watched.load()) return;
    std::shared_ptr<const Watchers> all;
    {
      std::lock_guard lock(mutex);
      all = watchers;
    }
    for (const auto& one : *all) {
      if (const auto ids = one.lock()) tell(*ids);
    }
  }
};

Pool::Pool(bool wipe, std::shared_ptr<Memory> memory, bool poison)
    : state_(std::make_unique<State>()) {
  state_->wipe = wipe;
  state_->poison = poison;
  state_->memory = std::move(memory);
}

std::shared_ptr<Pool> Pool::create(bool wipe, std::shared_ptr<Memory> memory, bool poison) {
  return std::shared_ptr<Pool>(new Pool(wipe, std::move(memory), poison));
}

std::shared_ptr<Pool> Pool::of_regions(std::size_t first, std::shared_ptr<Memory> memory,
                                       bool poison) {
  auto pool = create(false, std::move(memory), poison);
  pool->state_->joins = true;
  pool->state_->region = first;
  pool->state_->later_regions = first / kLaterRegions;
  return pool;
}

Memory& Pool::memory() const { return *state_->memory; }

Pool::~Pool() { trim(); }

Buffer Pool::allocate(std::size_t bytes, bool secret) {
  // No block is as large as half of all addresses; sizes near all of them would wrap when rounded.
  require<OutOfMemory>(bytes <= kUnknown / 2,
                       "a block is larger than memory: use smaller batches or a smaller ring");
  return (redirected() ? *state_->redirect_to : *this).allocate(bytes, secret, *this);
}

std::size_t Pool::rounded(std::size_t bytes) const noexcept {
  if (!state_->joins) return size_class(bytes == 0 ? 1 : bytes);
  return (std::max<std::size_t>(bytes, 1) + kRegionAlignment - 1) / kRegionAlignment *
         kRegionAlignment;
}

void* Pool::take(std::size_t size, bool secret) {
  std::lock_guard lock(state_->mutex);
  if (state_->joins) return state_->arena.take(size);
  auto& blocks = state_->free[secret];
  const auto it = blocks.find(size);
  if (it == blocks.end() || it->second.empty()) return nullptr;
  void* data = it->second.back();
  it->second.pop_back();
  state_->cached -= size;
  return data;
}

void* Pool::extend(std::size_t size, std::size_t region) {
  void* data = state_->memory->allocate(region);
  if (!state_->joins || data == nullptr) return data;
  std::lock_guard lock(state_->mutex);
  state_->region = state_->later_regions;
  state_->arena.add({data, region});
  return state_->arena.take(size);
}

Buffer Pool::allocate(std::size_t bytes, bool secret, Pool& spare) {
  const std::size_t size = rounded(bytes);
  void* data = take(size, secret);
  const auto region = [&] {
    std::lock_guard lock(state_->mutex);
    return std::max(size, state_->region);
  };
  if (data == nullptr) data = extend(size, region());
  if (data == nullptr) {  // cached blocks may take the memory that is needed
    spare.trim();
    state_->memory->trim();
    data = extend(size, region());
    if (data == nullptr && state_->joins) data = extend(size, size);
  }
  if (data == nullptr) {
    const std::size_t elsewhere = &spare == this ? 0 : spare.bytes_in_use();
    throw OutOfMemory(not_allocated(size, state_->memory->available()) + "; " +
                      readable_bytes(bytes_in_use() + elsewhere) +
                      " are in use by this engine: free ciphertexts or keys, or use smaller "
                      "batches");
  }
  {
    std::lock_guard lock(state_->mutex);
    state_->in_use += size;
    state_->peak = std::max(state_->peak, state_->in_use);
    state_->most = std::max(state_->most, state_->in_use);
  }
  Buffer out(shared_from_this(), data, bytes, secret);
  state_->tell([&](BlockIds& ids) { ids.added(data, size); });
  return out;
}

void Pool::watch(const std::shared_ptr<BlockIds>& ids) {
  std::lock_guard lock(state_->mutex);
  State::Watchers all;
  if (state_->watchers != nullptr) all = *state_->watchers;
  std::erase_if(all, [&](const auto& one) {
    const auto known = one.lock();
    return known == nullptr || known == ids;
  });
  all.push_back(ids);
  state_->watchers = std::make_shared<const State::Watchers>(std::move(all));
  state_->watched = true;
}

bool Pool::redirected() const noexcept {
  return state_->redirected.load() == std::this_thread::get_id();
}

void Pool::release(void* data, std::size_t bytes, bool secret) noexcept {
  if (redirected()) {
    state_->deferred.push_back({data, bytes, secret});
    return;
  }
  const std::size_t size = rounded(bytes);
  state_->tell([&](BlockIds& ids) { ids.removed(data); });
  if (state_->wipe || secret) state_->memory->wipe(data, size);
  if (state_->poison) state_->memory->fill(data, kPoison, size);
  {
    std::lock_guard lock(state_->mutex);
    state_->in_use -= size;
    try {
      if (state_->joins) return state_->arena.give(data, size);
      state_->free[secret][size].push_back(data);
      state_->cached += size;
    } catch (...) {
      state_->memory->free(data, size);
    }
    // A host hands out more memory than it has, so that no allocation fails before the process is
    // ended. Blocks of sizes that are no longer asked for are not kept there for ever. Other
    // memories fail, and what is cached is given back then.
    const std::size_t held = state_->in_use + state_->cached;
    if (!state_->memory->host_accessible() || held <= state_->most + state_->most / 2 + kSlack)
      return;
  }
  trim();
}

void Pool::trim() noexcept {
  std::lock_guard lock(state_->mutex);
  for (auto& kind : state_->free) {
    for (auto& [size, blocks] : kind) {
      for (void* block : blocks) state_->memory->free(block, size);
    }
    kind.clear();
  }
  state_->cached = 0;
  for (const auto& region : state_->arena.release()) {
    state_->memory->free(region.data, region.bytes);
  }
}

std::size_t Pool::bytes_in_use() const {
  std::lock_guard lock(state_->mutex);
  return state_->in_use;
}

std::size_t Pool::bytes_cached() const {
  std::lock_guard lock(state_->mutex);
  return state_->cached + state_->arena.free_bytes();
}

std::size_t Pool::peak_bytes() const {
  std::lock_guard lock(state_->mutex);
  return state_->peak;
}

void Pool::reset_peak() {
  std::lock_guard lock(state_->mutex);
  state_->peak = state_->in_use;
}

std::size_t Pool::peak_of(const std::function<void()>& work) {
  const std::size_t before = bytes_in_use(), peak = peak_bytes();
  reset_peak();
  work();
  std::lock_guard lock(state_->mutex);
  const std::size_t most = state_->peak;
  state_->peak = std::max(most, peak);
  return most - before;
}

Pool::Redirect::Redirect(std::shared_ptr<Pool> from, std::shared_ptr<Pool> to)
    : from_(std::move(from)) {
  require<InternalError>(from_->state_->redirected.load() == std::thread::id(),
                         "allocations of this pool are redirected already");
  from_->state_->redirect_to = std::move(to);
  from_->state_->redirected = std::this_thread::get_id();
}

Pool::Redirect::~Redirect() {
  State& state = *from_->state_;
  state.redirect_to.reset();
  const auto deferred = std::move(state.deferred);
  state.deferred.clear();
  state.redirected = std::thread::id();
  for (const auto& block : deferred) from_->release(block.data, block.bytes, block.secret);
}

Buffer::Buffer(std::shared_ptr<Pool> pool, void* data, std::size_t bytes, bool secret) noexcept
    : pool_(std::move(pool)), data_(data), bytes_(bytes), secret_(secret) {}

Buffer::Buffer(Buffer&& other) noexcept
    : pool_(std::move(other.pool_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      secret_(other.secret_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    if (data_ != nullptr) pool_->release(data_, bytes_, secret_);
    pool_ = std::move(other.pool_);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    secret_ = other.secret_;
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
  if (data_ != nullptr) pool_->release(data_, bytes_, secret_);
}

}  // namespace jali::device
