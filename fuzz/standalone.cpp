// A driver for fuzz targets where the compiler has no libFuzzer: runs files, then mutations of what
// it has seen, without coverage. The same options and file names as libFuzzer's, as far as they go:
//   fuzz_NAME [-max_total_time=SECONDS] [-runs=N] [-seed=N] [-max_len=N] [-artifact_prefix=P]
//   [FILE_OR_FOLDER...]
// Deterministic for given -seed and -runs.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed);

namespace {

using Input = std::vector<std::uint8_t>;

std::mt19937_64 generator;
Input current;  // what a failing run leaves behind
std::string artifact;

void save_current(int signal) {
  std::ofstream(artifact, std::ios::binary)
      .write(reinterpret_cast<const char*>(current.data()),
             static_cast<std::streamsize>(current.size()));
  std::fprintf(stderr, "failed: the input is in %s\n", artifact.c_str());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(const Input& input) {
  current = input;
  LLVMFuzzerTestOneInput(current.data(), current.size());
}

Input read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size,
                                        std::size_t max_size) {
  const auto below = [](std::size_t n) { return n == 0 ? 0 : generator() % n; };
  for (std::size_t step = 1 + below(3); step > 0; --step) {
    if (size == 0 || (size < max_size && below(8) == 0)) {  // insert
      if (size == max_size) continue;
      const std::size_t at = below(size + 1);
      std::memmove(data + at + 1, data + at, size - at);
      data[at] = static_cast<std::uint8_t>(generator());
      ++size;
    } else if (size > 1 && below(8) == 0) {  // remove
      const std::size_t at = below(size);
      std::memmove(data + at, data + at + 1, size - at - 1);
      --size;
    } else {
      constexpr std::uint64_t kSpecial[] = {0,
                                            1,
                                            0x7f,
                                            0xff,
                                            0x7fff,
                                            0xffff,
                                            1u << 31,
                                            0x7fffffff,
                                            0xffffffff,
                                            1ull << 63,
                                            ~0ull,
                                            0x7ff0000000000000,
                                            0x7ff8000000000000};
      const std::size_t at = below(size);
      switch (below(4)) {
        case 0: data[at] ^= static_cast<std::uint8_t>(1u << below(8)); break;
        case 1: data[at] = static_cast<std::uint8_t>(generator()); break;
        case 2: data[at] = static_cast<std::uint8_t>(data[at] + below(33) - 16); break;
        default: {
          const std::uint64_t x = kSpecial[below(std::size(kSpecial))];
          const std::size_t width = std::size_t{1} << below(4);
          std::memcpy(data + at, &x, std::min(width, size - at));
        }
      }
    }
  }
  return size;
}

int main(int argc, char** argv) {
  double seconds = 0;
  std::uint64_t runs = 0, seed = 1;
  std::size_t max_size = std::size_t{1} << 17;
  std::string prefix = "./";
  std::vector<Input> corpus;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = arg.substr(std::min(arg.size(), arg.find('=') + 1));
    if (arg.starts_with("-max_total_time=")) {
      seconds = std::stod(value);
    } else if (arg.starts_with("-runs=")) {
      runs = std::stoull(value);
    } else if (arg.starts_with("-seed=")) {
      seed = std::stoull(value);
    } else if (arg.starts_with("-max_len=")) {
      max_size = std::stoull(value);
    } else if (arg.starts_with("-artifact_prefix=")) {
      prefix = value;
    } else if (std::filesystem::is_directory(arg)) {
      for (const auto& entry : std::filesystem::directory_iterator(arg)) {
        if (entry.is_regular_file()) corpus.push_back(read(entry.path()));
      }
    } else if (!arg.starts_with("-")) {
      corpus.push_back(read(arg));
    }
  }
  artifact = prefix + "crash";
  for (const int signal : {SIGABRT, SIGSEGV, SIGILL, SIGTRAP, SIGFPE, SIGBUS}) {
    std::signal(signal, save_current);
  }
  generator.seed(seed);
  std::uint64_t done = 0;
  for (const Input& input : corpus) run(input), ++done;
  if (corpus.empty()) corpus.emplace_back();

  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  Input input;
  for (std::uint64_t k = 0; runs > 0 ? k < runs : Clock::now() < end; ++k) {
    // Mutations pile up for a while, then start again from a file or from the mutator's own
    // examples.
    if (k % 8 == 0) input = corpus[generator() % corpus.size()];
    const std::size_t size = std::min(input.size(), max_size);
    input.resize(max_size);
    input.resize(
        LLVMFuzzerCustomMutator(input.data(), size, max_size, static_cast<unsigned>(generator())));
    run(input);
    ++done;
  }
  std::fprintf(stderr, "stat::number_of_executed_units: %llu\n",
               static_cast<unsigned long long>(done));
  return 0;
}
