# The CPU backend beside memcpy.
add_executable(softmax_cpu_bench ${CMAKE_CURRENT_LIST_DIR}/cpu_bench.cc)
target_link_libraries(softmax_cpu_bench PRIVATE Softmax::softmax_static OpenMP::OpenMP_CXX)
set_target_properties(softmax_cpu_bench PROPERTIES
  CXX_STANDARD 17
  CXX_STANDARD_REQUIRED ON
  CXX_EXTENSIONS OFF)
