// The policies of TILE, whose rows lie in shared memory, and of CLUSTER and GRID, which spread a
// row over the registers of several blocks.
//
// Slab size and threads are functions of N and the types: they decide the order of additions. How
// many blocks share a row does not, so that may depend on M.
#include <algorithm>

#include "core/dtype.h"
#include "core/grid_schedule.h"
#include "core/slabs.h"
#include "select/policy.h"
#include "select/stream_shape.h"

namespace softmax {
namespace {

constexpr int kWarp = 32;
constexpr int kMostSpreadThreads = 512;
constexpr std::int64_t kReservedBytes = 1024;   // of shared memory, by the system, a block
constexpr std::int64_t kStaticBytes = 1024;     // at most, of the kernels' own
constexpr int kRegisters = 65536;               // a multiprocessor's
constexpr std::int64_t kTeamSlabBytes = 65536;  // of blocks that are no cluster, at most
constexpr int kTileBlocksPerSm = 8;             // of TILE, about as many as find room
constexpr std::int64_t kFewGridRows = 4;  // of GRID: no more than this, all of the card for each

std::int64_t row_part_bytes(const Problem &p) { return part_bytes(accumulator_size(p.x_dtype)); }

bool has_bulk_copies(const DeviceCaps &caps, char *why, std::size_t cap) {
  if (caps.compute_capability >= 90) return true;
  return decline(why, cap, "needs bulk copies: compute capability 9.0 or above, and this is %d.%d",
                 caps.compute_capability / 10, caps.compute_capability % 10);
}

std::int64_t smem_per_sm(const DeviceCaps &caps) {
  return std::max(caps.smem_per_sm_bytes, caps.smem_per_block_bytes + kReservedBytes);
}

int blocks_with(const DeviceCaps &caps, const Problem &p, int threads, std::int64_t smem_bytes) {
  const int registers = p.x_dtype == SOFTMAX_DTYPE_F64 ? 128 : 64;
  const std::int64_t by_smem = smem_per_sm(caps) / (smem_bytes + kReservedBytes + kStaticBytes);
  const std::int64_t by_threads = kRegisters / registers / threads;
  return static_cast<int>(std::max<std::int64_t>(1, std::min(by_smem, by_threads)));
}

}  // namespace

bool tile_policy(const DeviceCaps &caps, const Problem &p, Policy *policy, char *why,
                 std::size_t cap) {
  if (!has_bulk_copies(caps, why, cap)) return false;
  const int size = dtype_size(p.x_dtype);
  const RowShape shape = tile_shape(p.cols, size);
  if (shape.packs == 0) {
    return decline(why, cap, "a tile's rows have at most %d columns of %s",
                   kWarp * kWarpMostPacks * kHeldPackBytes / size, dtype_name(p.x_dtype));
  }
  policy->threads_per_row = shape.lanes;
  policy->packs = shape.packs;
  policy->rows_per_block = kTileThreads / shape.lanes * warp_rows_a_lane(shape.packs);
  const std::int64_t x_bytes = policy->rows_per_block * p.cols * size;
  const std::int64_t y_bytes = policy->rows_per_block * p.cols * dtype_size(p.y_dtype);
  // As many on their way as were best where tiles have 4 to 16 KB (2^26 elements, cold).
  const std::int64_t on_their_way = size == 2 ? 37 << 10 : size == 4 ? 27 << 10 : 20 << 10;
  const std::int64_t most_stages =
      std::clamp<std::int64_t>(on_their_way / x_bytes, 1, size == 2 ? kMostTiles : 3);
  // Where there are few, blocks of their own: others would stand idle.
  const std::int64_t tiles = ceil_div(p.rows, policy->rows_per_block);
  const std::int64_t resident = std::int64_t{kTileBlocksPerSm} * caps.sm_count;
  policy->stages =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(tiles / resident, 1, most_stages));
  // At most: results have a place of their own where they do not fit their inputs'; and of as many
  // rows as there may be, whose algorithm is the same.
  policy->smem_bytes = most_stages * slot_bytes(x_bytes) + slot_bytes(y_bytes);
  if (ceil_div(p.rows, std::int64_t{policy->rows_per_block} * policy->stages) > INT32_MAX) {
    return decline(why, cap, "more than %d tiles", INT32_MAX);
  }
  if (is_whole_words(p.cols, size)) {
    policy->vec_bytes = kHeldPackBytes;
    // Not where many rows would find no room: others take them, in another order.
    const bool has_room = policy->smem_bytes <= caps.smem_per_block_bytes;
    if (has_room && take_few_rows(caps, p, shape.lanes, 1, policy)) policy->stages = 0;
  }
  return true;
}

