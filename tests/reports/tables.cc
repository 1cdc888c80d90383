// Which entries other tests drive, and which are left for later and why.
#include "drive.h"

namespace reports {

// "package.x" is a test of ctest; "bindings.python/test_abi.py/test_x" is a function of a file that
// the test bindings.python runs.
const std::vector<Elsewhere> kElsewhere = {
    // layout, ffi: what the Python binding does with views.
    {"flagos-ai/Torch-FL#172",
     {"bindings.python/test_layout.py/test_out_of_place_is_right_for_every_view",
      "bindings.python/test_layout.py/test_in_place_refuses_a_view_by_name_and_writes_nothing"}},
    {"chainer/chainer#3066", {"bindings.python/test_layout.py/test_one_column_of_ones_is_one"}},

    // link-symbols
    {"pytorch/FBGEMM#1818", {"abi.exports_are_exactly_the_list_and_the_header"}},
    {"NVIDIA/cccl#166", {"package.two_copies_loaded_globally_each_run_their_own_code"}},
    {"tazz4843/whisper-rs#223", {"bindings.rust_cdylib"}},
    {"llnl/Umpire#652",
     {"package.clang_and_lld_link_both",
      "package.section_garbage_collection_keeps_what_is_needed"}},
    {"NVIDIA/nccl#832", {"abi.the_archive_has_no_weak_cuda_symbols"}},

    // packaging
    {"koide3/glim#96",
     {"package.a_c_project_links_the_shared_library_without_cxx_openmp_or_cuda",
      "package.a_c_project_links_the_static_library"}},
    {"eyalroz/cuda-api-wrappers#717",
     {"package.a_cxx_project_links_every_target_in_cxx17_and_cxx20",
      "package.a_static_user_is_told_which_dependency_is_missing"}},
    {"celeritas-project/celeritas#1323",
     {"package.a_subdirectory_of_a_cxx_only_project_finds_the_package"}},
    {"google/googletest#5033",
     {"package.relative_install_folders_of_other_names_work",
      "package.absolute_install_folders_work"}},
    {"google/cpu_features#118",
     {"abi.the_library_states_the_headers_version",
      "abi.the_cmake_package_and_pkg_config_state_the_headers_version",
      "abi.the_python_package_states_the_headers_version",
      "abi.the_rust_crates_state_the_headers_version"}},
    {"acts-project/detray#956",
     {"package.a_parent_with_its_own_settings_is_not_changed",
      "package.a_parent_that_sets_nothing_is_not_changed"}},
    {"tensorflow/tensorflow#9969",
     {"bindings.python/test_inputs.py/"
      "test_a_cuda_device_that_does_not_exist_is_the_library_s_error",
      "bindings.python/test_handle.py/test_auto_is_a_device_that_exists"}},
    {"openvdb/fvdb-core#648",
     {"bindings.python/test_library.py/test_without_a_library_the_error_says_what_to_do"}},
    {"NVIDIA/cudnn-frontend#140", {"abi.the_shared_library_needs_no_cuda_library"}},

    // c-abi
    {"JibbSmart/JoyShockLibrary#40",
     {"abi.the_header_includes_stddef_and_stdint_only",
      "abi.the_header_compiles_without_warnings_in_c99_to_cxx20"}},
    {"brgl/libgpiod#24", {"bindings.generated"}},
    {"lexbor/lexbor#349",
     {"abi.exports_are_exactly_the_list_and_the_header", "abi.the_soname_carries_the_abi_number"}},
    {"k2-fsa/sherpa-onnx#1471",
     {"package.a_cxx_program_without_exceptions_and_rtti_links_the_archive",
      "bindings.python/test_inputs.py/"
      "test_algorithms_that_do_not_exist_or_do_not_run_here_are_refused"}},

    // ffi-ctypes
    {"facebookincubator/AITemplate#85",
     {"bindings.python/test_abi.py/test_every_exported_function_has_argtypes_and_restype"}},
    {"actions/setup-python#442",
     {"bindings.python/test_abi.py/test_addresses_below_and_above_2_to_the_31_work"}},
    {"obspy/obspy#193",
     {"bindings.python/test_layout.py/test_out_of_place_is_right_for_every_view",
      "bindings.python/test_layout.py/test_in_place_refuses_a_view_by_name_and_writes_nothing"}},
    {"openai/procgen#13",
     {"bindings.python/test_handle.py/test_temporaries_live_until_the_work_is_done"}},

    // ffi-rust
    {"Twinklebear/oidn-rs#21", {"bindings.rust", "bindings.rust_release"}},
    {"rust-cuda/cuda-sys#10", {"bindings.rust", "bindings.generated"}},
    {"bheisler/RustaCUDA#15", {"bindings.rust_build"}},
    {"dtolnay/cxx#1089", {"bindings.rust_static", "bindings.rust_cdylib"}},
};

const std::vector<Later> kLater = {
    // performance: what a GPU reaches is measured by bench/ and belongs to the work on speed.
    {"pytorch/pytorch#144645", "GPU speed is the benchmark's: left for the work on speed"},
    {"ggml-org/llama.cpp#17892", "GPU speed is the benchmark's: left for the work on speed"},
    {"microsoft/onnxruntime#9696", "GPU speed is the benchmark's: left for the work on speed"},
    {"pytorch/ao#1092", "GPU speed is the benchmark's: left for the work on speed"},

    {"flatironinstitute/finufft#273",
     "needs a GPU beside a second build of the library for another architecture"},
    {"OpenBMB/cpm_kernels#9",
     "needs two builds with CUDA in one folder: minutes of nvcc for what CMake's own dependency "
     "on the flags does"},
    {"microsoft/onnxruntime#29598",
     "needs five builds with CUDA: minutes of nvcc for each; the architectures of one are in "
     "softmax_build_info"},
};

const std::vector<Aside> kAsides = {
    {"PaddlePaddle/Paddle#19845", "tsan", "run without ThreadSanitizer"},
    {"ggml-org/llama.cpp#26385", "sanitizer", "racecheck itself is scripts/gpu_check's"},
};

}  // namespace reports
