#include "run.h"

#include <cmath>

namespace jali::fuzz {

Run::Run(const World& w, Stream& stream) : world(w), in(stream), evaluator(w.evaluator) {
  if (in.once_in(6)) {
    if (auto keys = w.forger.evaluation_keys(in)) {
      operation = "keys";
      evaluator = std::make_shared<const ckks::Evaluator>(
          w.o.params, w.o.ring, std::make_shared<const rlwe::EvaluationKeys>(std::move(*keys)));
    }
  }
  automatic.emplace(evaluator);
  arrays.emplace(evaluator);
  for (std::size_t k = 1 + in.below(3); k > 0; --k) {
    if (auto x = w.forger.ciphertext(in)) pool.start(std::move(*x));
  }
  // Scales and levels are alike often enough only where one is the other.
  if (pool.empty() || in.once_in(2)) pool.start(w.o.ciphertext(w.o.params->depth()));
}

std::vector<Complex> Run::vector(const Ciphertext& x) {
  const std::size_t batch =
      in.once_in(3) ? in.below(4) : std::min<std::size_t>(x.batch(), kMaxBatch);
  const std::size_t slots = std::size_t{1} << x.log_slots;
  std::vector<Complex> v(batch * (in.once_in(3) ? in.below(8) : slots));
  for (std::size_t i = 0; i < std::min<std::size_t>(v.size(), 4); ++i) v[i] = in.complex();
  return v;
}

ckks::Plaintext Run::plaintext(const Ciphertext& x) {
  if (in.once_in(2)) {
    if (auto p = world.forger.plaintext(in)) return std::move(*p);
  }
  const auto v = vector(x);
  return ev().encoder().encode(v, std::max<std::size_t>(x.batch(), 1), x.level,
                               in.once_in(2) ? x.scale : scale(), x.log_slots);
}

void Run::keep(Ciphertext x) {
  examine(x);
  if (x.batch() <= kMaxBatch && x.level <= world.o.params->depth()) pool.add(std::move(x));
}

void Run::examine(const Ciphertext& x) const {
  const auto figure = [](double value, const char* what) {
    if (std::isnan(value)) stop(std::string(what) + " is not a number");
  };
  figure(x.estimate.variance, "the variance");
  figure(x.estimate.message, "the magnitude");
  figure(x.estimate.peak, "the peak");
  figure(x.estimate.error, "the bound on the error");
  figure(x.estimate.noise, "the bound on the noise");
  figure(ckks::worst_case_noise(x), "the worst noise");
  figure(ev().noise().precision_bits(x.estimate, x.scale), "the precision");
  const double worst = ckks::worst_case_error(x);
  figure(worst, "the worst error");
  if (!(x.scale > 0 && std::isfinite(x.scale))) stop("the scale is not a positive number");
  if (x.parts.size() < 2 || x.parts.size() > 3) stop("the result has lost its parts");
  if (x.level < 0 || x.level > world.o.params->top()) stop("the level does not exist");
  if (x.level > world.o.params->depth()) return;  // within bootstrapping: it is never sent
  const bool finite = std::isfinite(x.estimate.variance) && std::isfinite(x.estimate.message);
  try {
    const wire::Bytes bytes = wire::to_bytes(x);
    const Ciphertext back = wire::from_bytes<Ciphertext>(bytes, world.o.params, *world.o.ring);
    if (wire::to_bytes(back) != bytes) stop("the bytes are others after a round trip");
  } catch (const Error& error) {
    if (finite || error.code() != ErrorCode::invalid_argument) {
      stop(std::string("a result has no bytes: ") + error.what());
    }
  }
}

}  // namespace jali::fuzz
