// The fuzz target of what comes after the loaders: hostile objects that a loader accepts go through every
// operation, in any order. With JALI_FUZZ_BOOTSTRAP bootstrapping is among them.
//
// An input is a list of choices: parameters, objects (hostile.h), then operations with their arguments. Every
// operation gives one jali::Error, or a result that is whole: its figures are numbers, its bytes are read
// again to the same bytes, and it decrypts. Everything else stops the program.
//
// A new public method of an evaluator joins the list below: tools/check_fuzz.py refuses its absence.
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "hostile.h"
#include "jali/api/jali.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace jali;
using ckks::Ciphertext;
using fuzz::Stream;
using Complex = std::complex<double>;

#ifdef JALI_FUZZ_BOOTSTRAP
constexpr bool kBootstrap = true;
#else
constexpr bool kBootstrap = false;
#endif

// Bounds of the work on one input.
constexpr int kOperations = kBootstrap ? 4 : 24;
constexpr std::size_t kObjects = 6;
constexpr std::size_t kMaxBatch = 8;
constexpr std::size_t kMaxInput = 512;

const char* operation = "loading";

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", operation, why.c_str());
  __builtin_trap();
}

ckks::Literal literal_of(Word word) {
  auto literal = testing::small_literal(word, word == Word::w64 ? 50 : 40, 3);
  if (kBootstrap) {
    literal.scale_bits = word == Word::w32 ? 50 : 40;
    literal.bootstrap.emplace();
    literal.bootstrap->cts_levels = 2;
    literal.bootstrap->stc_levels = 1;
    literal.bootstrap->stc_bits = literal.scale_bits;
    literal.bootstrap->head_bits = word == Word::w32 ? 6 : 0;
    if (word == Word::w52) literal.bootstrap->order = params::BootstrapOrder::slots_first;
  }
  return literal;
}

/// Parameters, honest keys, and plans of circuits that these keys serve.
struct World {
  testing::Objects o;
  fuzz::Forger forger;
  circuits::LinearTransform transform, prepared;
  circuits::MatVec product;
  std::shared_ptr<const ckks::Evaluator> evaluator;
  ckks::Decryptor decryptor;
  std::unique_ptr<bootstrap::Bootstrapper> bootstrapper;

  explicit World(Word word)
      : o(literal_of(word), {}, false),
        forger(o),
        transform(o.params, diagonals()),
        prepared(o.params, diagonals()),
        product(std::vector<double>(12, 0.25), 3, 4, o.params, {.bias = {1, 2, 3}}),
        decryptor(o.sk, o.ring) {
    std::set<int> rotations;
    for (int r = 1; r < static_cast<int>(o.params->slots()); r *= 2) rotations.insert(r);
    for (const auto& plan : {transform.rotations(), product.rotations()}) {
      rotations.insert(plan.begin(), plan.end());
    }
    const std::vector<int> list(rotations.begin(), rotations.end());
    rlwe::KeyGenerator generator(o.params, o.ring, testing::test_seed(9));
    std::optional<bootstrap::BootstrapPlan> plan;
    if (kBootstrap) {
      bootstrap::BootstrapperOptions options;
      options.log_slots = 3;
      plan.emplace(o.params, options);
    }
    auto keys = plan ? bootstrap::evaluation_keys(generator, *o.sk, {&*plan, 1}, list, true)
                     : generator.evaluation_keys(*o.sk, list, true);
    evaluator = std::make_shared<const ckks::Evaluator>(
        o.params, o.ring, std::make_shared<const rlwe::EvaluationKeys>(std::move(keys)));
    prepared.prepare(evaluator->encoder());
    if (plan) {
      bootstrapper = std::make_unique<bootstrap::Bootstrapper>(evaluator, std::move(*plan));
      bootstrapper->prepare();
    }
  }

 private:
  circuits::Diagonals diagonals() const {
    const std::vector<Complex> halves(o.params->slots(), 0.5);
    return {{0, halves}, {1, halves}, {-3, halves}};
  }
};

const World& world(std::size_t k) {
  static std::unique_ptr<World> all[3];
  constexpr Word kWords[] = {Word::w32, Word::w52, Word::w64};
  if (all[k] == nullptr) all[k] = std::make_unique<World>(kWords[k]);
  return *all[k];
}

