#include "jali/circuits/ckks/layout.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "jali/base/error.h"

namespace jali::circuits {

void Layout::check() const {
  require<InvalidArgument>(size > 0, "a layout needs at least one element");
  require<InvalidArgument>(std::has_single_bit(slots), "the slots of a layout are a power of two");
  std::vector<bool> held(size, false);
  for (const auto& row : element) {
    require<InvalidArgument>(row.size() == slots, [&] {
      return "a layout of " + std::to_string(slots) + " slots has a ciphertext of " +
             std::to_string(row.size());
    });
    for (const auto e : row) {
      require<InvalidArgument>(e == kNothing || (e >= 0 && static_cast<std::size_t>(e) < size),
                               [&] {
                                 return "a layout of " + std::to_string(size) +
                                        " elements names element " + std::to_string(e);
                               });
      if (e != kNothing) held[static_cast<std::size_t>(e)] = true;
    }
  }
  const auto missing = std::ranges::find(held, false);
  require<InvalidArgument>(missing == held.end(), [&] {
    return "the layout holds element " + std::to_string(missing - held.begin()) + " in no slot";
  });
}

std::size_t Layout::period() const {
  std::size_t period = slots;
  const auto repeats = [&](std::size_t p) {
    return std::ranges::all_of(element, [&](const auto& row) {
      return std::equal(row.begin() + static_cast<std::ptrdiff_t>(p), row.end(), row.begin());
    });
  };
  while (period > 1 && repeats(period / 2)) period /= 2;
  return period;
}

std::vector<std::vector<double>> Layout::pack(std::span<const double> vectors,
                                              std::size_t batch) const {
  require<InvalidArgument>(vectors.size() == batch * size, [&] {
    return "expected " + std::to_string(batch) + " vectors of " + std::to_string(size) +
           " numbers, got " + std::to_string(vectors.size()) + " numbers";
  });
  std::vector<std::vector<double>> out;
  for (const auto& row : element) {
    auto& packed = out.emplace_back(batch * slots, 0.0);
    for (std::size_t b = 0; b < batch; ++b)
      for (std::size_t s = 0; s < slots; ++s)
        if (row[s] != kNothing)
          packed[b * slots + s] = vectors[b * size + static_cast<std::size_t>(row[s])];
  }
  return out;
}

std::vector<double> Layout::unpack(std::span<const std::vector<double>> slots_of,
                                   std::size_t batch) const {
  require<InvalidArgument>(slots_of.size() == ciphertexts(), [&] {
    return "expected the slots of " + std::to_string(ciphertexts()) + " ciphertexts, got " +
           std::to_string(slots_of.size());
  });
  std::vector<double> out(batch * size);
  std::vector<bool> done(size, false);
  for (std::size_t c = 0; c < ciphertexts(); ++c) {
    require<InvalidArgument>(slots_of[c].size() == batch * slots, [&] {
      return "expected " + std::to_string(batch * slots) + " slots, got " +
             std::to_string(slots_of[c].size());
    });
    for (std::size_t s = 0; s < slots; ++s) {
      if (element[c][s] == kNothing) continue;
      const auto e = static_cast<std::size_t>(element[c][s]);
      if (done[e]) continue;
      done[e] = true;
      for (std::size_t b = 0; b < batch; ++b) out[b * size + e] = slots_of[c][b * slots + s];
    }
  }
  return out;
}

Layout Layout::periodic(std::size_t size, std::size_t slots, std::size_t period) {
  require<InvalidArgument>(size > 0 && std::has_single_bit(slots),
                           "a layout needs elements, and a power of two of slots");
  const std::size_t widest = std::min(std::bit_ceil(size), slots);
  if (period == 0) period = widest;
  require<InvalidArgument>(std::has_single_bit(period) && period >= widest && period <= slots, [&] {
    return "the period must be a power of two in [" + std::to_string(widest) + ", " +
           std::to_string(slots) + "], got " + std::to_string(period);
  });
  std::vector<ckks::Packing> packing;
  for (std::size_t first = 0; first < size; first += slots) {
    const std::size_t count = std::min(slots, size - first);
    // The last ciphertext of a long vector holds fewer elements, which may repeat with a smaller
    // period.
    const std::size_t every = first == 0 ? period : std::bit_ceil(count);
    packing.push_back(
        ckks::packing_of_tiling(count, ckks::tiling_of(first, every, every, 1, slots), slots));
  }
  return of(size, slots, std::move(packing));
}

Layout Layout::of(std::size_t size, std::size_t slots, std::vector<ckks::Packing> packing) {
  Layout out{size, slots, {}, std::move(packing)};
  for (const ckks::Packing& one : out.packing) {
    auto& row = out.element.emplace_back(slots, kNothing);
    const auto numbers = ckks::numbers_in_slots(one, slots);
    for (std::size_t s = 0; s < slots; ++s)
      if (numbers[s] != ckks::kNoNumber)
        row[s] = static_cast<std::int32_t>(one.tiling.first + numbers[s]);
  }
  return out;
}

bool Layout::agrees(std::size_t index, const ckks::Packing& lies) const {
  const auto& row = element[index];
  const auto numbers = ckks::numbers_in_slots(lies, slots);
  std::int32_t first = -1;  // the elements of this ciphertext are numbered from the least
  for (const auto e : row)
    if (e != kNothing && (first < 0 || e < first)) first = e;
  for (std::size_t s = 0; s < slots; ++s)
    if (row[s] != kNothing && numbers[s] != static_cast<std::uint32_t>(row[s] - first))
      return false;
  return true;
}

std::string Layout::described() const {
  std::string out = ciphertexts() == 1 ? "" : std::to_string(ciphertexts()) + " ciphertexts: ";
  if (packing.empty()) return out + std::to_string(size) + " numbers by a table of its own";
  for (std::size_t c = 0; c < packing.size(); ++c)
    out += (c == 0 ? "" : "; ") + ckks::described(packing[c], std::countr_zero(slots));
  return out;
}

}  // namespace jali::circuits
