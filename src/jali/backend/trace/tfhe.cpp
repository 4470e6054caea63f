// Records the operations of TFHE.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "jali/backend/tfhe_ops.h"
#include "jali/backend/trace/copies.h"
#include "jali/backend/trace/cost.h"
#include "jali/backend/trace/recorder.h"
#include "jali/backend/trace/trace.h"
#include "jali/base/error.h"

namespace jali::backend {

namespace trace {
namespace {

using u64 = std::uint64_t;

const char* name_of(Rotation rotation) {
  switch (rotation) {
    case Rotation::classic: return "classic";
    case Rotation::multi_bit: return "multi_bit";
    case Rotation::block_binary: return "block_binary";
  }
  return "";
}

Shape::List list_of(const Gadget& gadget) {
  return {static_cast<u64>(gadget.base_log), static_cast<u64>(gadget.levels)};
}

/// What the header of a trace says of an engine.
Shape header_of(const TfheOps& engine) {
  const TfheConfig& config = engine.config();
  Shape out;
  out.set("scheme", std::string("tfhe"));
  out.set("library", std::string("jali ") + JALI_VERSION);
  out.set("engine", engine.name());
  out.set("n", u64{config.n.value});
  out.set("k", u64{config.k.value});
  out.set("N", u64{config.N.value});
  out.set("torus", static_cast<u64>(torus_bits(config.torus)));
  out.set("rotation", std::string(name_of(config.rotation)));
  out.set("group", static_cast<u64>(config.group));
  out.set("rotation_gadget", list_of(config.rotation_gadget));
  out.set("switch_gadget", list_of(config.switch_gadget));
  return out;
}

std::size_t bytes(ConstLweView x) {
  return x.count * (x.dimension.value + 1) * torus_bytes(x.torus);
}

class TraceTfhe final : public TfheOps {
 public:
  TraceTfhe(std::shared_ptr<const TfheOps> inner, std::shared_ptr<Trace> sink)
      : TfheOps(inner->device()),
        inner_(std::move(inner)),
        config_(inner_->config()),
        recorder_(*device(), std::move(sink), header_of(*inner_)) {}

  std::string name() const override { return "trace(" + inner_->name() + ")"; }
  const TfheConfig& config() const override { return config_; }
  device::Memory& copies() const override { return *copies_; }
  std::size_t width() const override { return inner_->width(); }

  // Not recorded: operands that arrive are no part of the computation.
  void copy_in(void* out, const void* host, std::size_t bytes) const override {
    inner_->copy_in(out, host, bytes);
  }
  void copy_in_seeded(LweView out, const SeededKey& rows) const override {
    inner_->copy_in_seeded(out, rows);
  }

  std::size_t rotation_key_bytes() const override { return inner_->rotation_key_bytes(); }
  void prepare_rotation_key(void* out, const void* ggsws, std::size_t first,
                            std::size_t count) const override {
    Record r = record("prepare_rotation_key", count);
    recorder_.read(r, Kind::host, ggsws,
                   count * config_.units() * config_.ggsw_words() * torus_bytes(config_.torus));
    recorder_.write(r, Kind::key, part(out, first), rotation_key_bytes() / config_.steps() * count);
    recorder_.run(std::move(r), [&] { inner_->prepare_rotation_key(out, ggsws, first, count); });
  }
  void prepare_seeded_rotation_key(void* out, const SeededKey& key, std::size_t first,
                                   std::size_t count) const override {
    const KeyShape shape = rotation_key_shape(config_);
    const std::size_t step = shape.rows / config_.steps() * shape.body_bytes;
    Record r = record("prepare_seeded_rotation_key", count);
    recorder_.read(r, Kind::host, static_cast<const std::byte*>(key.bodies) + first * step,
                   count * step);
    recorder_.write(r, Kind::key, part(out, first), rotation_key_bytes() / config_.steps() * count);
    recorder_.run(std::move(r),
                  [&] { inner_->prepare_seeded_rotation_key(out, key, first, count); });
  }
  std::size_t switch_key_bytes() const override { return inner_->switch_key_bytes(); }
  void prepare_switch_key(void* out, const void* rows) const override {
    const auto levels = static_cast<std::size_t>(config_.switch_gadget.levels);
    Record r = record("prepare_switch_key", config_.large().value * levels);
    recorder_.read(r, Kind::host, rows,
                   config_.large().value * levels * (config_.n.value + 1) * sizeof(std::uint32_t));
    recorder_.write(r, Kind::key, out, switch_key_bytes());
    recorder_.run(std::move(r), [&] { inner_->prepare_switch_key(out, rows); });
  }
  void prepare_seeded_switch_key(void* out, const SeededKey& key) const override {
    const KeyShape shape = switch_key_shape(config_);
    Record r = record("prepare_seeded_switch_key", shape.rows);
    recorder_.read(r, Kind::host, key.bodies, shape.rows * shape.body_bytes);
    recorder_.write(r, Kind::key, out, switch_key_bytes());
    recorder_.run(std::move(r), [&] { inner_->prepare_seeded_switch_key(out, key); });
  }

