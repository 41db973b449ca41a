// The functions that candidate code, compiled for the CPU, calls in the simulator's runtime. The
// object screen (object_screen.py) lets a candidate's object refer to these and to no other names
// beside libm's and the memory-access hooks that -fsanitize=thread inserts.
#pragma once

#include <cstdint>

extern "C" {
// Block-wide barrier; returns the number of threads whose `predicate` was not 0. `line` is where
// the candidate calls it: threads that meet at different lines have diverged.
unsigned kopt_sim_barrier(int predicate, int line);

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
void kopt_sim_bulk_load(void* shared, const void* global, unsigned bytes, unsigned source_bytes,
                        void* barrier);
// Stores `value` to where block `rank` of the cluster has `shared`; its `barrier` counts 4 bytes.
void kopt_sim_store_async(void* shared, unsigned value, void* barrier, unsigned rank, int line);
// Checks addresses and size of a bulk copy, which must be multiples of 16.
void kopt_sim_require_bulk(const void* to, const void* from, unsigned bytes);
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