/// One input on its way through the operations.
class Run {
 public:
  Run(const World& w, Stream& stream) : world(w), in(stream), evaluator(w.evaluator) {
    if (in.once_in(6)) {
      if (auto keys = w.forger.evaluation_keys(in)) {
        operation = "keys";
        evaluator = std::make_shared<const ckks::Evaluator>(
            w.o.params, w.o.ring, std::make_shared<const rlwe::EvaluationKeys>(std::move(*keys)));
      }
    }
    automatic.emplace(evaluator);
    for (std::size_t k = 1 + in.below(3); k > 0; --k) {
      if (auto x = w.forger.ciphertext(in)) pool.push_back(std::move(*x));
    }
    // Scales and levels are alike often enough only where one is the other.
    if (pool.empty() || in.once_in(2)) pool.push_back(w.o.ciphertext(w.o.params->depth()));
  }

  const World& world;
  Stream& in;
  std::shared_ptr<const ckks::Evaluator> evaluator;
  std::optional<ckks::AutoEvaluator> automatic;
  std::vector<Ciphertext> pool, made;

  const Ciphertext& any() { return pool[in.below(pool.size())]; }
  const ckks::Evaluator& ev() const { return *evaluator; }
  int level() { return in.once_in(8) ? in.integer() : static_cast<int>(in.below(5)); }
  int steps() { return in.once_in(4) ? in.integer() : 1 << in.below(10); }
  std::size_t count() {
    return in.once_in(4) ? static_cast<std::size_t>(in.integer()) : in.below(9);
  }
  double scale() {
    return in.once_in(3) ? in.number() : world.o.params->scale(static_cast<int>(in.below(4)));
  }

  std::vector<Complex> vector(const Ciphertext& x) {
    const std::size_t batch =
        in.once_in(3) ? in.below(4) : std::min<std::size_t>(x.batch(), kMaxBatch);
    const std::size_t slots = std::size_t{1} << x.log_slots;
    std::vector<Complex> v(batch * (in.once_in(3) ? in.below(8) : slots));
    for (std::size_t i = 0; i < std::min<std::size_t>(v.size(), 4); ++i) v[i] = in.complex();
    return v;
  }
  /// Of the shape of x where the input does not say otherwise.
  ckks::Plaintext plaintext(const Ciphertext& x) {
    if (in.once_in(2)) {
      if (auto p = world.forger.plaintext(in)) return std::move(*p);
    }
    const auto v = vector(x);
    return ev().encoder().encode(v, std::max<std::size_t>(x.batch(), 1), x.level,
                                 in.once_in(2) ? x.scale : scale(), x.log_slots);
  }

#ifdef JALI_FUZZ_BOOTSTRAP
  /// As bootstrapping was set up for.
  void pack(Ciphertext& x) const {
    x.log_slots = world.bootstrapper->plan().options().log_slots;
    x.packing.length = 0;
  }
#endif

  /// Looks at a result. Operands stay where they are until it is settled.
  void keep(Ciphertext x) {
    examine(x);
    if (x.batch() <= kMaxBatch && x.level <= world.o.params->depth()) made.push_back(std::move(x));
  }
  void settle() {
    for (Ciphertext& x : made) {
      if (pool.size() < kObjects) {
        pool.push_back(std::move(x));
      } else {
        pool[in.below(kObjects)] = std::move(x);
      }
    }
    made.clear();
  }
  void keep(std::vector<Ciphertext> all) {
    for (Ciphertext& x : all) keep(std::move(x));
  }

