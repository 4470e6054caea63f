#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "jali/device/cuda/check.cuh"
#include "jali/device/cuda/profile.cuh"

namespace jali::device::cuda {

namespace {

constexpr int kRepeats = 16;  // copies of a node in the chain that is timed

/// A kernel's name without the prefixes of namespaces and without its parameters.
std::string readable(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? text.get() : mangled;
  for (const char* part :
       {"void ", "jali::backend::cuda::", "jali::device::cuda::", "(anonymous namespace)::"}) {
    for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part)) {
      name.erase(at, std::string(part).size());
    }
  }
  int depth = 0;  // parameters begin at the first parenthesis outside of template arguments
  for (std::size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (name[i] == '(' && depth == 0) return name.substr(0, i);
  }
  return name;
}

/// A graph of kRepeats copies of a node, one after the other, and the node's name.
class Chain {
 public:
  Chain(const Stream& stream, cudaGraphNode_t node) : stream_(stream) {
    cudaGraphNodeType type{};
    stream.check(cudaGraphNodeGetType(node, &type), "reading a program");
    stream.check(cudaGraphCreate(&graph_, 0), "profiling a program");
    if (type == cudaGraphNodeTypeKernel) {
      cudaKernelNodeParams params{};
      stream.check(cudaGraphKernelNodeGetParams(node, &params), "reading a program");
      const char* mangled = nullptr;
      stream.check(cudaFuncGetName(&mangled, params.func), "reading a program");
      name_ = readable(mangled);
      repeat([&](cudaGraphNode_t& copy, const cudaGraphNode_t* before, std::size_t count) {
        stream.check(cudaGraphAddKernelNode(&copy, graph_, before, count, &params), "profiling");
        stream.check(cudaGraphKernelNodeCopyAttributes(copy, node), "profiling");
      });
    } else if (type == cudaGraphNodeTypeMemset) {
      cudaMemsetParams params{};
      stream.check(cudaGraphMemsetNodeGetParams(node, &params), "reading a program");
      name_ = "fill";
      repeat([&](cudaGraphNode_t& copy, const cudaGraphNode_t* before, std::size_t count) {
        stream.check(cudaGraphAddMemsetNode(&copy, graph_, before, count, &params), "profiling");
      });
    } else if (type == cudaGraphNodeTypeMemcpy) {
      cudaMemcpy3DParms params{};
      stream.check(cudaGraphMemcpyNodeGetParams(node, &params), "reading a program");
      name_ = "copy";
      repeat([&](cudaGraphNode_t& copy, const cudaGraphNode_t* before, std::size_t count) {
        stream.check(cudaGraphAddMemcpyNode(&copy, graph_, before, count, &params), "profiling");
      });
    }
  }
  ~Chain() { cudaGraphDestroy(graph_); }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  /// Empty if the node does nothing by itself.
  const std::string& name() const { return name_; }

  double seconds() const {
    cudaGraphExec_t ready = nullptr;
    cudaEvent_t begin = nullptr, end = nullptr;
    stream_.check(cudaGraphInstantiate(&ready, graph_, 0), "profiling a program");
    stream_.check(cudaEventCreate(&begin), "profiling a program");
    stream_.check(cudaEventCreate(&end), "profiling a program");
    float best = 1e30f;
    for (int run = 0; run < 4; ++run) {
      stream_.check(cudaEventRecord(begin, stream_.get()), "profiling a program");
      stream_.check(cudaGraphLaunch(ready, stream_.get()), "profiling a program");
      stream_.check(cudaEventRecord(end, stream_.get()), "profiling a program");
      stream_.check(cudaEventSynchronize(end), "profiling a program");
      float ms = 0;
      stream_.check(cudaEventElapsedTime(&ms, begin, end), "profiling a program");
      if (run > 0) best = std::min(best, ms);  // the first warms up
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaGraphExecDestroy(ready);
    return best * 1e-3 / kRepeats;
  }

 private:
  template <class Add>
  void repeat(Add&& add) {
    cudaGraphNode_t last = nullptr;
    for (int i = 0; i < kRepeats; ++i) {
      cudaGraphNode_t copy = nullptr;
      add(copy, &last, last == nullptr ? 0 : 1);
      last = copy;
    }
  }

  const Stream& stream_;
  cudaGraph_t graph_ = nullptr;
  std::string name_;
};

}  // namespace

std::vector<StepTime> step_times(const Stream& stream, cudaGraph_t graph) {
  std::size_t count = 0;
  stream.check(cudaGraphGetNodes(graph, nullptr, &count), "reading a program");
  std::vector<cudaGraphNode_t> nodes(count);
  stream.check(cudaGraphGetNodes(graph, nodes.data(), &count), "reading a program");
  std::vector<StepTime> steps;
  for (const cudaGraphNode_t node : nodes) {
    const Chain chain(stream, node);
    if (!chain.name().empty()) steps.push_back({chain.name(), chain.seconds()});
  }
  return steps;
}

}  // namespace jali::device::cuda
