// Algorithm 2, SHARED: one block a row, tree reductions in shared memory, three passes.
//
// Neighbouring threads read neighbouring columns, so loads coalesce. Each reduction halves the
// threads log2(256) = 8 times, with a block barrier at every level.
#pragma once

#include "cuda/prim/three_pass.cuh"

namespace softmax {

// One slot a thread. The two trees are apart, so that the next row's maxima cannot overwrite a sum
// that is still being read.
template <typename T>
struct TreeReduction {
  T *max_tree;
  Split<T> *sum_tree;

  __device__ __forceinline__ T max(T value) const {
    return reduce(max_tree, value, [](T &a, const T &b) { a = fmax(a, b); });
  }
  __device__ __forceinline__ CompensatedSum<T> sum(CompensatedSum<T> value) const {
    return CompensatedSum<T>::of(
        reduce(sum_tree, value.parts(), [](Split<T> &a, const Split<T> &b) {
          CompensatedSum<T> sum = CompensatedSum<T>::of(a);
          sum.add(CompensatedSum<T>::of(b));
          a = sum.parts();
        }));
  }

 private:
  template <typename Value, typename Combine>
  static __device__ __forceinline__ Value reduce(Value *tree, Value value, Combine combine) {
    const int thread = threadIdx.x;
    tree[thread] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
      if (thread < half) combine(tree[thread], tree[thread + half]);
      __syncthreads();
    }
    return tree[0];
  }
};

template <typename X, typename Y>
__global__ void __launch_bounds__(kMaxBlockThreads) shared_kernel(RowArgs args) {
  using Acc = AccOf<X>;
  __shared__ Acc max_tree[kMaxBlockThreads];
  __shared__ Split<Acc> sum_tree[kMaxBlockThreads];
  const TreeReduction<Acc> reduction{max_tree, sum_tree};
  const StridedCols<X> columns{threadIdx.x, blockDim.x};
  for_each_row<X, Y>(
      args, [&](const RowView<X, Y> &row) { three_pass_row(args, row, columns, reduction); });
}

}  // namespace softmax