namespace {

bool is_half_units(const Problem &p) {
  const int size = dtype_size(p.x_dtype);
  return size == 2 && goes_by_units(p.cols, size);
}

// What both need, and the slabs that come of it.
Slabs spread_policy(const Problem &p, std::int64_t slab_bytes, Policy *policy) {
  const int size = dtype_size(p.x_dtype);
  policy->rows_per_block = 1;
  policy->vec_bytes = 16;
  policy->packs = size == 8 || dtype_size(p.y_dtype) > size ? 4 : 8;
  // 1024 threads of 64 registers, or 512 of 128.
  policy->slab_bytes = std::min<std::int64_t>(slab_bytes, kMostSpreadThreads * 16 * policy->packs);
  const Slabs slabs = cut_row(p.cols, size, policy->packs, policy->slab_bytes);
  policy->threads_per_row = kWarp * slabs.warps;
  policy->smem_bytes = kWarp * row_part_bytes(p);
  return slabs;
}

// Teams of blocks that are all resident and stay, a slab of a row each or several; `parts` of a row
// meet. False where there is too little shared memory, or rows are too few or too many for it.
bool teams_policy(const DeviceCaps &caps, const Problem &p, const Slabs &slabs, std::int64_t parts,
                  std::int64_t few_rounds, Policy *policy) {
  const int accumulator = accumulator_size(p.x_dtype);
  if (slabs.count < 2 || parts > most_grid_slabs(accumulator) || p.rows > INT32_MAX) return false;
  const int slots =
      grid_slots(caps.smem_per_block_bytes, parts, accumulator, policy->packs, slabs.warps);
  if (slots < 2) return false;
  // The first rows of every team are on their way for nobody.
  if (p.rows < few_rounds * (caps.sm_count / slabs.count)) return false;
  const GridShape shape = grid_shape(slabs.count, p.rows, caps.sm_count, slots);
  if (shape.row_blocks == 0) return false;
  policy->row_blocks = shape.row_blocks;
  policy->stages = slots;
  policy->blocks_per_sm = 1;
  policy->smem_bytes = grid_meeting_bytes(accumulator) + grid_row_bytes(parts, accumulator) +
                       grid_slots_bytes(policy->packs, slabs.warps, slots);
  policy->workspace_bytes = shape.teams * team_message_bytes(parts, accumulator);
  return true;
}

// CLUSTER with rows on their way, in teams that are no clusters and yet add up as those do.
bool cluster_teams_policy(const DeviceCaps &caps, const Problem &p, std::int64_t runs,
                          std::int64_t few_rounds, Policy *policy) {
  Policy teams = *policy;
  const Slabs slabs = spread_policy(p, kTeamSlabBytes, &teams);
  if (!teams_policy(caps, p, slabs, runs, few_rounds, &teams)) return false;
  // There is a kernel for this where they lag.
  if (!can_lag(slabs.count, teams.row_blocks, teams.stages)) return false;
  *policy = teams;
  return true;
}

// CLUSTER with rows on their way. False where a row is too short or too long for that, rows are too
// few, or the card has too little shared memory.
bool stream_policy(const DeviceCaps &caps, const Problem &p, Policy *policy) {
  // There is no kernel for 16-bit rows by elements, which fit into one block, and for float64,
  // whose arithmetic is what is waited for.
  if (is_half_units(p) || dtype_size(p.x_dtype) == 8 || p.rows > INT32_MAX) return false;
  // A cluster for every row is sooner done while there are few of them.
  constexpr std::int64_t kFewRounds = 4;
  const std::int64_t runs = runs_of(p.cols, dtype_size(p.x_dtype), policy->packs);
  const StreamShape shape = stream_shape(caps, p, runs);
  if (shape.team == StreamTeam::kTeams && cluster_teams_policy(caps, p, runs, kFewRounds, policy)) {
    return true;
  }
  const std::int64_t most_blocks = most_cluster_blocks(caps.compute_capability);
  const std::int64_t blocks =
      std::max<std::int64_t>({2, ceil_div(runs, kStreamWarps), shape.blocks});
  if (blocks > most_blocks) return false;
  const std::int64_t warps = ceil_div(runs, blocks);
  // The most that any number of blocks needs.
  const std::int64_t bytes = 2 * kMostClusterRuns * row_part_bytes(p) + kStaticBytes +
                             kStreamWarps * ring_bytes(stream_slot_bytes(policy->packs), 1);
  if (bytes > caps.smem_per_block_bytes) return false;
  if (p.rows < kFewRounds * (caps.sm_count / blocks)) return false;
  // What is not measured, or finds no room, may come out larger: see stream_plan.h.
  policy->cluster = static_cast<std::int32_t>(blocks);
  policy->row_blocks = shape.blocks;
  policy->threads_per_row = static_cast<std::int32_t>(kWarp * warps);
  policy->stages = 1;
  policy->blocks_per_sm = 1;
  policy->slab_bytes = warps * run_bytes(policy->packs);
  policy->smem_bytes = bytes;
  return true;
}

}  // namespace

