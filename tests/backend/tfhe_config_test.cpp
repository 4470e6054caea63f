// What configurations and arguments are refused, and that the sentence names what to change.
#include <cmath>
#include <functional>
#include <limits>

#include "jali/base/error.h"
#include "tfhe_compare.h"

namespace jali::backend::test {
namespace {

/// The message of the InvalidArgument that it throws, or "".
std::string refusal(const std::function<void()>& run) {
  try {
    run();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TfheConfig plain() {
  TfheConfig config;
  config.n = LweDimension(24);
  config.k = GlweDimension(2);
  config.N = PolynomialSize(256);
  config.rotation_gadget = {8, 2};
  config.switch_gadget = {4, 3};
  return config;
}

TEST(TfheConfigTest, LegalOnesPassUnchanged) {
  const TfheConfig config = validated(plain());
  EXPECT_EQ(config.n, LweDimension(24));
  EXPECT_EQ(config.units(), 1u);
  TfheConfig multi = plain();
  multi.rotation = Rotation::multi_bit;
  multi.group = 3;
  EXPECT_EQ(validated(multi).units(), 7u);
  EXPECT_EQ(multi.steps(), 8u);
  multi.rotation = Rotation::block_binary;
  multi.group = 8;
  EXPECT_EQ(validated(multi).units(), 8u);
  TfheConfig edges = plain();
  edges.torus = Torus::t32;
  edges.rotation_gadget = {16, 2};
  edges.switch_gadget = {1, 32};
  edges.mean_bit = 1;
  edges.isa = "avx2";
  edges.transform = "ntt";
  edges.N = PolynomialSize(65536);
  EXPECT_NO_THROW(validated(edges));
}

TEST(TfheConfigTest, EveryWrongFieldIsNamed) {
  struct Case {
    const char* says;
    std::function<void(TfheConfig&)> spoil;
  };
  const Case cases[] = {
      {"torus must have 32 or 64 bits, not 16", [](auto& c) { c.torus = Torus{16}; }},
      {"n must be from 1 to 65536, not 0", [](auto& c) { c.n = LweDimension(0); }},
      {"n must be from 1 to 65536, not 65537", [](auto& c) { c.n = LweDimension(65537); }},
      {"k must be from 1 to 16, not 0", [](auto& c) { c.k = GlweDimension(0); }},
      {"k must be from 1 to 16, not 17", [](auto& c) { c.k = GlweDimension(17); }},
      {"N must be a power of two", [](auto& c) { c.N = PolynomialSize(384); }},
      {"2^8 to 2^16, not 128", [](auto& c) { c.N = PolynomialSize(128); }},
      {"not 131072", [](auto& c) { c.N = PolynomialSize(131072); }},
      {"rotation gadget's base_log must be from 1 to 31, not 0",
       [](auto& c) { c.rotation_gadget = {0, 2}; }},
      {"rotation gadget's base_log must be from 1 to 31, not 32",
       [](auto& c) { c.rotation_gadget = {32, 1}; }},
      {"rotation gadget has 0 levels", [](auto& c) { c.rotation_gadget = {8, 0}; }},
      {"at most the 64 bits", [](auto& c) { c.rotation_gadget = {13, 5}; }},
      {"at most the 64 bits",
       [](auto& c) { c.rotation_gadget = {31, std::numeric_limits<int>::max()}; }},
      {"at most the 32 bits",
       [](auto& c) {
         c.torus = Torus::t32;
         c.rotation_gadget = {11, 3};
       }},
      {"switch gadget has 3 levels of 11 bits", [](auto& c) { c.switch_gadget = {11, 3}; }},
      {"switch gadget has -1 levels", [](auto& c) { c.switch_gadget = {4, -1}; }},
      {"classic rotation takes a group of 1 bit, not 2", [](auto& c) { c.group = 2; }},
      {"multi-bit rotation takes a group of 2 to 4 bits, not 5",
       [](auto& c) {
         c.rotation = Rotation::multi_bit;
         c.group = 5;
       }},
      {"block-binary rotation takes a group of 2 to 8 bits, not 1",
       [](auto& c) { c.rotation = Rotation::block_binary; }},
      {"rotation must be classic, multi_bit or block_binary",
       [](auto& c) { c.rotation = Rotation{9}; }},
      {"n must be a multiple of the group's 5 bits, not 24",
       [](auto& c) {
         c.rotation = Rotation::block_binary;
         c.group = 5;
       }},
      {"mean of a secret bit must be from 0 to 1", [](auto& c) { c.mean_bit = 1.5; }},
      {"mean of a secret bit must be from 0 to 1", [](auto& c) { c.mean_bit = -0.1; }},
      {"mean of a secret bit must be from 0 to 1", [](auto& c) { c.mean_bit = std::nan(""); }},
      {"threads must be from 1 to 1024, not 0", [](auto& c) { c.threads = 0; }},
      {"isa must be \"portable\", \"avx2\", \"avx512\"", [](auto& c) { c.isa = "sse"; }},
      {"transform must be \"fft\", \"ntt\"", [](auto& c) { c.transform = "dct"; }},
  };
  for (const Case& c : cases) {
    TfheConfig config = plain();
    c.spoil(config);
    EXPECT_NE(refusal([&] { validated(config); }).find(c.says), std::string::npos)
        << c.says << " is not in: " << refusal([&] { validated(config); });
    EXPECT_NE(refusal([&] { make_ref_tfhe(config); }), "") << c.says;
  }
}

/// Calls with one wrong argument each.
class TfheArguments : public testing::Test {
 protected:
  TfheArguments() : tables_{table_.data(), 2, false, {}, 0} {}

  void expect(const std::string& says, const std::function<void()>& run) const {
    const std::string message = refusal(run);
    EXPECT_NE(message.find(says), std::string::npos) << says << " is not in: " << message;
  }
  void bootstrap(LweView out, ConstLweView in, const TableView& tables) const {
    ops_->bootstrap(out, in, tables, key_.data());
  }
  /// The same refusal by every operation that takes tables.
  void expect_tables(const std::string& says, const TableView& tables) {
    expect("bootstrap: " + says, [&] { bootstrap(large_.lwe(), small_.lwe(), tables); });
    expect("switch_bootstrap: " + says, [&] {
      ops_->switch_bootstrap(out_large_.lwe(), large_.lwe(), tables, key_.data(), key_.data());
    });
    expect("bootstrap_switch: " + says, [&] {
      ops_->bootstrap_switch(out_small_.lwe(), small_.lwe(), tables, key_.data(), key_.data());
    });
    expect("blind_rotate: " + says,
           [&] { ops_->blind_rotate(glwe_.glwe(), small_.lwe(), tables, key_.data()); });
  }

  const TfheConfig config_ = plain();
  const std::unique_ptr<TfheOps> ops_ = make_ref_tfhe(config_);
  TorusBlock small_{Torus::t32, 3, 25}, out_small_{Torus::t32, 3, 25};
  TorusBlock large_{Torus::t64, 3, 513}, out_large_{Torus::t64, 3, 513};
  TorusBlock glwe_{Torus::t64, 3, 768}, table_{Torus::t64, 2, 256};
  std::vector<std::byte> key_ = std::vector<std::byte>(8);  // no refused call reads it
  TableView tables_;
};

TEST_F(TfheArguments, ShapesOfCiphertexts) {
  const auto key_switch = [&](LweView out, ConstLweView in) {
    ops_->key_switch(out, in, key_.data());
  };
  LweView wrong = large_.lwe();
  wrong.dimension = LweDimension(511);
  expect("key_switch: the input must be large ciphertexts of dimension 512 with words of 64 bits",
         [&] { key_switch(small_.lwe(), wrong); });
  wrong = small_.lwe();
  wrong.torus = Torus::t64;
  wrong.data = large_.data();
  expect("the output must be small ciphertexts", [&] { key_switch(wrong, large_.lwe()); });
  wrong = small_.lwe();
  wrong.count = 2;
  expect("the output must have 3 rows, not 2", [&] { key_switch(wrong, large_.lwe()); });
  wrong.count = 0;
  expect("the output has no ciphertext", [&] { key_switch(wrong, large_.lwe()); });
  wrong = small_.lwe();
  wrong.data = nullptr;
  expect("the output has no data", [&] { key_switch(wrong, large_.lwe()); });
  wrong.data = static_cast<std::byte*>(small_.data()) + 2;
  expect("not aligned", [&] { key_switch(wrong, large_.lwe()); });
  wrong.data = static_cast<std::byte*>(large_.data()) + 8;
  expect("the output overlaps the input", [&] { key_switch(wrong, large_.lwe()); });
  expect("the key-switching key is missing",
         [&] { ops_->key_switch(small_.lwe(), large_.lwe(), nullptr); });
  expect("the bootstrapping key is missing",
         [&] { ops_->bootstrap(large_.lwe(), small_.lwe(), tables_, nullptr); });
  wrong = large_.lwe();
  wrong.count = std::size_t{1} << 60;
  expect("larger than any memory", [&] { bootstrap(wrong, small_.lwe(), tables_); });
}

TEST_F(TfheArguments, TablesOfBootstraps) {
  const std::vector<u32> few{0, 1}, beyond{0, 2, 1};
  TableView tables = tables_;
  tables.count = 0;
  expect_tables("there is no table", tables);
  tables = tables_;
  tables.data = nullptr;
  expect_tables("the table has no data", tables);
  tables = tables_;
  tables.of_input = few;
  expect_tables("of_input must be empty or name a table for each of the 3 inputs, not for 2",
                tables);
  tables.of_input = beyond;
  expect_tables("of_input names table 2, and there are 2", tables);
  tables = tables_;
  tables.log_many = 9;
  expect_tables("log_many must be from 0 to 8, not 9", tables);
  tables.log_many = -1;
  expect_tables("log_many must be from 0 to 8, not -1", tables);
  tables.log_many = 1;
  expect("the output must have 6 rows, not 3",
         [&] { bootstrap(large_.lwe(), small_.lwe(), tables); });
  tables = tables_;
  tables.data = static_cast<std::byte*>(large_.data()) + 64;
  expect("the output overlaps the tables", [&] { bootstrap(large_.lwe(), small_.lwe(), tables); });
}

TEST_F(TfheArguments, Combinations) {
  std::vector<u32> begin{0, 1, 1, 2}, column{0, 2};
  std::vector<std::int64_t> weight{1, -1};
  std::vector<u64> constant;
  const auto says = [&](const std::string& what) {
    expect(what, [&] {
      ops_->combine(out_small_.lwe(), small_.lwe(), {begin, column, weight, constant});
    });
  };
  EXPECT_NO_THROW(ops_->combine(out_small_.lwe(), small_.lwe(), {begin, column, weight, constant}));
  column[1] = 3;
  says("combine: column 3 is named, and there are 3 inputs");
  column[1] = 2;
  begin = {0, 2, 1, 2};
  says("begin must ascend");
  begin = {0, 1, 1, 1};
  says("begin must go from 0");
  begin = {0, 1, 2};
  says("begin must have one entry more than the 3 rows");
  begin = {0, 1, 1, 2};
  weight.pop_back();
  says("as many weights as columns");
  weight.push_back(1);
  constant = {1};
  says("a constant for each row, or none");
  expect("one torus and one dimension",
         [&] { ops_->combine(large_.lwe(), small_.lwe(), {begin, column, weight, {}}); });
}

TEST_F(TfheArguments, Extractions) {
  const std::vector<u32> three{0, 1, 2}, beyond{0, 256, 1};
  const auto extract = [&](std::span<const u32> coefficients, std::size_t per, std::size_t count) {
    ops_->extract(large_.lwe(), {glwe_.data(), count}, coefficients, per);
  };
  EXPECT_NO_THROW(extract(three, 2, 2));
  expect("extract: the 3 coefficients need 3 ciphertexts, and there are 2",
         [&] { extract(three, 1, 2); });
  expect("coefficient 256 is asked for, and there are 256", [&] { extract(beyond, 1, 3); });
  expect("at least one coefficient", [&] { extract(three, 0, 3); });
  expect("the output must have 2 rows, not 3", [&] { extract(std::span(three).first(2), 1, 3); });
}

TEST_F(TfheArguments, Packings) {
  const std::vector<u32> three{0, 255, 2}, beyond{0, 256, 1}, twice{7, 7, 1};
  // Zeros decompose into zeros, so that the one call that is not refused reads a key of zeros.
  const std::vector<u64> key(24 * 2 * 768);
  const auto pack = [&](std::span<const u32> coefficients, std::size_t per, std::size_t outputs) {
    ops_->pack({glwe_.data(), outputs}, small_.lwe(), coefficients, per, key.data());
  };
  EXPECT_NO_THROW(pack(three, 2, 2));
  EXPECT_NO_THROW(pack(twice, 1, 3));  // of different outputs
  expect("pack: coefficient 7 of one output is named twice", [&] { pack(twice, 3, 1); });
  expect("coefficient 256 is named, and there are 256", [&] { pack(beyond, 3, 1); });
  expect("a coefficient for each of the 3 ciphertexts, not 2",
         [&] { pack(std::span(three).first(2), 3, 1); });
  expect("at least one ciphertext", [&] { pack(three, 0, 1); });
  expect("the output must have 1 rows, not 2", [&] { pack(three, 3, 2); });
  expect("the packing key is missing",
         [&] { ops_->pack({glwe_.data(), 1}, small_.lwe(), three, 3, nullptr); });
  TfheConfig narrow = config_;
  narrow.torus = Torus::t32;
  narrow.rotation_gadget = {8, 2};
  expect("words of 64 bits cannot be packed into words of 32", [&] {
    make_ref_tfhe(narrow)->pack({glwe_.data(), 1}, large_.lwe(), three, 3, key.data());
  });
  LweView none = small_.lwe();
  none.dimension = LweDimension(0);
  expect("from 1 to 1048576 words of a mask, not 0",
         [&] { ops_->pack({glwe_.data(), 1}, none, three, 3, key.data()); });
  std::vector<u64> to(2);
  const std::vector<std::uint8_t> seed(32);
  const SeededKey empty{std::span<const std::uint8_t, 32>(seed), to.data()};
  expect("prepare_packing_key: ciphertexts to pack have from 1 to 1048576 words of a mask, not 0",
         [&] { ops_->prepare_seeded_packing_key(to.data(), LweDimension(0), empty); });
}

TEST_F(TfheArguments, Seeds) {
  std::vector<u64> words(4), bodies(3);
  const std::vector<std::uint8_t> seed(32);
  const auto write = [&](LweView out, const void* bodies) {
    ops_->copy_in_seeded(out, {std::span<const std::uint8_t, 32>(seed), bodies});
  };
  const LweView two{words.data(), Torus::t64, LweDimension(1), 2};
  EXPECT_NO_THROW(write(two, bodies.data()));
  expect("copy_in_seeded: the input has no data", [&] { write(two, nullptr); });
  expect("the input is not aligned",
         [&] { write(two, reinterpret_cast<char*>(bodies.data()) + 4); });
  LweView bad = two;
  bad.data = nullptr;
  expect("the output has no data", [&] { write(bad, bodies.data()); });
  bad = two;
  bad.count = 0;
  expect("the output has no ciphertext", [&] { write(bad, bodies.data()); });
  bad = two;
  bad.dimension = LweDimension(0);
  expect("ciphertexts from a seed have from 1 to 1048576 words of a mask, not 0",
         [&] { write(bad, bodies.data()); });
}

TEST_F(TfheArguments, Keys) {
  std::vector<u64> key(4);
  const auto prepare = [&](std::size_t first, std::size_t count) {
    ops_->prepare_rotation_key(key.data(), key.data(), first, count);
  };
  expect("prepare_rotation_key: the key has 24 steps, which do not include 5 from step 20 on",
         [&] { prepare(20, 5); });
  expect("the key has 24 steps", [&] { prepare(24, 1); });
  expect("the key has 24 steps", [&] { prepare(0, 0); });
  expect("the key has 24 steps", [&] { prepare(1, std::numeric_limits<std::size_t>::max()); });
  expect("the key to read has no data", [&] { ops_->prepare_switch_key(key.data(), nullptr); });
  expect("the key to write is missing", [&] { ops_->prepare_switch_key(nullptr, key.data()); });
}

TEST_F(TfheArguments, ASwitchedCiphertextHasOneExponentMore) {
  std::vector<u32> out(24);
  const u32* in = static_cast<const u32*>(small_.data());
  expect("has 25 exponents, not 24", [&] { switched(out, in, config_, 0); });
  out.resize(25);
  expect("log_many must be from 0 to 8, not 9", [&] { switched(out, in, config_, 9); });
}

}  // namespace
}  // namespace jali::backend::test
