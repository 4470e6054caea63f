#include "jali/client/layout.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>
#include <string>

#include "jali/base/error.h"
#include "jali/client/checks.h"

namespace jali::client {

namespace {

constexpr std::uint64_t kMostGap = 64;
constexpr std::uint64_t kMostCell = 1 << 16;         // channels that share a plane of a grid
constexpr std::uint64_t kMostListed = 1 << 21;  // numbers whose addresses are compared one by one
constexpr std::uint64_t kMostGathered = 64;  // ciphertexts of a table, and of a skewed matrix

/// Counts and addresses of a layout that was checked are at most 2^28: memory of 32 bits holds
/// them.
constexpr std::size_t in_memory(std::uint64_t x) { return static_cast<std::size_t>(x); }

bool is_power_of_two(std::uint64_t x, std::uint64_t most) {
  return x >= 1 && x <= most && (x & (x - 1)) == 0;
}

/// The product, or something above `most` if it is larger.
std::uint64_t product(std::span<const std::uint64_t> factors, std::uint64_t most) {
  std::uint64_t out = 1;
  for (const std::uint64_t x : factors) {
    if (x > most / out) return most + 1;
    out *= x;
  }
  return out;
}

/// An array whose first axis lies on planes and whose others lie on a grid.
struct Grid {
  explicit Grid(const Layout& layout)
      : channels(layout.shape.empty() ? 1 : layout.shape[0]),
        gap(layout.gap),
        sizes(layout.shape.begin() + (layout.shape.empty() ? 0 : 1), layout.shape.end()),
        pitches(sizes.size() + 1, 1) {
    for (std::size_t a = sizes.size(); a > 0; --a) pitches[a - 1] = pitches[a] * layout.grid[a - 1];
    for (std::size_t a = 0; a < sizes.size(); ++a) cell *= gap;
  }

  /// The address of a channel's number at the first place of every axis.
  std::uint64_t first(std::uint64_t channel) const {
    std::uint64_t address = channel / cell * pitches[0], inside = channel % cell;
    for (std::size_t a = sizes.size(); a > 0; --a) {
      address += inside % gap * pitches[a];
      inside /= gap;
    }
    return address;
  }
  /// How far behind it the number at the last place of every axis lies.
  std::uint64_t reach() const {
    std::uint64_t out = 0;
    for (std::size_t a = 0; a < sizes.size(); ++a) out += (sizes[a] - 1) * gap * pitches[a + 1];
    return out;
  }
  std::uint64_t places() const {
    std::uint64_t out = 1;
    for (const std::uint64_t size : sizes) out *= size;
    return out;
  }

