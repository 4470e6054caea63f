#include "jali/backend/secret/small_product.h"

#include <optional>
#include <utility>
#include <vector>

#include "jali/backend/cpu/secret/binary_product.h"
#include "jali/backend/cpu/secret/ntt_product.h"
#include "jali/base/error.h"

namespace jali::backend {

struct SmallRing::Transforms {
  explicit Transforms(std::size_t n) : ring(n) {}
  cpu::NttRing ring;
};

SmallRing::SmallRing(PolynomialSize N) : N_(N) {
  if (N.value >= cpu::NttRing::kLeastSize) transforms_ = std::make_unique<Transforms>(N.value);
}
SmallRing::~SmallRing() = default;

struct SmallFactors::Forms {
  std::optional<cpu::NttProduct> transforms;
  std::vector<cpu::BinaryProduct> plus, minus;  // if there are no transforms
};

SmallFactors::SmallFactors(const SmallRing& ring, std::span<const std::uint8_t> plus,
                           std::span<const std::uint8_t> minus)
    : N_(ring.N_.value) {
  require<InternalError>(plus.size() % N_ == 0 && (minus.empty() || minus.size() == plus.size()),
                         "SmallFactors: another number of bits");
  auto forms = std::make_unique<Forms>();
  if (ring.transforms_ != nullptr) {
    forms->transforms.emplace(ring.transforms_->ring, plus, minus);
  } else {
    for (std::size_t at = 0; at < plus.size(); at += N_) {
      forms->plus.emplace_back(plus.subspan(at, N_));
      if (!minus.empty()) forms->minus.emplace_back(minus.subspan(at, N_));
    }
  }
  forms_ = std::move(forms);
}
SmallFactors::~SmallFactors() = default;

void SmallFactors::add_products(std::span<std::uint64_t> acc,
                                std::span<const std::uint64_t> a) const {
  if (forms_->transforms) {
    forms_->transforms->add(acc, a);
    return;
  }
  require<InternalError>(a.size() == forms_->plus.size() * N_,
                         "SmallFactors: another number of words");
  for (std::size_t c = 0; c < forms_->plus.size(); ++c) {
    forms_->plus[c].add(acc, a.subspan(c * N_, N_));
  }
  std::vector<std::uint64_t> negative(forms_->minus.empty() ? 0 : N_);
  for (std::size_t c = 0; c < forms_->minus.size(); ++c) {
    for (std::size_t t = 0; t < N_; ++t) negative[t] = 0 - a[c * N_ + t];
    forms_->minus[c].add(acc, negative);
  }
}

}  // namespace jali::backend