bool cluster_policy(const DeviceCaps &caps, const Problem &p, Policy *policy, char *why,
                    std::size_t cap) {
  if (!has_bulk_copies(caps, why, cap)) return false;
  const int most_blocks = most_cluster_blocks(caps.compute_capability);
  // The smallest slabs of which a cluster takes one a block: 16, 32 or 64 KB. Where that would be
  // most of a multiprocessor for every block, two of 32 KB are better than one of 64.
  const std::int64_t row_bytes = p.cols * dtype_size(p.x_dtype);
  std::int64_t slab_bytes = 16384;
  if (row_bytes > slab_bytes * most_blocks) slab_bytes = 32768;
  if (row_bytes > slab_bytes * most_blocks && row_bytes <= 65536 * 10) slab_bytes = 65536;
  const Slabs slabs = spread_policy(p, slab_bytes, policy);
  if (slabs.count > kMostClusterRuns / slabs.warps) {
    return decline(why, cap, "a row of more than %d runs is for grid", kMostClusterRuns);
  }
  if (slabs.count > 1 && stream_policy(caps, p, policy)) return true;
  policy->cluster = static_cast<int>(std::min<std::int64_t>(slabs.count, most_blocks));
  policy->row_blocks = policy->cluster;
  policy->smem_bytes += 2 * kMostClusterRuns * row_part_bytes(p);
  return true;
}

namespace {

// GRID with rows on their way.
bool grid_stream_policy(const DeviceCaps &caps, const Problem &p, const Slabs &slabs,
                        Policy *policy) {
  constexpr std::int64_t kFewRounds = 2;
  if (dtype_size(p.x_dtype) == 8 || p.rows <= kFewGridRows) return false;  // as in stream_policy
  return teams_policy(caps, p, slabs, slabs.count, kFewRounds, policy);
}

}  // namespace

bool grid_policy(const DeviceCaps &caps, const Problem &p, Policy *policy, char *why,
                 std::size_t cap) {
  if (!has_bulk_copies(caps, why, cap)) return false;
  const Slabs slabs = spread_policy(p, kTeamSlabBytes, policy);
  if (slabs.count > INT32_MAX) {
    return decline(why, cap, "a row of more than %d slabs", INT32_MAX);
  }
  if (grid_stream_policy(caps, p, slabs, policy)) return true;
  policy->blocks_per_sm = blocks_with(caps, p, policy->threads_per_row, policy->smem_bytes);
  // Teams of a quarter of the card hide each other's waiting; a few rows use all of it.
  const std::int64_t resident = std::int64_t{caps.sm_count} * policy->blocks_per_sm;
  const std::int64_t most =
      std::max<std::int64_t>(1, p.rows <= kFewGridRows ? resident : resident / 4);
  policy->row_blocks = static_cast<int>(std::min<std::int64_t>(slabs.count, most));
  // At most: a counter and two rows' parts for every team.
  const std::int64_t teams = std::max<std::int64_t>(1, resident / policy->row_blocks);
  policy->workspace_bytes = teams * (kTeamCounterBytes + 2 * slabs.count * row_part_bytes(p));
  return true;
}

}  // namespace softmax
