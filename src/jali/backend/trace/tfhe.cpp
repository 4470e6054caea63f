// Records the operations of TFHE.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "jali/backend/tfhe_ops.h"
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

std::size_t bytes(ConstLweView x) {
  return x.count * (x.dimension.value + 1) * torus_bytes(x.torus);
}

class TraceTfhe final : public TfheOps {
 public:
  TraceTfhe(std::shared_ptr<const TfheOps> inner, std::shared_ptr<Trace> sink)
      : TfheOps(inner->device()),
        inner_(std::move(inner)),
        config_(inner_->config()),
        recorder_(*device(), std::move(sink)) {}

  std::string name() const override { return "trace(" + inner_->name() + ")"; }
  const TfheConfig& config() const override { return config_; }

  std::size_t rotation_key_bytes() const override { return inner_->rotation_key_bytes(); }
  void prepare_rotation_key(void* out, const void* ggsws, std::size_t first,
                            std::size_t count) const override {
    Record r = record("prepare_rotation_key", count);
    read(r, ggsws, count * config_.units() * config_.ggsw_words() * torus_bytes(config_.torus));
    write(r, out, rotation_key_bytes() / config_.steps() * count);
    recorder_.run(std::move(r), [&] { inner_->prepare_rotation_key(out, ggsws, first, count); });
  }
  std::size_t switch_key_bytes() const override { return inner_->switch_key_bytes(); }
  void prepare_switch_key(void* out, const void* rows) const override {
    const auto levels = static_cast<std::size_t>(config_.switch_gadget.levels);
    Record r = record("prepare_switch_key", config_.large().value * levels);
    read(r, rows, config_.large().value * levels * (config_.n.value + 1) * sizeof(std::uint32_t));
    write(r, out, switch_key_bytes());
    recorder_.run(std::move(r), [&] { inner_->prepare_switch_key(out, rows); });
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
    read(r, in.data, bytes(in));
    write(r, out.data, out.count * glwe_bytes());
    recorder_.run(std::move(r), [&] { inner_->blind_rotate(out, in, tables, rotation_key); });
  }
  void combine(LweView out, ConstLweView in, const LweCombination& combination) const override {
    Record r = record("combine", out.count);
    r.shape.set("terms", u64{combination.weight.size()});
    r.mults = combination.weight.size() * (in.dimension.value + 1);
    add_rows(r, out, in);
    read(r, combination.begin.data(), combination.begin.size_bytes());
    read(r, combination.column.data(), combination.column.size_bytes());
    read(r, combination.weight.data(), combination.weight.size_bytes());
    read(r, combination.constant.data(), combination.constant.size_bytes());
    recorder_.run(std::move(r), [&] { inner_->combine(out, in, combination); });
  }
  void extract(LweView out, ConstGlweView in, std::span<const std::uint32_t> coefficients,
               std::size_t per) const override {
    Record r = record("extract", out.count);
    r.shape.set("per", u64{per});
    read(r, in.data, in.count * glwe_bytes());
    write(r, out.data, bytes(out));
    recorder_.run(std::move(r), [&] { inner_->extract(out, in, coefficients, per); });
  }

 private:
  Record record(const char* op, std::size_t batch) const {
    Record r;
    r.op = op;
    r.shape.set("n", u64{config_.n.value});
    r.shape.set("k", u64{config_.k.value});
    r.shape.set("N", u64{config_.N.value});
    r.shape.set("torus", static_cast<u64>(torus_bits(config_.torus)));
    r.shape.set("rotation", std::string(name_of(config_.rotation)));
    r.shape.set("group", static_cast<u64>(config_.group));
    r.shape.set("rotation_gadget", list_of(config_.rotation_gadget));
    r.shape.set("switch_gadget", list_of(config_.switch_gadget));
    r.shape.set("batch", u64{batch});
    return r;
  }
  std::size_t glwe_bytes() const {
    return (config_.k.value + 1) * config_.N.value * torus_bytes(config_.torus);
  }
  static void add_rows(Record& r, LweView out, ConstLweView in) {
    read(r, in.data, bytes(in));
    write(r, out.data, bytes(out));
  }
  void add_switch(Record& r, std::size_t count, const void* key) const {
    r.mults += count * cost::lwe_key_switch(config_);
    read(r, key, switch_key_bytes());
  }
  void add_rotation(Record& r, std::size_t count, const TableView& tables, const void* key) const {
    const std::size_t taken = tables.of_input.empty() ? 1 : tables.count;
    r.shape.set("steps", u64{config_.steps()});
    r.shape.set("tables", u64{taken});
    r.shape.set("encrypted", tables.encrypted);
    r.shape.set("log_many", static_cast<u64>(tables.log_many));
    r.complex_butterflies += count * cost::rotation_butterflies(config_);
    r.complex_products += count * cost::rotation_products(config_);
    read(r, tables.data,
         taken * (tables.encrypted ? glwe_bytes() : glwe_bytes() / (config_.k.value + 1)));
    read(r, key, rotation_key_bytes());
  }

  const std::shared_ptr<const TfheOps> inner_;
  const TfheConfig& config_;
  const Recorder recorder_;
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
