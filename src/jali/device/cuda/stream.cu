#include <iterator>

#include "jali/base/error.h"
#include "jali/device/cuda/check.cuh"

namespace jali::device::cuda {

namespace {

std::string describe(const char* what, cudaError_t code) {
  return std::string(what) + ": " + cudaGetErrorName(code) + ", " + cudaGetErrorString(code);
}

bool no_device(cudaError_t code) {
  return code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ||
         code == cudaErrorInvalidDevice || code == cudaErrorDevicesUnavailable ||
         code == cudaErrorStubLibrary || code == cudaErrorSystemNotReady ||
         code == cudaErrorInitializationError || code == cudaErrorCompatNotSupportedOnDevice ||
         code == cudaErrorSystemDriverMismatch;
}

// Whether this GPU runs clusters of 16 blocks, for a kernel that is as large as those which use
// them.
__global__ void __launch_bounds__(256) placeholder_kernel() {}
bool grants_wide_clusters() {
  allow_wide_clusters(placeholder_kernel);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {16, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(16);
  config.blockDim = dim3(256);
  config.dynamicSmemBytes = 32 << 10;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int clusters = 0;
  const auto code = cudaOccupancyMaxActiveClusters(&clusters, placeholder_kernel, &config);
  cudaGetLastError();
  return code == cudaSuccess && clusters > 0;
}

// After one of these errors the context is lost, and no later call of this process on the device
// succeeds.
bool sticky(cudaError_t code) {
  switch (code) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorContextIsDestroyed:
    case cudaErrorUnknown: return true;
    default: return false;
  }
}

[[noreturn]] void throw_no_device(const char* what, cudaError_t code) {
  throw NoDevice(describe(what, code) +
                 ": no usable NVIDIA GPU (nvidia-smi tells more); use device=\"cpu\"");
}

std::string lost_advice(const std::string& what) {
  return what +
         ": the GPU failed, and what was in its memory is lost. End this process (the driver gives "
         "a "
         "failed GPU back only to a new one), look at nvidia-smi, or use device=\"cpu\"";
}

}  // namespace

int code_generation(int device) {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "device");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "device");
  // The architectures that were compiled for, in ascending order, e.g. 900 for 9.0. The last one
  // has PTX beside its cubin.
  constexpr int kBuilt[] = {__CUDA_ARCH_LIST__};
  const int own = 100 * major + 10 * minor;
  int found = 0;
  for (const int built : kBuilt) {
    const bool newest = built == kBuilt[std::size(kBuilt) - 1];
    if (built <= own && (built / 100 == major || newest)) found = built / 100;
  }
  return found;
}

void check(cudaError_t code, const char* what, std::size_t asked) {
  if (code == cudaSuccess) [[likely]]
    return;
  if (no_device(code)) throw_no_device(what, code);
  if (sticky(code)) throw DeviceLost(lost_advice(describe(what, code)));
  if (code == cudaErrorMemoryAllocation) {
    std::size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) free = device::kUnknown;
    throw OutOfMemory(device::not_allocated(asked, free, what) +
                      ": free ciphertexts, keys or programs, or use smaller batches");
  }
  throw InternalError(describe(what, code));
}

Stream::Stream(int device, std::shared_ptr<device::Faults> faults)
    : device_(device),
      faults_(std::move(faults)),
      at_fork_({{}, {}, [this] {
                  forked_ = true;
                  new (&lost_mutex_) std::mutex;  // another thread may have held it
                  lost_message_ =
                      "cuda:" + std::to_string(device_) +
                      " serves the process that opened it, and this one was forked from it: start "
                      "processes by \"spawn\" and make the evaluator there, or use device=\"cpu\"";
                  lost_ = true;
                }}) {
  int count = 0;
  cuda::check(cudaGetDeviceCount(&count), "looking for GPUs");
  require<NoDevice>(device >= 0 && device < count, [&] {
    return "cuda:" + std::to_string(device) + " does not exist: this machine has " +
           std::to_string(count) + " GPU(s); use device=\"cpu\"";
  });
  generation_ = code_generation(device);
  require<NoDevice>(generation_ > 0, [&] {
    return "this build has no code for the generation of cuda:" + std::to_string(device) +
           ": build with JALI_CUDA_ARCHITECTURES=all, or for its own, or use device=\"cpu\"";
  });
  cuda::check(cudaSetDevice(device), "cudaSetDevice");
  wide_clusters_ = generation_ >= 9 && grants_wide_clusters();
  cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  const cudaError_t code = cudaStreamCreateWithFlags(&recorder_, cudaStreamNonBlocking);
  if (code != cudaSuccess) cudaStreamDestroy(stream_);
  cuda::check(code, "cudaStreamCreate");
}

