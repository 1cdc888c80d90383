// Which entries other tests drive, and which are left for later and why.
#include "drive.h"

namespace reports {

const std::vector<Elsewhere> kElsewhere = {};

const std::vector<Later> kLater = {
    // performance: what a GPU reaches is measured by bench/ and belongs to the work on speed.
    {"pytorch/pytorch#144645", "GPU speed is the benchmark's: left for the work on speed"},
    {"ggml-org/llama.cpp#17892", "GPU speed is the benchmark's: left for the work on speed"},
    {"microsoft/onnxruntime#9696", "GPU speed is the benchmark's: left for the work on speed"},
    {"pytorch/ao#1092", "GPU speed is the benchmark's: left for the work on speed"},
};

const std::vector<Aside> kAsides = {
    {"ggml-org/llama.cpp#26385", "sanitizer", "racecheck itself is scripts/gpu_check's"},
};

}  // namespace reports