  std::uint64_t channels, gap, cell = 1;
  std::vector<std::uint64_t> sizes, pitches;  // pitches[a + 1]: of axis a; pitches[0]: of planes
};

/// Calls visit(address) for every number in C order.
template <class Visit>
void each_grid_address(const Grid& grid, const Visit& visit) {
  const std::size_t axes = grid.sizes.size();
  const std::uint64_t row = axes == 0 ? 1 : grid.sizes[axes - 1];
  const std::uint64_t rows = grid.places() / row;
  std::vector<std::uint64_t> place(axes, 0);
  for (std::uint64_t channel = 0; channel < grid.channels; ++channel) {
    const std::uint64_t first = grid.first(channel);
    std::uint64_t at = first;
    for (std::uint64_t k = 0; k < rows; ++k) {
      for (std::uint64_t x = 0; x < row; ++x) visit(at + x * grid.gap);
      // The next row: the last axis but one that has not reached its end goes on, and those behind
      // it begin anew.
      for (std::size_t a = axes < 2 ? 0 : axes - 1; a > 0; --a) {
        const std::uint64_t step = grid.gap * grid.pitches[a];
        if (++place[a - 1] < grid.sizes[a - 1]) {
          at += step;
          break;
        }
        place[a - 1] = 0;
        at -= (grid.sizes[a - 1] - 1) * step;
      }
    }
  }
}

template <class Visit>
void each_address(const Layout& layout, const Visit& visit) {
  switch (layout.kind) {
    case Layout::Kind::grid: each_grid_address(Grid(layout), visit); return;
    case Layout::Kind::repeated:
      for (std::uint64_t k = 0, n = layout.size(); k < n; ++k) visit(k * layout.width);
      return;
    case Layout::Kind::skewed:
      for (std::uint64_t row = 0; row < layout.shape[0]; ++row) {
        for (std::uint64_t column = 0; column < layout.shape[1]; ++column) {
          const std::uint64_t chunk = (column / layout.width - row) & (layout.count - 1);
          visit(chunk * layout.slots + row * layout.width + column % layout.width);
        }
      }
      return;
    case Layout::Kind::gathered: {
      std::vector<std::uint64_t> first(in_memory(layout.size()), 0);
      for (std::size_t at = layout.table.size(); at > 0; --at) {
        if (layout.table[at - 1] >= 0)
          first[static_cast<std::size_t>(layout.table[at - 1])] = at - 1;
      }
      for (const std::uint64_t at : first) visit(at);
    }
  }
}

// Two numbers (plane, p_0, p_1, ..) and (plane', p'_0, ..) of one address differ by a solution of
//     (plane - plane') grid_0 grid_1 .. + (p_0 - p'_0) grid_1 .. + .. + (p_last - p'_last) = 0,
// where p_a is below size_a gap. The last axis in which they differ contributes a multiple j grid_a
// of its grid, with 1 <= j up to a sign. It is carried to the axis before, and so on: the carries
// that are possible are an interval at each axis. The planes take the last carry. This finds out
// whether two numbers of whole planes share a slot, without a list of them. It is true for more if
// the last plane has not all of its channels.
bool may_meet(const Grid& grid, std::span<const std::uint64_t> sizes) {
  using Carry = std::int64_t;
  // The largest difference.
  const Carry planes = static_cast<Carry>((grid.channels - 1) / grid.cell);
  const std::uint64_t fine = grid.channels == 1 ? 0 : grid.gap - 1;
  const auto widest = [&](std::size_t axis) {
    return static_cast<Carry>((grid.sizes[axis] - 1) * grid.gap + fine);
  };
  const auto up = [](Carry x, Carry y) { return x >= 0 ? (x + y - 1) / y : -(-x / y); };
  const auto down = [](Carry x, Carry y) { return x >= 0 ? x / y : -((-x + y - 1) / y); };
  for (std::size_t start = grid.sizes.size(); start > 0; --start) {
    Carry low = 1, high = widest(start - 1) / static_cast<Carry>(sizes[start - 1]);
    for (std::size_t a = start - 1; a > 0 && low <= high; --a) {
      const Carry size = static_cast<Carry>(sizes[a - 1]);
      low = up(low - widest(a - 1), size);
      high = down(high + widest(a - 1), size);
    }
    if (low <= high && low <= planes && high >= -planes) return true;
  }
  return false;
}

void check_grid(const Layout& layout, std::uint64_t most_ciphertexts) {
  check_that(is_power_of_two(layout.period, layout.slots),
             "period: must be a power of two up to the slots");
  check_that(layout.gap >= 1 && layout.gap <= kMostGap, "gap: must be a whole number from 1 to 64");
  const std::size_t axes = layout.shape.empty() ? 0 : layout.shape.size() - 1;
  check_that(
      layout.grid.size() == axes &&
          std::ranges::all_of(layout.grid, [](auto x) { return x >= 1 && x <= kMostNumbers; }),
      "grid: must have the sizes of all axes but the first, and not too many numbers");
  std::vector<std::uint64_t> all(layout.grid);
  if (!layout.shape.empty()) all.push_back(layout.shape[0]);
  check_that(product(all, kMostNumbers) <= kMostNumbers,
             "grid: must have the sizes of all axes but the first, and not too many numbers");
  std::uint64_t cell = 1;
  for (std::size_t a = 0; a < axes; ++a) {
    cell *= layout.gap;
    check_that(cell <= kMostCell, "gap: is too large for so many axes");
  }
  const std::uint64_t ciphertexts = layout.ciphertexts();
  check_that(ciphertexts > 1 || layout.extent() <= layout.period,
             "period: must be as long as the array");
  check_that(ciphertexts == 1 || layout.period == layout.slots,
             "period: an array of several ciphertexts does not repeat");
  check_that(ciphertexts <= most_ciphertexts, "laid: takes more ciphertexts than a message holds");
  const Grid grid(layout);
  if (!may_meet(grid, layout.grid)) return;
  check_that(grid.channels % grid.cell != 0, "laid: two numbers lie in one slot");
  check_that(layout.size() <= kMostListed,
             "laid: has too many numbers to tell whether two share a slot");
  std::vector<bool> taken(in_memory(layout.extent()), false);
  each_grid_address(grid, [&](std::uint64_t at) {
    check_that(!taken[in_memory(at)], "laid: two numbers lie in one slot");
    taken[in_memory(at)] = true;
  });
}

void check_repeated(const Layout& layout, std::uint64_t most_ciphertexts) {
  check_that(is_power_of_two(layout.period, layout.slots),
             "period: must be a power of two up to the slots");
  check_that(is_power_of_two(layout.width, layout.slots),
             "copies: must be a power of two up to the slots");
  const std::uint64_t extent = layout.size() * layout.width;  // at most 2^24 2^16
  check_that(extent <= layout.period || (layout.period == layout.slots && extent <= kMostNumbers),
             "copies: the array has more of them than there is room for");
  check_that(layout.ciphertexts() <= most_ciphertexts,
             "laid: takes more ciphertexts than a message holds");
}

void check_skewed(const Layout& layout) {
  check_that(
      is_power_of_two(layout.count, layout.slots) && is_power_of_two(layout.width, layout.slots),
      "skew: must be two powers of two up to the slots");
  check_that(layout.shape.size() == 2 && layout.count > 1 && layout.count <= kMostGathered,
             "skew: an array of this shape is not skewed");
  check_that(layout.shape[1] <= layout.count * layout.width &&
                 layout.shape[0] <= layout.slots / layout.width,
             "skew: the array has more rows or columns than there is room for");
}

void check_gathered(const Layout& layout) {
  check_that(!layout.table.empty() && layout.table.size() % layout.slots == 0 &&
                 layout.table.size() / layout.slots <= kMostGathered,
             "table: has other sizes than the ciphertexts");
  const std::uint64_t size = layout.size();
  check_that(size <= layout.table.size(), "table: names numbers that the array does not have");
  std::vector<bool> seen(in_memory(size), false);
  for (const std::int32_t number : layout.table) {
    check_that(number >= -1 && number < static_cast<std::int64_t>(size),
               "table: names numbers that the array does not have");
    if (number >= 0) seen[static_cast<std::size_t>(number)] = true;
  }
  check_that(std::ranges::find(seen, false) == seen.end(), "table: leaves out a number");
}

}  // namespace

std::uint64_t Layout::size() const {
  return product(shape, std::numeric_limits<std::uint64_t>::max() - 1);
}

std::uint64_t Layout::extent() const {
  switch (kind) {
    case Kind::grid: {
      // An address grows with every place. Whole cells of channels reach equally far, so that one
      // of the last two reaches farthest.
      const Grid all(*this);
      const std::uint64_t cells = (all.channels - 1) / all.cell;
      std::uint64_t largest = 0;
      for (std::uint64_t c = cells == 0 ? 0 : (cells - 1) * all.cell; c < all.channels; ++c) {
        largest = std::max(largest, all.first(c));
      }
      return largest + all.reach() + 1;
    }
    case Kind::repeated: return (size() - 1) * width + 1;
    case Kind::skewed: {
      std::uint64_t largest = 0;
      each_address(*this, [&](std::uint64_t at) { largest = std::max(largest, at); });
      return largest + 1;
    }
    case Kind::gathered: break;
  }
  return table.size();
}

std::uint64_t Layout::ciphertexts() const {
  switch (kind) {
    case Kind::skewed: return count;
    case Kind::gathered: return table.size() / slots;
    case Kind::grid:
    case Kind::repeated: break;
  }
  return (extent() - 1) / slots + 1;
}

std::vector<std::uint64_t> Layout::addresses() const {
  std::vector<std::uint64_t> out;
  out.reserve(in_memory(size()));
  each_address(*this, [&](std::uint64_t at) { out.push_back(at); });
  return out;
}

namespace {

/// Calls visit(number, address) for every slot that holds a number, copies included.
template <class Visit>
void each_slot(const Layout& layout, const Visit& visit) {
  if (layout.kind == Layout::Kind::gathered) {
    for (std::size_t at = 0; at < layout.table.size(); ++at) {
      if (layout.table[at] >= 0) visit(static_cast<std::uint64_t>(layout.table[at]), at);
    }
    return;
  }
  const bool again = layout.kind != Layout::Kind::skewed && layout.ciphertexts() == 1;
  const std::uint64_t end = again ? layout.slots : 1, step = again ? layout.period : 1;
  const std::uint64_t width = layout.kind == Layout::Kind::repeated ? layout.width : 1;
  std::uint64_t number = 0;
  each_address(layout, [&](std::uint64_t address) {
    for (std::uint64_t start = 0; start < end; start += step) {
      for (std::uint64_t k = 0; k < width; ++k) visit(number, address + start + k);
    }
    ++number;
  });
}

}  // namespace

std::vector<std::int32_t> Layout::contents() const {
  std::vector<std::int32_t> out(in_memory(ciphertexts() * slots), -1);
  each_slot(*this, [&](std::uint64_t number, std::uint64_t address) {
    out[in_memory(address)] = static_cast<std::int32_t>(number);
  });
  return out;
}

void Layout::check(std::uint64_t most_ciphertexts) const {
  check_that(is_power_of_two(slots, std::uint64_t{1} << 16), "lanes: leave no slots");
  check_that(shape.size() <= kMostAxes &&
                 std::ranges::all_of(shape, [](std::uint64_t x) { return x >= 1; }) &&
                 product(shape, kMostNumbers) <= kMostNumbers,
             "laid: has an empty axis, too many axes or too many numbers");
  switch (kind) {
    case Kind::grid: check_grid(*this, most_ciphertexts); return;
    case Kind::repeated: check_repeated(*this, most_ciphertexts); return;
    case Kind::skewed: check_skewed(*this); return;
    case Kind::gathered: check_gathered(*this); return;
  }
  fail("kind: is unknown");
}

void pack(const Layout& layout, std::span<const double> numbers, std::span<double> out,
          std::size_t pitch, std::size_t lanes, std::size_t lane) {
  const std::size_t ciphertexts = in_memory(layout.ciphertexts());
  require<InternalError>(numbers.size() == layout.size() && pitch >= layout.slots * lanes &&
                             lane < lanes &&
                             out.size() >= (ciphertexts - 1) * pitch + layout.slots * lanes,
                         "pack: the slots have another size than the layout");
  for (std::size_t c = 0; c < ciphertexts; ++c) {
    for (std::size_t k = 0; k < layout.slots; ++k) out[c * pitch + k * lanes + lane] = 0;
  }
  const int log_slots = std::countr_zero(layout.slots);
  const std::uint64_t mask = layout.slots - 1;
  each_slot(layout, [&](std::uint64_t number, std::uint64_t address) {
    out[in_memory(address >> log_slots) * pitch + in_memory(address & mask) * lanes + lane] =
        numbers[in_memory(number)];
  });
}

void unpack(const Layout& layout, std::span<const double> slots, std::size_t pitch,
            std::size_t lanes, std::size_t lane, std::span<double> numbers) {
  require<InternalError>(
      numbers.size() == layout.size() && lane < lanes &&
          slots.size() >= (layout.ciphertexts() - 1) * pitch + layout.slots * lanes,
      "unpack: the slots have another size than the layout");
  const int log_slots = std::countr_zero(layout.slots);
  const std::uint64_t mask = layout.slots - 1;
  std::size_t number = 0;
  each_address(layout, [&](std::uint64_t address) {
    numbers[number++] =
        slots[in_memory(address >> log_slots) * pitch + in_memory(address & mask) * lanes + lane];
  });
}

}  // namespace jali::client
