// The functions that candidate code, compiled for the CPU, calls in the simulator's runtime. The
// object screen (object_screen.py) lets a candidate's object refer to these and to no other names
// beside libm's and the memory-access hooks that -fsanitize=thread inserts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor_steps.h"
#include "warpgroup_product.h"

extern "C" {
// Block-wide barrier; returns the number of threads whose `predicate` was not 0. `line` is where
// the candidate calls it: threads that meet at different lines have diverged.
unsigned kopt_sim_barrier(int predicate, int line);
// bar.sync, bar.arrive (`waits`: false) and their like, of barrier 0 to 15; a `count` of 0 stands for
// all threads of the block. `aligned`: the lanes of a warp come together.
void kopt_sim_named_barrier(unsigned number, unsigned count, bool waits, bool aligned, int line);
// bar.red: waits as bar.sync does, and returns how many of the threads gave a `predicate` not 0.
unsigned kopt_sim_named_vote(unsigned number, unsigned count, int predicate, bool aligned, int line);

// Warp-wide exchange: waits for the lanes of `mask` that have not exited, writes what each lane
// gave to `values`, by lane, and returns the lanes that took part. `kind` tells unlike operations
// apart.
unsigned kopt_sim_exchange(int kind, unsigned mask, std::uint64_t value, int line,
                           std::uint64_t values[32]);
// The same for one lane's value; poison if `source` took no part.
std::uint64_t kopt_sim_shuffle(unsigned mask, std::uint64_t value, unsigned source, int line);
// Orders memory among the lanes of `mask`, as __syncwarp does; exchanges alone do not.
void kopt_sim_sync_warp(unsigned mask, int line);
// The lanes of the warp that have converged at `line`.
unsigned kopt_sim_active_mask(int line);
unsigned kopt_sim_lane(void);

// The registers of one lane of D = A * B + C, four of 32 bits in a word; waits for all 32 lanes.
// `code`: matrix_code.h.
unsigned __int128 kopt_sim_mma(unsigned code, int line, unsigned __int128 a, unsigned __int128 b,
                               unsigned __int128 c);
// The same for rows of eight 16-bit elements in shared memory, whose addresses the first 8, 16 or 32
// lanes give: each load and store is checked as one of the lane that gives the address.
unsigned __int128 kopt_sim_load_matrices(unsigned code, int line, const void* row);
void kopt_sim_store_matrices(unsigned code, int line, void* row, unsigned __int128 registers);
unsigned kopt_sim_transpose_matrix(int line, unsigned elements);
// Waits for all 32 lanes, and orders nothing.
void kopt_sim_meet_warp(int line);

// wgmma, by all 128 threads of a warpgroup. The registers of a product's sums hold no number from its
// start to the wait that leaves so few groups under way that its own is not among them.
void kopt_sim_warpgroup_fence(int line);
void kopt_sim_warpgroup_product(const kopt_sim::WarpgroupProduct* product, int line);
void kopt_sim_warpgroup_commit(int line);
void kopt_sim_warpgroup_wait(unsigned groups_left, int line);

// tcgen05, by all lanes of a warp: columns of tensor memory, whose first one is stored to `shared`;
// what moves between them and registers; the waits for that.
void kopt_sim_tensor_allocate(void* shared, unsigned columns, int line);
void kopt_sim_tensor_free(unsigned address, unsigned columns, int line);
void kopt_sim_tensor_relinquish(int line);
void kopt_sim_tensor_move(const kopt_sim::TensorMove* move, int line);
void kopt_sim_tensor_wait(bool for_stores, int line);
// tcgen05.mma, .cp and .commit, of a thread; `targets`: blocks of the cluster, 0 for the barrier as given.
void kopt_sim_tensor_product(const kopt_sim::TensorProduct* product);
void kopt_sim_tensor_copy(const kopt_sim::TensorCopy* copy);
void kopt_sim_tensor_commit(void* barrier, unsigned targets, int line);
// tcgen05.fence::before_thread_sync or ::after_thread_sync, of a thread.
void kopt_sim_tensor_fence(bool after);

// scope: 0 block, 1 device, 2 system.
void kopt_sim_fence(int scope);
// Checks an atomic access of `bytes` at `address` before it happens; `reads`: its result depends
// on what was there; `caller`: an address in the candidate's line.
void kopt_sim_atomic(const volatile void* address, unsigned bytes, bool reads, const void* caller);
// Notes that an atomic operation that follows decides anew what a load has found before; `expected`
// is what a compare-and-swap takes for it, null for other operations.
void kopt_sim_rechecks(const volatile void* address, unsigned bytes, const void* expected);
// Checks that `address` is a multiple of `bytes`, for accesses wider than the hooks know.
void kopt_sim_require_aligned(const volatile void* address, unsigned bytes, bool is_store);

void kopt_sim_grid_barrier(int line);
void kopt_sim_cluster_barrier(int line);
// The two steps of a cluster barrier.
void kopt_sim_cluster_arrive(int line);
void kopt_sim_cluster_arrive_relaxed(int line);  // orders no memory
void kopt_sim_cluster_wait(int line);
// Where block `rank` of the cluster has the shared variable that `shared` points into, and which
// block's one a pointer is.
void* kopt_sim_map_shared(const void* shared, unsigned rank, int line);
unsigned kopt_sim_shared_rank(const void* shared);

// Addresses in the shared space, which PTX takes in 32 or 64 bits, and the pointers that they mean.
std::size_t kopt_sim_to_shared(const void* pointer);
void* kopt_sim_from_shared(std::size_t place);

// Asynchronous copies take effect at the wait, as late as they may: cp.async into shared memory, and
// bulk stores from there, which have groups of their own.
void kopt_sim_async_copy(void* shared, const void* global, unsigned bytes, unsigned source_bytes);
void kopt_sim_async_commit(void);
void kopt_sim_async_wait(unsigned groups_left);
void kopt_sim_bulk_store(void* global, const void* shared, unsigned bytes);
void kopt_sim_bulk_commit(void);
void kopt_sim_bulk_wait(unsigned groups_left);

// mbarriers: state by address. What they count, bulk loads and values sent by blocks of the cluster,
// lands when a thread waits for it.
void kopt_sim_mbarrier_init(void* barrier, unsigned arrivals);
void kopt_sim_mbarrier_arrive(void* barrier, unsigned expected_bytes);
void kopt_sim_mbarrier_wait(void* barrier, unsigned parity, int line);
// Arrives `count` times, of which later phases may wait for that many less, and returns which phase
// that was, for a wait by `parity`.
unsigned long long kopt_sim_mbarrier_arrive_many(void* barrier, unsigned count,
                                                 unsigned expected_bytes, bool drops);
// Arrives when the thread's copies so far have landed (cp.async.mbarrier.arrive); `counted`: for the
// phase it is one arrival more, else one of those that the barrier was made for.
void kopt_sim_async_arrive(void* barrier, bool counted);
// Adds to the bytes that the phase waits for, without arriving; takes from them.
void kopt_sim_mbarrier_expect(void* barrier, unsigned bytes);
void kopt_sim_mbarrier_complete(void* barrier, unsigned bytes);
void kopt_sim_mbarrier_invalidate(void* barrier);
// Whether the phase of `parity` is complete; it may say no where a wait would have helped.
bool kopt_sim_mbarrier_try(void* barrier, unsigned parity, int line);
void kopt_sim_bulk_load(void* shared, const void* global, unsigned bytes, unsigned source_bytes,
                        void* barrier);
// Stores `value` to where block `rank` of the cluster has `shared`; its `barrier` counts 4 bytes.
void kopt_sim_store_async(void* shared, unsigned value, void* barrier, unsigned rank, int line);
// Checks addresses and size of a bulk copy, which must be multiples of 16.
void kopt_sim_require_bulk(const void* to, const void* from, unsigned bytes);
// Sends the bulk loads that follow to these blocks of the cluster, by rank; 0: to the own one again.
void kopt_sim_multicast(unsigned targets, int line);
// Copies the tile of a tensor map (job_file.py) that begins at `start`, innermost coordinate first.
void kopt_sim_tile_load(void* shared, const void* map, void* barrier, const int* start);
void kopt_sim_tile_store(const void* shared, const void* map, const int* start);
// Orders the thread's stores to shared memory before bulk copies.
void kopt_sim_proxy_fence(void);
unsigned kopt_sim_cluster_rank(void);
unsigned kopt_sim_cluster_size(void);

// Waits for the launch before, in a launch with programmatic dependent launch.
void kopt_sim_wait_for_producer(void);
// Spins politely: lets other threads of the block run.
void kopt_sim_yield(void);
[[noreturn]] void kopt_sim_trap(int line);
// Notes that the wrapper `name` ran its CPU body.
void kopt_sim_cpu_body(const char* name);
long long kopt_sim_clock(void);
}