  void examine(const Ciphertext& x) const {
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
};

using Operation = std::pair<const char*, void (*)(Run&)>;

// The name is that of a report; the order is that of the headers.
constexpr Operation kOperationsOfAll[] = {
    // ckks::Evaluator
    {"has",
     [](Run& r) {
       const int steps = r.steps(), level = r.level();
       (void)r.ev().has_rotation(steps, level);
       (void)r.ev().has_galois(static_cast<std::uint64_t>(steps), level);
       (void)r.ev().has_relinearisation(level);
       (void)r.ev().has_encapsulation();
     }},
    {"copy",
     [](Run& r) {
       const Ciphertext& x = r.any();
       if (!r.ev().is_here(x)) stop("a loaded ciphertext is elsewhere");
       r.keep(r.ev().copy(x));
       r.keep(r.ev().bring(x));
       r.keep(r.ev().send_back(x));
     }},
    {"add", [](Run& r) { r.keep(r.ev().add(r.any(), r.any())); }},
    {"sub", [](Run& r) { r.keep(r.ev().sub(r.any(), r.any())); }},
    {"negate", [](Run& r) { r.keep(r.ev().negate(r.any())); }},
    {"add_plain",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.ev().add_plain(x, r.plaintext(x)));
     }},
    {"sub_plain",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.ev().sub_plain(x, r.plaintext(x)));
     }},
    {"add_scalar", [](Run& r) { r.keep(r.ev().add_scalar(r.any(), r.in.complex())); }},
    {"add_inplace",
     [](Run& r) {
       Ciphertext x = r.ev().copy(r.any());
       r.ev().add_inplace(x, r.in.once_in(4) ? x : r.any());
       r.keep(std::move(x));
     }},
    {"multiply_plain",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.ev().multiply_plain(x, r.plaintext(x)));
     }},
    {"multiply_scalar",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const Complex b = r.in.complex();
       r.keep(r.ev().multiply_scalar(x, b, r.scale()));
     }},
    {"multiply_integer",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.ev().multiply_integer(
           x, r.in.once_in(4) ? r.in.read<std::int64_t>() : r.in.integer()));
     }},
    {"multiply_i", [](Run& r) { r.keep(r.ev().multiply_i(r.any())); }},
    {"stack", [](Run& r) { r.keep(r.ev().stack(r.any(), r.any())); }},
    {"vectors",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const std::size_t first = r.count();
       r.keep(r.ev().vectors(x, first, r.count()));
     }},
    {"multiply", [](Run& r) { r.keep(r.ev().multiply(r.any(), r.any())); }},
    {"square", [](Run& r) { r.keep(r.ev().square(r.any())); }},
    {"relinearise", [](Run& r) { r.keep(r.ev().relinearise(r.any())); }},
    {"rescale", [](Run& r) { r.keep(r.ev().rescale(r.any())); }},
    {"relinearise_rescale", [](Run& r) { r.keep(r.ev().relinearise_rescale(r.any())); }},
    {"multiply_relinearise_rescale",
     [](Run& r) { r.keep(r.ev().multiply_relinearise_rescale(r.any(), r.any())); }},
    {"combine_rescale",
     [](Run& r) {
       ckks::Combination c;
       for (std::size_t k = r.in.below(3); k > 0; --k) {
         c.products.push_back({&r.any(), &r.any(), r.in.once_in(2) ? 2.0 : 1.0});
       }
       for (std::size_t k = r.in.below(3); k > 0; --k)
         c.multiples.push_back({&r.any(), r.in.number()});
       if (r.in.once_in(2)) c.constant = r.in.complex();
       const int level = r.level();
       const Ciphertext& like = r.any();
       r.keep(
           r.ev().combine_rescale(c, level, r.in.once_in(2) ? like.scale * like.scale : r.scale()));
     }},
    {"drop_to",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.ev().drop_to(x, r.level()));
     }},
    {"adjust",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const int level = r.level();
       const double scale = r.scale();
       r.keep(r.ev().adjust(x, level, scale, r.in.once_in(3) ? r.in.number() : 1));
     }},
    {"raise",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const int level = r.level(), depth = r.world.o.params->depth();
       r.keep(r.ev().raise(x, level < depth ? depth + level : level));
     }},
    {"rotate",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.ev().rotate(x, r.steps()));
     }},
    {"conjugate", [](Run& r) { r.keep(r.ev().conjugate(r.any())); }},
    {"automorphism",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.ev().automorphism(x, r.in.read<std::uint16_t>()));
     }},
    {"hoisting",
     [](Run& r) {
       const Ciphertext &x = r.any(), &y = r.any();
       const ckks::Hoisted a = r.ev().hoist(x), b = r.ev().hoist(y);
       r.keep(r.ev().rotate_hoisted(a, r.steps()));
       ckks::Extended sum = r.ev().rotate_extended(a, r.steps());
       const ckks::Extended term =
           r.in.once_in(2) ? r.ev().extend(y) : r.ev().rotate_extended(b, r.steps());
       r.ev().add_inplace(sum, term);
       const ckks::Extended* both[] = {&sum, &term};
       const int steps[] = {r.steps(), r.steps()};
       r.ev().rotate_accumulate(sum, both, steps);
       r.ev().rotate_accumulate(sum, r.in.once_in(4) ? sum : term, r.steps());
       const double scale = r.scale();
       const auto v = r.vector(x);
       const auto primes = sum.c0.primes();
       const ring::Poly diagonal = r.ev().encoder().encode_over(v, r.in.once_in(4) ? r.count() : 1,
                                                                primes, scale, x.log_slots);
       const ring::Poly* diagonals[] = {&diagonal, &diagonal};
       const ckks::Extended product =
           r.ev().multiply_accumulate(both, diagonals, scale, r.in.number(), r.in.number());
       r.keep(r.ev().reduce(r.in.once_in(2) ? sum : product));
       r.keep(r.ev().reduce_rescale(r.in.once_in(2) ? sum : product));
     }},

    // ckks::AutoEvaluator
    {"automatic add", [](Run& r) { r.keep(r.automatic->add(r.any(), r.any())); }},
    {"automatic sub", [](Run& r) { r.keep(r.automatic->sub(r.any(), r.any())); }},
    {"automatic negate", [](Run& r) { r.keep(r.automatic->negate(r.any())); }},
    {"automatic multiply", [](Run& r) { r.keep(r.automatic->multiply(r.any(), r.any())); }},
    {"automatic square", [](Run& r) { r.keep(r.automatic->square(r.any())); }},
    {"automatic product",
     [](Run& r) {
       const auto factor = [&] { return std::make_shared<const Ciphertext>(r.ev().copy(r.any())); };
       const auto a = factor(), b = r.in.once_in(2) ? a : factor();
       ckks::ProductSum sum = r.automatic->product(a, b);
       while (r.in.once_in(2)) {
         const ckks::ProductSum other = r.automatic->product(factor(), factor());
         if (r.in.once_in(4) || r.automatic->can_join(sum, other)) {
           sum = r.automatic->join(std::move(sum), other);
         }
       }
       if (r.in.once_in(2)) sum.constant = r.in.complex();
       r.keep(r.automatic->expand(sum));
       r.keep(r.automatic->settle(sum));
     }},
    {"automatic add_vector",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const auto v = r.vector(x);
       r.keep(r.automatic->add_vector(x, v, r.in.once_in(4) ? r.count() : x.batch()));
     }},
    {"automatic multiply_vector",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const auto v = r.vector(x);
       r.keep(r.automatic->multiply_vector(x, v, r.in.once_in(4) ? r.count() : x.batch()));
     }},
    {"automatic add_scalar",
     [](Run& r) { r.keep(r.automatic->add_scalar(r.any(), r.in.complex())); }},
    {"automatic multiply_scalar",
     [](Run& r) { r.keep(r.automatic->multiply_scalar(r.any(), r.in.complex())); }},
    {"automatic rotate",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.automatic->rotate(x, r.steps()));
     }},
    {"automatic conjugate", [](Run& r) { r.keep(r.automatic->conjugate(r.any())); }},
    {"automatic sum",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep(r.automatic->sum(x, r.in.once_in(2) ? r.count() : 0));
     }},
    {"automatic normalise",
     [](Run& r) {
       const Ciphertext& x = r.any();
       (void)r.automatic->effective_level(x);
       r.keep(r.automatic->normalise(x));
     }},

    // circuits
    {"linear transform",
     [](Run& r) {
       const Ciphertext& x = r.any();
       r.keep((r.in.once_in(2) ? r.world.transform : r.world.prepared).apply(r.ev(), x));
     }},
    {"new linear transform",
     [](Run& r) {
       const Ciphertext& x = r.any();
       circuits::Diagonals diagonals;
       for (std::size_t k = r.in.below(3); k > 0; --k) {
         auto v = r.vector(x);
         diagonals.insert_or_assign(r.steps(), std::move(v));
       }
       circuits::TransformOptions options;
       options.level = r.in.once_in(4) ? r.level() : x.level;
       options.log_slots = x.log_slots;
       options.input_scale = r.in.once_in(2) ? x.scale : r.in.number();
       if (r.in.once_in(4)) options.output_scale = r.in.number();
       r.keep(circuits::LinearTransform(r.world.o.params, std::move(diagonals), options)
                  .apply(r.ev(), x));
     }},
    {"matrix product",
     [](Run& r) {
       const Ciphertext* x = &r.any();
       r.keep(r.world.product.apply(r.ev(), {x, 1}));
     }},
    {"new matrix product",
     [](Run& r) {
       const Ciphertext* x = &r.any();
       const std::size_t m = r.in.below(4), n = r.in.below(4);
       std::vector<double> matrix(m * n, 0.5);
       if (!matrix.empty()) matrix[0] = r.in.number();
       circuits::MatVecOptions options;
       options.level = r.in.once_in(4) ? r.level() : x->level;
       options.log_slots = x->log_slots;
       options.input_scale = x->scale;
       if (r.in.once_in(3)) options.bias = {r.in.number()};
       r.keep(circuits::MatVec(matrix, m, n, r.world.o.params, options).apply(r.ev(), {x, 1}));
     }},
    {"slot sum",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const std::size_t stride = r.in.once_in(2) ? 1 : r.count();
       const circuits::SlotSum sum(r.world.o.params, stride, r.count(), x.level, x.log_slots,
                                   static_cast<int>(r.in.below(5)) * 2);
       r.keep(r.in.once_in(2) ? sum.apply(r.ev(), x) : sum.apply_rescale(r.ev(), x));
     }},
    {"polynomial",
     [](Run& r) {
       const Ciphertext& x = r.any();
       circuits::Polynomial p;
       p.basis = r.in.once_in(2) ? circuits::Basis::chebyshev : circuits::Basis::power;
       for (std::size_t k = r.in.below(6); k > 0; --k) p.coefficients.push_back(r.in.complex());
       if (r.in.once_in(3)) p.a = r.in.number(), p.b = r.in.number();
       r.keep(circuits::evaluate(r.ev(), x, p, r.in.once_in(3) ? r.in.number() : 0));
     }},

    // many at once
    {"batches",
     [](Run& r) {
       std::vector<const Ciphertext*> all;
       for (std::size_t k = r.in.below(4); k > 0; --k) all.push_back(&r.any());
       Ciphertext stacked = ckks::stack(r.ev(), all);
       std::vector<std::size_t> batches;
       for (const Ciphertext* x : all)
         batches.push_back(r.in.once_in(5) ? r.in.below(3) : x->batch());
       auto split = ckks::split(r.ev(), stacked, batches);
       r.keep(std::move(stacked));
       r.keep(std::move(split));
     }},
    {"batcher",
     [](Run& r) {
       std::vector<const Ciphertext*> all;
       for (std::size_t k = r.in.below(4); k > 0; --k) all.push_back(&r.any());
       const int steps = r.steps();
       ckks::Batcher batcher(
           r.evaluator, [&](const Ciphertext& x) { return r.automatic->rotate(x, steps); },
           r.in.below(4));
       auto out = batcher.run(all);
       r.keep(std::move(out));
     }},
    {"program",
     [](Run& r) {
       const Ciphertext* example = &r.any();
       const Complex factor = r.in.complex();
       ckks::Program program(
           r.evaluator,
           [&](std::span<const Ciphertext> x) {
             std::vector<Ciphertext> out;
             out.push_back(r.automatic->multiply_scalar(r.automatic->multiply(x[0], x[0]), factor));
             return out;
           },
           {&example, 1});
       const Ciphertext* other = &r.any();
       auto out = program.run({&other, 1});
       r.keep(std::move(out));
     }},

    // the client's side
    {"decryption",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const auto all = r.ev().encoder().decode_all(r.world.decryptor.decrypt(x));
       const auto check = r.in.once_in(2) ? ckks::Check::yes : ckks::Check::no;
       auto slots = ckks::decrypt(r.world.decryptor, r.ev().encoder(), x, check);
       slots.insert(slots.end(), all.begin(), all.end());
       for (const Complex z : slots) {
         if (std::isnan(z.real()) || std::isnan(z.imag())) stop("a decrypted slot is not a number");
       }
       ckks::ReleasePolicy policy;
       if (r.in.once_in(2)) policy.origin = ckks::BoundOrigin::derived;
       policy.error_bound = r.in.once_in(2) ? ckks::worst_case_noise(x) : r.in.number();
       policy.largest = r.in.once_in(2) ? x.estimate.peak : r.in.number();
       if (r.in.once_in(3)) policy.releases = r.in.number();
       if (r.in.once_in(3)) policy.statistical_bits = r.in.integer();
       for (const Complex z : ckks::release(r.world.decryptor, r.ev().encoder(), *r.world.o.ring, x,
                                            policy, r.in.seed())) {
         if (std::isnan(z.real()) || std::isnan(z.imag())) stop("a released slot is not a number");
       }
     }},
    {"encoding",
     [](Run& r) {
       const Ciphertext& x = r.any();
       const auto v = r.vector(x);
       const std::size_t batch = r.count();
       const int level = r.level(), log_slots = r.in.once_in(2) ? x.log_slots : r.in.integer();
       const ckks::Plaintext p = r.ev().encoder().encode(v, batch, level, r.scale(), log_slots);
       (void)r.ev().encoder().decode(p);
     }},
    {"plaintext",
     [](Run& r) {
       if (auto p = r.world.forger.plaintext(r.in)) {
         (void)r.ev().encoder().decode(*p);
         ckks::SecretEncryptor encryptor(r.world.o.sk, r.world.o.ring, r.in.seed());
         r.keep(encryptor.encrypt(*p, r.in.number()));
       }
     }},
    {"public key",
     [](Run& r) {
       if (auto key = r.world.forger.public_key(r.in)) {
         ckks::PublicEncryptor encryptor(std::make_shared<const rlwe::PublicKey>(std::move(*key)),
                                         r.world.o.ring, r.in.seed());
         r.keep(encryptor.encrypt(r.plaintext(r.any()), r.in.number()));
       }
     }},
