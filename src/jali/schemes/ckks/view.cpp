#include "jali/schemes/ckks/view.h"

#include <bit>
#include <string>

#include "jali/base/error.h"

namespace jali::ckks {

namespace {

constexpr std::size_t kMostAddresses = std::size_t{1} << 31;

struct Dense {
  View view;
  std::size_t vectors = 1;
};

Dense dense(std::span<const std::size_t> shape, std::size_t slots) {
  require<InvalidArgument>(shape.size() <= View::kMostAxes, [&] {
    return "an array of " + std::to_string(shape.size()) + " axes: the most are " +
           std::to_string(View::kMostAxes);
  });
  Dense out;
  out.view.axes.resize(shape.size());
  std::size_t stride = 1;  // a power of two up to `slots`, or a multiple of them
  std::size_t span = 1;    // addresses of what lies within one step of the next axis
  for (std::size_t k = shape.size(); k-- > 0;) {
    require<InvalidArgument>(shape[k] > 0, "an array without elements cannot be encrypted");
    require<InvalidArgument>(shape[k] <= kMostAddresses / stride, [&] {
      return "an array of more than 2^31 slots: encrypt it in parts";
    });
    out.view.axes[k] = {static_cast<std::uint32_t>(shape[k]), static_cast<std::int32_t>(stride)};
    span = stride * shape[k];
    stride = span <= slots ? std::bit_ceil(span) : (span + slots - 1) / slots * slots;
  }
  out.vectors = (span + slots - 1) / slots;
  return out;
}

}  // namespace

std::size_t View::size() const {
  std::size_t out = 1;
  for (const Axis& axis : axes) out *= axis.count;
  return out;
}

bool is_within(const View& view, std::size_t slots, std::size_t batch) {
  const bool periodic = view.period != 0;
  if (periodic && (!std::has_single_bit(view.period) || view.period > slots || batch != 1)) {
    return false;
  }
  if (view.axes.size() > View::kMostAxes) return false;
  const std::size_t end = periodic ? view.period : slots * batch;
  if (end > kMostAddresses) return false;
  std::int64_t low = view.first, high = view.first;
  std::size_t size = 1;
  for (const View::Axis& axis : view.axes) {
    // With at most 2^31 addresses, neither of these overflows.
    if (axis.count == 0 || axis.count > end || (axis.stride == 0 && axis.count > 1)) return false;
    size *= axis.count;
    if (size > end) return false;
    const std::int64_t reach = static_cast<std::int64_t>(axis.count - 1) * axis.stride;
    (reach < 0 ? low : high) += reach;
  }
  return low >= 0 && high < static_cast<std::int64_t>(end);
}

View dense_view(std::span<const std::size_t> shape, std::size_t slots) {
  return dense(shape, slots).view;
}

std::size_t vectors_of_dense(std::span<const std::size_t> shape, std::size_t slots) {
  return dense(shape, slots).vectors;
}

}  // namespace jali::ckks
