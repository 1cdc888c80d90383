// The entries that only a CUDA device can run. The CPU's executable has the rows without the code,
// so that it knows what it leaves to the other one.
#include <stdexcept>

#include "special.h"

#if defined(REPORTS_WITH_CUDA)
#include "cuda_specials.h"
#define ON_CUDA(function) function
#else
#define ON_CUDA(function) nullptr
#endif

namespace reports {

#if !defined(REPORTS_WITH_CUDA)
std::unique_ptr<Device> make_cuda_device(std::int32_t) {
  throw std::runtime_error("this executable has no CUDA");
}
#endif

const std::vector<Special> kCudaSpecials = {
    // 2^28 elements and more.
    {"PFCCLab/PaddleAPITest#382", ON_CUDA(run_large), Where::kCuda, false, {}},
    {"microsoft/onnxruntime#32299",
     ON_CUDA(run_large),
     Where::kCuda,
     false,
     {"check_rows", "canary_after_end"}},
    {"pytorch/pytorch#52716", ON_CUDA(run_large), Where::kCuda, false, {}},
    {"pytorch/pytorch#103501", ON_CUDA(run_large), Where::kCuda, false, {}},
    {"PaddlePaddle/Paddle#71935",
     ON_CUDA(run_large),
     Where::kCuda,
     false,
     {"check_rows", "canary_after_end"}},
    {"tensorflow/tensorflow#61639", ON_CUDA(run_large), Where::kCuda, false, {}},
    {"Oneflow-Inc/oneflow#8472",
     ON_CUDA(run_large),
     Where::kCuda,
     false,
     {"check_rows", "canary_after_end"}},
    {"deepspeedai/DeepSpeed#1239", ON_CUDA(run_large), Where::kCuda, false, {"status"}},
    // Streams and graphs.
    {"NVIDIA/apex#883", ON_CUDA(run_stream_order), Where::kCuda, true, {"stream_order", "per"}},
    {"microsoft/onnxruntime#15002", ON_CUDA(run_first_capture), Where::kCuda, true, {"capture"}},
    {"microsoft/onnxruntime#32081",
     ON_CUDA(run_destroy_around_capture),
     Where::kCuda,
     true,
     {"process"}},
    {"NVIDIA/TensorRT#2888", ON_CUDA(run_capture_beside_calls), Where::kCuda, true, {"capture"}},
    {"NVlabs/cuHPX#11", ON_CUDA(run_replays), Where::kCuda, true, {"graph_replay", "bitwise"}},
    // Devices, and errors of the CUDA runtime.
    {"NVIDIA-Genomics-Research/GenomeWorks#113",
     ON_CUDA(run_current_device),
     Where::kCuda,
     true,
     {"current_device"}},
    {"tensorflow/tensorflow#59246", ON_CUDA(run_other_context), Where::kCuda, true, {"ctx0"}},
    {"NVIDIA/cccl#1791", ON_CUDA(run_older_error), Where::kCuda, true, {"status"}},
    {"Cytnx-dev/Cytnx#1175", ON_CUDA(run_launch_failure), Where::kCuda, false, {"status"}},
};

}  // namespace reports
