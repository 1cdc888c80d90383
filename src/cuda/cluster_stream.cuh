// Algorithm 13, CLUSTER, where there are more rows than clusters find room: clusters that go from
// row to row, while the next rows are on their way.
//
// The runs, their parts and the order of additions are cluster.cuh's, and so are the bits. A warp
// has its run of the coming rows copied into slots of its own in shared memory: it takes a run into
// registers, has the slot filled again, and nobody else waits for that. So the memory is busy while
// a row's parts meet.
#pragma once

#include "cuda/cluster.cuh"
#include "cuda/prim/run_slots.cuh"

namespace softmax {

#if SOFTMAX_BULK_COPY

template <typename X, typename Y, int kPacks, RowAccess access, bool kIsLog>
class StreamedRows {
 public:
  using Acc = AccOf<X>;
  using Exchange = ClusterExchange<Acc>;
  using Run = SpreadRuns<X, Y, kPacks, access>;

  // `slots` are this warp's.
  __device__ __forceinline__ StreamedRows(const RowArgs &args, const Ring<X> &slots,
                                          Exchange &exchange, int rank, std::int64_t first_row,
                                          std::int64_t row_step)
      : args_(args), slots_(slots), exchange_(exchange), run_number_(rank * warps() + warp()) {
    const int run_cols = Run::run_cols(args);
    const std::int64_t first_col = std::int64_t{run_number_} * run_cols;
    run_.take_in_slot(run_cols,
                      args.cols - first_col);  // the last block may have warps without a run
    first_ = first_row * args.cols + first_col;
    step_ = row_step * args.cols;
    rows_ = static_cast<int>((args.rows - first_row + row_step - 1) / row_step);
  }

  // Asks for as many rows as there are slots. Needs nobody.
  __device__ __forceinline__ void fill() const {
    for (int i = 0; i < slots_.count() && i < rows_; ++i) ask({i, 0}, first_ + i * step_);
  }

  __device__ __forceinline__ void run() {
    Turn turn;
    for (; rows_ > 0; --rows_, first_ += step_) {
      const X *const x = static_cast<const X *>(args_.x) + first_;
      slots_.wait(turn);
      run_.load(run_in_slot(slots_, turn, x, run_.cols, access == RowAccess::kWords));
      // It has all been read when its maximum is there.
      const Acc max = warp_max_or_nan(run_.max(0));
      if (rows_ > slots_.count()) ask(turn, first_ + slots_.count() * step_);
      turn.advance(slots_.count());
      exchange_.post(run_number_, run_.all_lanes(run_.sum(0, max, kIsLog), kIsLog));
      exchange_.wait();
      const RowPart<Acc> row = merge_parts<Acc, kRunsBits>(
          0, kWarpThreads, args_.row_blocks * warps(), Run::Held::kNearLimit, kIsLog,
          [this](int i) { return exchange_.part(i); });
      const RowFactors<Acc> factors =
          finish(row, Run::Held::kNearLimit, args_.empty_is_zero, kIsLog);
      const Split<Acc> scale = part_scale(max, row.max, Run::Held::kNearLimit);
      run_.held[0].finish({factors, scale, unknown_zero(args_)}, kIsLog);
      run_.template store<kHeldStoreHint>(static_cast<Y *>(args_.y) + anew(first_), kIsLog);
      exchange_.next_row();
    }
  }

 private:
  static __device__ __forceinline__ int warp() { return threadIdx.x / kWarpThreads; }
  static __device__ __forceinline__ int warps() { return blockDim.x / kWarpThreads; }

  __device__ __forceinline__ void ask(Turn turn, std::int64_t first) const {
    ask_for_run(slots_, turn, static_cast<const X *>(args_.x) + first, run_.cols);
  }
  const RowArgs &args_;
  const Ring<X> &slots_;
  Exchange &exchange_;
  Run run_;
  int run_number_;
  int rows_;            // still to do
  std::int64_t first_;  // element of the tensor: where the run begins
  std::int64_t step_;   // to the next row's
};

#endif  // SOFTMAX_BULK_COPY

// The operation is an argument here, and a value elsewhere: with both there are not registers
// enough.
template <typename X, typename Y, int kPacks, RowAccess access, bool kIsLog>
__device__ __forceinline__ void run_stream(const RowArgs &args) {
#if SOFTMAX_BULK_COPY
  using Acc = AccOf<X>;
  using Exchange = ClusterExchange<Acc>;
  extern __shared__ __align__(128) unsigned char smem[];
  __shared__ PartSlots<Acc, 2 * kMostClusterRuns> parts;
  __shared__ std::uint64_t barriers[2];
  const int warps = blockDim.x / kWarpThreads;
  const int warp = threadIdx.x / kWarpThreads;
  Exchange exchange(&parts[0], barriers, args.row_blocks * warps, args.row_blocks);
  const std::uint64_t begin = address_of(args.x);
  std::uint64_t *const full =
      reinterpret_cast<std::uint64_t *>(smem + warps * args.slots * args.slot_bytes);
  const Ring<X> slots(smem + warp * args.slots * args.slot_bytes, full + warp * args.slots,
                      args.slots, args.slot_bytes,
                      {begin, begin + args.rows * args.cols * sizeof(X)});
  StreamedRows<X, Y, kPacks, access, kIsLog> rows(
      args, slots, exchange, static_cast<int>(blockIdx.x % args.row_blocks),
      blockIdx.x / args.row_blocks, gridDim.x / args.row_blocks);
  if (threadIdx.x == 0) exchange.initialise();
  if (threadIdx.x % kWarpThreads == 0) {
    slots.initialise();
    cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster);
  }
  // No copy is asked for while a neighbour's barrier is still being made: racecheck reports the
  // two.
  __syncthreads();
  exchange.arrive();
  wait_for_kernel_before(args);
  rows.fill();
  exchange.meet();
  rows.run();
#endif
}

// Registers of a thread: 96 leave room for two blocks of ten warps on a multiprocessor, in place of
// one. Those that would spill with them are slower by a tenth and more, and have more.
template <typename Y, RowAccess access>
constexpr int kStreamRegisters = sizeof(Y) == 2 && access != RowAccess::kWindow ? 128 : 96;

template <typename X, typename Y, int kPacks, RowAccess access, bool kIsLog>
__global__ void __maxnreg__((kStreamRegisters<Y, access>)) cluster_stream_kernel(RowArgs args) {
  run_stream<X, Y, kPacks, access, kIsLog>(args);
}

}  // namespace softmax