Stream::~Stream() {
  if (forked_) return;
  cudaSetDevice(device_);
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(recorder_);
  cudaStreamDestroy(stream_);
}

void Stream::enter() const {
  if (lost_.load(std::memory_order_acquire)) [[unlikely]] {
    std::lock_guard lock(lost_mutex_);
    throw DeviceLost(lost_message_);
  }
  check(cudaSetDevice(device_), "cudaSetDevice");
}

void Stream::synchronize() const {
  refuse_recording("waiting for a result");
  check(ask(device::Call::synchronize, [&] { return cudaStreamSynchronize(stream_); }),
        "waiting for the GPU");
}

bool Stream::owns(const void* data) const {
  cudaPointerAttributes about{};
  check(cudaPointerGetAttributes(&about, data), "asking where memory lies");
  return about.type == cudaMemoryTypeDevice && about.device == device_;
}

void Stream::check(cudaError_t code, const char* what, std::size_t asked) const {
  if (code == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // clears the error, which the next launch would otherwise report
  if (sticky(code) || no_device(code)) lose(describe(what, code));
  cuda::check(code, what, asked);
}

void Stream::launched(const char* kernel, cudaError_t answer) const {
  const cudaError_t code = ask(device::Call::launch, [&] { return answer; });
  if (code == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();
  const std::string what = std::string("launching ") + kernel;
  if (sticky(code) || no_device(code)) lose(describe(what.c_str(), code));
  if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorUnsupportedPtxVersion) {
    throw LaunchFailed(describe(what.c_str(), code) +
                       ": this build has no code for this GPU; build with "
                       "JALI_CUDA_ARCHITECTURES=all, or for its architecture");
  }
  throw LaunchFailed(describe(what.c_str(), code) +
                     ": the GPU did not start it and its result is missing; ask again, with a "
                     "smaller batch if that fails too");
}

cudaError_t Stream::injected(device::Call kind) const {
  switch (faults_->before(kind)) {
    case device::Fault::none: return cudaSuccess;
    case device::Fault::out_of_memory: return cudaErrorMemoryAllocation;
    case device::Fault::launch_failed: return cudaErrorLaunchOutOfResources;
    case device::Fault::device_lost: return cudaErrorECCUncorrectable;
  }
  return cudaErrorUnknown;
}

void Stream::lose(const std::string& message) const {
  std::lock_guard lock(lost_mutex_);
  if (!lost_) {
    lost_message_ = lost_advice("cuda:" + std::to_string(device_) + ", " + message);
    lost_ = true;
  }
  throw DeviceLost(lost_message_);
}

Stream::Recording::Recording(const Stream& stream) : stream_(stream) {
  stream_.enter();
  // The mode is relaxed, because allocations of blocks go to the main stream meanwhile.
  stream_.check(cudaStreamBeginCapture(stream_.recorder_, cudaStreamCaptureModeRelaxed),
                "recording a program");
  stream_.recording_thread_ = std::this_thread::get_id();
}

Stream::Recording::~Recording() {
  if (!stream_.recording()) return;
  cudaGraph_t graph = nullptr;
  stream_.recording_thread_ = std::thread::id();
  cudaStreamEndCapture(stream_.recorder_, &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();
}

cudaGraph_t Stream::Recording::end() {
  cudaGraph_t graph = nullptr;
  stream_.recording_thread_ = std::thread::id();
  stream_.check(cudaStreamEndCapture(stream_.recorder_, &graph), "recording a program");
  return graph;
}

}  // namespace jali::device::cuda
