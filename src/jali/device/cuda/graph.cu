#include "jali/base/error.h"
#include "jali/device/cuda/check.cuh"
#include "jali/device/cuda/graph.cuh"
#include "jali/device/cuda/profile.cuh"

namespace jali::device::cuda {

namespace {

class CudaGraph final : public Graph {
 public:
  CudaGraph(std::shared_ptr<const Stream> stream, std::shared_ptr<device::Pool> own)
      : stream_(std::move(stream)), own_(std::move(own)) {}
  ~CudaGraph() override {
    cudaSetDevice(stream_->device());
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
    if (recorded_ != nullptr) cudaGraphDestroy(recorded_);
  }

  void instantiate(cudaGraph_t recorded) {
    recorded_ = recorded;
    stream_->check(stream_->ask(device::Call::allocate,
                                [&] { return cudaGraphInstantiate(&graph_, recorded, 0); }),
                   "making a program");
    stream_->check(cudaGraphUpload(graph_, stream_->main()), "making a program");
  }
  void run() override {
    stream_->enter();
    stream_->check(
        stream_->ask(device::Call::launch, [&] { return cudaGraphLaunch(graph_, stream_->get()); }),
        "running a program");
  }
  std::size_t bytes() const override { return own_->bytes_in_use() + own_->bytes_cached(); }
  std::vector<StepTime> steps() override {
    stream_->enter();
    return step_times(*stream_, recorded_);
  }

 private:
  const std::shared_ptr<const Stream> stream_;
  const std::shared_ptr<device::Pool> own_;  // of the blocks that the graph writes
  cudaGraph_t recorded_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace

std::unique_ptr<Graph> record_graph(std::shared_ptr<const Stream> stream,
                                    const std::shared_ptr<device::Pool>& pool,
                                    std::shared_ptr<device::Memory> memory, bool poison,
                                    const std::function<void()>& work) {
  require<InvalidArgument>(!stream->recording(), "a program cannot be made inside another one");
  const std::size_t most = pool->peak_of(work);
  auto own = device::Pool::of_regions(most, std::move(memory), poison);
  auto graph = std::make_unique<CudaGraph>(stream, own);
  std::lock_guard lock(stream->recording_mutex());
  device::Pool::Redirect redirect(pool, std::move(own));
  Stream::Recording recording(*stream);
  work();
  graph->instantiate(recording.end());
  return graph;
}

}  // namespace jali::device::cuda