  void prepare_seeded_packing_key(void* out, LweDimension from,
                                  const SeededKey& key) const override {
    const KeyShape shape = packing_key_shape(config_, from);
    Record r = record("prepare_seeded_packing_key", shape.rows);
    recorder_.read(r, Kind::host, key.bodies, shape.rows * shape.body_bytes);
    recorder_.write(r, Kind::key, out, shape.rows * shape.row_bytes());
    recorder_.run(std::move(r), [&] { inner_->prepare_seeded_packing_key(out, from, key); });
  }

  void key_switch(LweView out, ConstLweView in, const void* switch_key) const override {
    Record r = record("key_switch", in.count);
    add_switch(r, in.count, switch_key);
    add_rows(r, out, in);
    recorder_.run(std::move(r), [&] { inner_->key_switch(out, in, switch_key); });
  }
  void bootstrap(LweView out, ConstLweView in, const TableView& tables,
                 const void* rotation_key) const override {
    Record r = record("bootstrap", in.count);
    add_rotation(r, in.count, tables, rotation_key);
    add_rows(r, out, in);
    recorder_.run(std::move(r), [&] { inner_->bootstrap(out, in, tables, rotation_key); });
  }
  void switch_bootstrap(LweView out, ConstLweView in, const TableView& tables,
                        const void* switch_key, const void* rotation_key) const override {
    Record r = record("switch_bootstrap", in.count);
    add_rotation(r, in.count, tables, rotation_key);
    add_switch(r, in.count, switch_key);
    add_rows(r, out, in);
    recorder_.run(std::move(r),
                  [&] { inner_->switch_bootstrap(out, in, tables, switch_key, rotation_key); });
  }
  void bootstrap_switch(LweView out, ConstLweView in, const TableView& tables,
                        const void* switch_key, const void* rotation_key) const override {
    Record r = record("bootstrap_switch", in.count);
    add_rotation(r, in.count, tables, rotation_key);
    add_switch(r, out.count, switch_key);
    add_rows(r, out, in);
    recorder_.run(std::move(r),
                  [&] { inner_->bootstrap_switch(out, in, tables, switch_key, rotation_key); });
  }
  void blind_rotate(GlweView out, ConstLweView in, const TableView& tables,
                    const void* rotation_key) const override {
    Record r = record("blind_rotate", in.count);
    add_rotation(r, in.count, tables, rotation_key);
    recorder_.read(r, Kind::ciphertext, in.data, bytes(in));
    recorder_.write(r, Kind::ciphertext, out.data, out.count * glwe_bytes());
    recorder_.run(std::move(r), [&] { inner_->blind_rotate(out, in, tables, rotation_key); });
  }
  void combine(LweView out, ConstLweView in, const LweCombination& combination) const override {
    Record r = record("combine", out.count);
    r.shape.set("terms", u64{combination.weight.size()});
    r.mults = combination.weight.size() * (in.dimension.value + 1);
    add_rows(r, out, in);
    read_host(r, combination.begin);
    read_host(r, combination.column);
    read_host(r, combination.weight);
    read_host(r, combination.constant);
    recorder_.run(std::move(r), [&] { inner_->combine(out, in, combination); });
  }
  void extract(LweView out, ConstGlweView in, std::span<const std::uint32_t> coefficients,
               std::size_t per) const override {
    Record r = record("extract", out.count);
    r.shape.set("per", u64{per});
    recorder_.read(r, Kind::ciphertext, in.data, in.count * glwe_bytes());
    recorder_.write(r, Kind::ciphertext, out.data, bytes(out));
    recorder_.run(std::move(r), [&] { inner_->extract(out, in, coefficients, per); });
  }
  void pack(GlweView out, ConstLweView in, std::span<const std::uint32_t> coefficients,
            std::size_t per, const void* packing_key) const override {
    const KeyShape shape = packing_key_shape(config_, in.dimension);
    Record r = record("pack", in.count);
    r.shape.set("per", u64{per});
    r.shape.set("dimension", u64{in.dimension.value});
    r.mults = in.count * cost::packing(config_, in.dimension);
    recorder_.read(r, Kind::key, packing_key, shape.rows * shape.row_bytes());
    recorder_.read(r, Kind::ciphertext, in.data, bytes(in));
    recorder_.write(r, Kind::ciphertext, out.data, out.count * glwe_bytes());
    recorder_.run(std::move(r), [&] { inner_->pack(out, in, coefficients, per, packing_key); });
  }

