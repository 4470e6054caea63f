#include "jali/backend/trace/objects.h"

#include <algorithm>

namespace jali::backend {

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::ciphertext: return "ciphertext";
    case Kind::plaintext: return "plaintext";
    case Kind::key: return "key";
    case Kind::scratch: return "scratch";
    case Kind::host: return "host";
    case Kind::unknown: break;
  }
  return "unknown";
}

namespace trace {

// The caller's memory may hold anything at the next call, so that it is another object each time.
Extent Objects::place(Kind kind, const void* data, std::uint64_t bytes) {
  if (kind == Kind::host) {
    const auto at = ids_->block_of(data);
    return at ? Extent{kind, at->id, at->offset, bytes} : Extent{kind, ids_->fresh(), 0, bytes};
  }
  const auto [id, offset] = ids_->find(data);
  const std::lock_guard lock(mutex_);
  if (kind != Kind::unknown) {
    kinds_.emplace(id, kind);
  } else if (const auto known = kinds_.find(id); known != kinds_.end()) {
    kind = known->second;
  }
  return {kind, id, offset, bytes};
}

Extent Objects::read(Kind kind, const void* data, std::uint64_t bytes) {
  Extent out = place(kind, data, bytes);
  if (out.kind == Kind::unknown) out.kind = Kind::ciphertext;
  return out;
}

Extent Objects::write(Kind kind, const void* data, std::uint64_t bytes) {
  return place(kind, data, bytes);
}

void Objects::settle(std::span<Extent> writes, std::span<const Extent> reads) {
  Kind made = reads.empty() ? Kind::scratch : Kind::ciphertext;
  if (!reads.empty() && std::ranges::all_of(reads, [](const Extent& e) {
        return e.kind == Kind::plaintext || e.kind == Kind::host;
      })) {
    made = Kind::plaintext;
  }
  for (Extent& e : writes) {
    if (e.kind != Kind::unknown) continue;
    e.kind = made;
    const std::lock_guard lock(mutex_);
    kinds_.emplace(e.object, made);
  }
}

}  // namespace trace
}  // namespace jali::backend
