// One fiber per CUDA thread: its own stack and a switch of a few instructions (swapcontext would
// make two system calls per switch).
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ordering.h"

extern "C" {
KoptIndex3 threadIdx, blockIdx, blockDim, gridDim;
int warpSize = 32;

// Saves the callee-saved registers and the stack pointer, then continues on another stack.
void kopt_sim_switch(void** save, void* load);
void kopt_sim_fiber_start();
}

asm(R"(
.text
.globl kopt_sim_switch
.type kopt_sim_switch, @function
kopt_sim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size kopt_sim_switch, .-kopt_sim_switch
)");

namespace kopt_sim {

namespace {

std::uint8_t* stacks = nullptr;
constexpr std::size_t kGuardBytes = 4096;
constexpr unsigned kMaxGuardedStacks = 4096;  // each guard page is a mapping of its own
constexpr std::size_t kMostPoisonedBytes = 256 << 20;  // of all stacks: poison takes real memory

// First frame of a fiber: runs the kernel for this thread and never returns.
void fiber_main() {
  void* pointers[kMaxArguments];
  const LaunchJob& launch = *g.launch;
  for (std::size_t i = 0; i < launch.values.size(); ++i)
    pointers[i] = launch.is_reference[i] ? reinterpret_cast<void*>(launch.values[i])
                                         : const_cast<std::uint64_t*>(&launch.values[i]);
  launch.entry(pointers);
  settle_pending_write();
  g.fiber->wait = Wait::done;
  return_to_scheduler();
  std::abort();
}

}  // namespace

void allocate_stacks(unsigned count) {
  const std::size_t bytes = count * kStackBytes;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("kopt-sim: cannot map stacks");
    std::exit(70);
  }
  stacks = static_cast<std::uint8_t*>(memory);
  const std::size_t most = std::min(kMostPoisonedBytes / count, kStackBytes - 2 * kGuardBytes);
  g.poisoned_stack_bytes = std::min(g.poisoned_stack_bytes, most);
  if (count > kMaxGuardedStacks) return;
  for (unsigned i = 0; i < count; ++i) mprotect(stacks + i * kStackBytes, kGuardBytes, PROT_NONE);
}

void prepare_fiber(Fiber& fiber, unsigned stack_number) {
  std::uint8_t* top = stacks + (stack_number + 1) * kStackBytes;
  auto* frame = reinterpret_cast<void**>(top) - 2;  // keeps the stack 16-byte aligned at entry
  frame[0] = reinterpret_cast<void*>(&fiber_main);
  fiber.stack_pointer = frame - 6;  // six callee-saved registers
  // Neither zeros nor what the thread before left: local memory that nobody wrote holds poison.
  auto* end = reinterpret_cast<std::uint8_t*>(frame);
  std::memset(end - g.poisoned_stack_bytes, g.poison, g.poisoned_stack_bytes);
}

// Where the stack of a fiber begins that is not running, or has been switched to last.
std::uintptr_t stack_of(const Fiber& fiber) {
  const auto first = reinterpret_cast<std::uintptr_t>(stacks);
  const auto pointer = reinterpret_cast<std::uintptr_t>(fiber.stack_pointer);
  return (pointer - first) / kStackBytes * kStackBytes + first;
}

void switch_to(Fiber& fiber) {
  g.fiber = &fiber;
  g.stack_begin = stack_of(fiber);
  threadIdx = {fiber.thread.x, fiber.thread.y, fiber.thread.z};
  refresh_stamp();
  kopt_sim_switch(&g.scheduler_stack_pointer, fiber.stack_pointer);
}

void return_to_scheduler() {
  take_back_served();
  kopt_sim_switch(&g.fiber->stack_pointer, g.scheduler_stack_pointer);
}

}  // namespace kopt_sim