 private:
  static Record record(const char* op, std::size_t batch) {
    Record r;
    r.op = op;
    r.shape.set("batch", u64{batch});
    return r;
  }
  std::size_t glwe_bytes() const {
    return (config_.k.value + 1) * config_.N.value * torus_bytes(config_.torus);
  }
  template <class T>
  void read_host(Record& r, std::span<T> x) const {
    recorder_.read(r, Kind::host, x.data(), x.size_bytes());
  }
  /// Where the steps from `first` on lie in a rotation key.
  void* part(void* key, std::size_t first) const {
    return static_cast<std::byte*>(key) + rotation_key_bytes() / config_.steps() * first;
  }
  void add_rows(Record& r, LweView out, ConstLweView in) const {
    recorder_.read(r, Kind::ciphertext, in.data, bytes(in));
    recorder_.write(r, Kind::ciphertext, out.data, bytes(out));
  }
  void add_switch(Record& r, std::size_t count, const void* key) const {
    r.mults += count * cost::lwe_key_switch(config_);
    recorder_.read(r, Kind::key, key, switch_key_bytes());
  }
  void add_rotation(Record& r, std::size_t count, const TableView& tables, const void* key) const {
    const std::size_t taken = tables.of_input.empty() ? 1 : tables.count;
    r.shape.set("steps", u64{config_.steps()});
    r.shape.set("tables", u64{taken});
    r.shape.set("encrypted", tables.encrypted);
    r.shape.set("log_many", static_cast<u64>(tables.log_many));
    r.complex_butterflies += count * cost::rotation_butterflies(config_);
    r.complex_products += count * cost::rotation_products(config_);
    recorder_.read(
        r, tables.encrypted ? Kind::ciphertext : Kind::plaintext, tables.data,
        taken * (tables.encrypted ? glwe_bytes() : glwe_bytes() / (config_.k.value + 1)));
    recorder_.read(r, Kind::key, key, rotation_key_bytes());
  }

  const std::shared_ptr<const TfheOps> inner_;
  const TfheConfig& config_;
  const Recorder recorder_;
  const std::unique_ptr<device::Memory> copies_ =
      std::make_unique<TraceMemory>(recorder_, device()->memory(), record("copy", 1));
};

}  // namespace
}  // namespace trace

std::unique_ptr<TfheOps> make_trace_tfhe(std::shared_ptr<const TfheOps> inner,
                                         std::shared_ptr<Trace> sink) {
  require<InvalidArgument>(inner != nullptr && sink != nullptr,
                           "make_trace_tfhe needs an engine to record and a sink to record to");
  return std::make_unique<trace::TraceTfhe>(std::move(inner), std::move(sink));
}

}  // namespace jali::backend
