// Files are replaced at once or stay as they were; streams carry the same bytes as to_bytes, in
// pieces.
#include "jali/wire/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "allocations.h"
#include "jali/base/error.h"
#include "objects.h"

namespace jali::wire {
namespace {

namespace fs = std::filesystem;
using testing::Objects;
using testing::small_literal;

/// A folder that is removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "jali-file-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  fs::path operator/(const char* name) const { return path_ / name; }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

Bytes content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void fill(const fs::path& path, std::span<const std::uint8_t> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

mode_t mode(const fs::path& path) {
  struct stat facts{};
  EXPECT_EQ(::stat(path.c_str(), &facts), 0);
  return facts.st_mode & 0777;
}

class Files : public ::testing::Test {
 protected:
  Objects o{small_literal(Word::w52, 40, 2)};
  Folder folder;
};

TEST_F(Files, ObjectsComeBack) {
  save(folder / "params", *o.params);
  EXPECT_EQ(load_params(folder / "params", testing::kAnySecurity)->hash(), o.params->hash());
  const auto check = [&]<class T>(const T& object) {
    save(folder / "object", object);
    EXPECT_EQ(content(folder / "object"), to_bytes(object));
    EXPECT_EQ(to_bytes(load<T>(folder / "object", o.params, *o.ring)), to_bytes(object));
  };
  check(o.ciphertext(2, 3));
  check(o.plaintext(1));
  check(o.pk);
  check(*o.keys);
  save_secret(folder / "secret", *o.sk, *o.ring);
  const SecretBytes secret = secret_to_bytes(*o.sk, *o.ring);
  EXPECT_EQ(content(folder / "secret"), Bytes(secret.begin(), secret.end()));
  EXPECT_EQ(secret_to_bytes(load_secret(folder / "secret", o.params, *o.ring), *o.ring), secret);
}

TEST_F(Files, ASecretIsForItsOwnerAlone) {
  fill(folder / "secret", Bytes{1});
  fs::permissions(folder / "secret", fs::perms(0644));
  const mode_t before = ::umask(0);
  save_secret(folder / "secret", *o.sk, *o.ring);
  save(folder / "public", o.pk);
  ::umask(before);
  EXPECT_EQ(mode(folder / "secret"), 0600u);
  EXPECT_EQ(mode(folder / "public"), 0666u);
}

TEST_F(Files, AFailureLeavesTheOldFile) {
  const fs::path path = folder / "file";
  fill(path, Bytes{1, 2, 3});
  EXPECT_THROW(replace_file(path, Readers::umask,
                            [](const Sink& sink) {
                              sink(Bytes(100, 7));
                              throw std::runtime_error("stop");
                            }),
               std::runtime_error);
  EXPECT_EQ(content(path), (Bytes{1, 2, 3}));
  EXPECT_THROW(save(path, *o.keys, [](std::size_t, std::size_t) { throw std::runtime_error(""); }),
               std::runtime_error);
  EXPECT_EQ(content(path), (Bytes{1, 2, 3}));
  EXPECT_EQ(folder.files(), 1u);
}

TEST_F(Files, TheOldFileIsThereUntilTheNewOneIsWhole) {
  const fs::path path = folder / "file";
  fill(path, Bytes{1, 2, 3});
  replace_file(path, Readers::umask, [&](const Sink& sink) {
    sink(Bytes(10, 7));
    EXPECT_EQ(content(path), (Bytes{1, 2, 3}));
    sink(Bytes(10, 8));
  });
  EXPECT_EQ(content(path).size(), 20u);
  EXPECT_EQ(folder.files(), 1u);
}

TEST_F(Files, TwoWritersDoNotMix) {
  const fs::path path = folder / "file";
  replace_file(path, Readers::umask, [&](const Sink& outer) {
    outer(Bytes(4, 1));
    replace_file(path, Readers::umask, [](const Sink& inner) { inner(Bytes(6, 2)); });
    outer(Bytes(4, 1));
  });
  EXPECT_EQ(content(path), Bytes(8, 1));
}

TEST_F(Files, ALinkStaysALink) {
  fill(folder / "file", Bytes{1});
  fs::create_symlink(folder / "file", folder / "link");
  replace_file(folder / "link", Readers::umask, [](const Sink& sink) { sink(Bytes{2, 3}); });
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(content(folder / "file"), (Bytes{2, 3}));
}

TEST_F(Files, WhatIsNoFileIsRefused) {
  const auto nothing = [](const Sink&) { ADD_FAILURE(); };
  for (const fs::path& path : {folder / "", fs::path(), fs::path("/dev/null")}) {
    EXPECT_THROW(replace_file(path, Readers::umask, nothing), FileError) << path;
    EXPECT_THROW(check_replaceable(path), FileError) << path;
  }
  EXPECT_THROW(replace_file(folder / "none/file", Readers::umask, nothing), FileError);
  EXPECT_THROW(check_replaceable(folder / "none/file"), FileError);
  check_replaceable(folder / "new");
  EXPECT_THROW(load_params(folder / "none"), FileError);
  EXPECT_THROW(load_params(folder / ""), FileError);
  EXPECT_EQ(folder.files(), 0u);
}

/// Every loader of a file or stream, with bytes that it can read.
struct Reading {
  Bytes valid;
  std::function<void(const fs::path&)> file;
  std::function<void(std::istream&)> stream;
};

std::vector<Reading> readings(const Objects& o) {
  const SecretBytes secret = secret_to_bytes(*o.sk, *o.ring);
  return {{to_bytes(*o.keys),
           [&](const fs::path& p) { load<rlwe::EvaluationKeys>(p, o.params, *o.ring); },
           [&](std::istream& in) { read_keys(source_of(in), o.params, *o.ring); }},
          {to_bytes(o.ciphertext(1)),
           [&](const fs::path& p) { load<ckks::Ciphertext>(p, o.params, *o.ring); },
           [&](std::istream& in) {
             from_bytes<ckks::Ciphertext>(read_object(source_of(in), {}), o.params, *o.ring);
           }},
          {Bytes(secret.begin(), secret.end()),
           [&](const fs::path& p) { load_secret(p, o.params, *o.ring); },
           [&](std::istream& in) {
             secret_from_bytes(read_object<SecretBytes>(source_of(in), {}), o.params, *o.ring);
           }}};
}

TEST_F(Files, TruncatedLongerAndDamagedOnesAreCorrupt) {
  for (const Reading& reading : readings(o)) {
    const auto refused = [&](const Bytes& bad, bool in_stream) {
      fill(folder / "bad", bad);
      EXPECT_THROW(reading.file(folder / "bad"), CorruptData) << bad.size();
      std::istringstream in(std::string(bad.begin(), bad.end()));
      if (in_stream) {
        EXPECT_THROW(reading.stream(in), CorruptData) << bad.size();
      } else {
        EXPECT_NO_THROW(reading.stream(in));  // another object may follow
      }
    };
    const Bytes& valid = reading.valid;
    for (const std::size_t length : {std::size_t{0}, std::size_t{10}, kHeaderBytes, kFrameBytes,
                                     valid.size() / 2, valid.size() - 1}) {
      refused(Bytes(valid.begin(), valid.begin() + static_cast<std::ptrdiff_t>(length)), true);
    }
    Bytes longer = valid;
    longer.push_back(0);
    refused(longer, false);
    for (const std::size_t at :
         {std::size_t{0}, std::size_t{7}, valid.size() - 20, valid.size() - 1}) {
      Bytes damaged = valid;
      damaged[at] ^= 0x40;
      refused(damaged, true);
    }
  }
}

TEST_F(Files, ALengthThatLiesTakesNoMemory) {
  for (const Reading& reading : readings(o)) {
    Bytes liar = reading.valid;
    liar[46] = 1;  // the header's length grows by 2^48
    std::istringstream in(std::string(liar.begin(), liar.end()));
    EXPECT_THROW(reading.stream(in), LimitExceeded);
    liar[46] = 0;
    liar[43] += 16;  // by 2^28: more than follows, less than the limit
    std::istringstream again(std::string(liar.begin(), liar.end()));
    const std::size_t before = testing::allocated_bytes();
    EXPECT_THROW(reading.stream(again), CorruptData);
    EXPECT_LT(testing::allocated_bytes() - before, 20 * liar.size() + 8 * kPieceBytes);
  }
}

TEST_F(Files, StreamsCarryManyObjects) {
  std::stringstream both;
  write(*o.keys, sink_to(both));
  const Bytes ciphertext = to_bytes(o.ciphertext(2));
  sink_to(both)(ciphertext);
  write(*o.keys, sink_to(both));
  const Source source = source_of(both);
  EXPECT_EQ(to_bytes(read_keys(source, o.params, *o.ring)), to_bytes(*o.keys));
  EXPECT_EQ(read_object(source, {}), ciphertext);
  EXPECT_EQ(to_bytes(read_keys(source, o.params, *o.ring)), to_bytes(*o.keys));
  require_end(source);
}

TEST_F(Files, AStreamThatFailsSaysSo) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_THROW(write(*o.keys, sink_to(out)), FileError);
}

TEST_F(Files, ASourceMayGiveItsBytesOneByOne) {
  const Bytes bytes = to_bytes(*o.keys);
  std::size_t at = 0;
  const Source slow{[&](std::span<std::uint8_t> out) -> std::size_t {
                      if (at == bytes.size() || out.empty()) return 0;
                      out[0] = bytes[at++];
                      return 1;
                    },
                    std::nullopt};
  EXPECT_EQ(to_bytes(read_keys(slow, o.params, *o.ring)), bytes);
}

TEST_F(Files, ProgressEndsAtTheTotal) {
  std::vector<std::size_t> done;
  const std::size_t size = sent_bytes(*o.keys);
  const Progress progress = [&](std::size_t now, std::size_t total) {
    EXPECT_EQ(total, size);
    done.push_back(now);
  };
  save(folder / "keys", *o.keys, progress);
  EXPECT_EQ(fs::file_size(folder / "keys"), size);
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_EQ(done.back(), size);
  done.clear();
  load<rlwe::EvaluationKeys>(folder / "keys", o.params, *o.ring, {}, progress);
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_EQ(done.back(), size);
}

TEST(LargeFiles, KeysDoNotLieInMemoryTwice) {
  std::vector<int> rotations;
  for (int k = 1; k <= 60; ++k) rotations.push_back(k);
  ckks::Literal literal = small_literal(Word::w52, 40, 3);
  literal.log_n = 13;
  const Objects o(literal, rotations, true);
  const std::size_t size = sent_bytes(*o.keys);
  ASSERT_GT(size, 8 * kPieceBytes);
  const Folder folder;
  std::size_t before = testing::allocated_bytes();
  save(folder / "keys", *o.keys);
  EXPECT_LT(testing::allocated_bytes() - before, 4 * kPieceBytes);
  before = testing::allocated_bytes();
  const auto keys = load<rlwe::EvaluationKeys>(folder / "keys", o.params, *o.ring);
  EXPECT_LT(testing::allocated_bytes() - before, keys.bytes() * 17 / 16 + 6 * kPieceBytes);
}

}  // namespace
}  // namespace jali::wire