#ifdef JALI_FUZZ_BOOTSTRAP
    {"bootstrap",
     [](Run& r) {
       Ciphertext x = r.ev().copy(r.any());
       if (!r.in.once_in(3)) r.pack(x);
       const int iterations = r.in.once_in(4) ? static_cast<int>(r.in.below(6)) : 1;
       r.keep(r.world.bootstrapper->apply(x, r.in.once_in(2) ? -1 : r.level(), {}, iterations));
     }},
    {"bootstrap a pair",
     [](Run& r) {
       Ciphertext x = r.ev().copy(r.any()), y = r.ev().copy(r.any());
       r.pack(x), r.pack(y);
       auto both = r.world.bootstrapper->apply_pair(x, y, r.in.once_in(2) ? -1 : r.level());
       r.keep(std::move(both.first));
       r.keep(std::move(both.second));
     }},
#endif
};

void run(Run& r) {
  for (int k = 0; k < kOperations && !r.in.empty(); ++k) {
    // Every other one is of bootstrapping, which is last in the list, where there is bootstrapping.
    const std::size_t count = std::size(kOperationsOfAll);
    const bool last = kBootstrap && r.in.once_in(2);
    const auto& [name, call] =
        kOperationsOfAll[last ? count - 1 - r.in.below(2) : r.in.below(count)];
    operation = name;
    try {
      call(r);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::internal) stop(error.what());
    }
    r.settle();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Stream in({data, std::min(size, kMaxInput)});
  operation = "loading";
  try {
    const World& w = world(in.below(3));
    Run r(w, in);
    for (const Ciphertext& x : r.pool) r.examine(x);
    run(r);
  } catch (const std::exception& error) {
    stop(std::string("an exception of another kind: ") + error.what());
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  max_size = std::min(max_size, kMaxInput);
  size = std::min(size, max_size);
  std::minstd_rand generator(seed);
  if (size < 16 || generator() % 16 == 0) {  // another input altogether
    size = std::min<std::size_t>(max_size, 64 + generator() % 256);
    for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::uint8_t>(generator() >> 8);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
