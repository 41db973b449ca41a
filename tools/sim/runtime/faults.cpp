// Faults: what is wrong, where, and which of several is told.
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.h"

namespace kopt_sim {

namespace {

// The lower, the sooner told: a race explains an uninitialised read, not the other way round.
unsigned rank(Fault kind) { return static_cast<unsigned>(kind); }

// As a return address: that of the next instruction.
std::uintptr_t interrupted_at(const void* context) {
  const auto* machine = static_cast<const ucontext_t*>(context);
  return static_cast<std::uintptr_t>(machine->uc_mcontext.gregs[REG_RIP]) + 1;
}

void on_crash(int signal, siginfo_t* info, void* context) {
  FaultRecord record = describe_fault(Fault::crash, interrupted_at(context));
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (signal == SIGSEGV && address >= g.stack_begin && address < g.stack_begin + 8192)
    std::snprintf(record.note, sizeof record.note,
                  "the thread's local variables and calls need more than %zu KiB of stack",
                  kStackBytes >> 10);
  else
    std::snprintf(record.note, sizeof record.note, "signal %d (%s)", signal, strsignal(signal));
  keep_fault(record);
  _exit(0);
}

void on_timeout(int, siginfo_t*, void* context) {
  keep_fault(describe_fault(Fault::timeout, interrupted_at(context)));
  _exit(0);
}

}  // namespace

FaultRecord describe_fault(Fault kind, std::uintptr_t pc) {
  FaultRecord record{};
  record.kind = kind;
  record.launch = g.launch_number;
  record.pc = pc;
  record.last_pc = g.last_pc;
  if (g.block != nullptr) {
    record.block_index = g.block->index;
    record.block = g.block->position;
  }
  if (g.fiber != nullptr) record.thread = g.fiber->thread;
  return record;
}

void keep_fault(const FaultRecord& record) {
  FaultRecord& kept = g.report->fault;
  if (kept.kind == Fault::none || rank(record.kind) < rank(kept.kind)) kept = record;
  g.stopping = true;
}

void stop_with(const FaultRecord& record) {
  keep_fault(record);
  g.fiber->wait = Wait::done;
  return_to_scheduler();
  std::abort();
}

void settle_pending_write() {
  if (g.pending_write_race.kind == Fault::none) return;
  const FaultRecord race = g.pending_write_race;
  g.pending_write_race.kind = Fault::none;
  // Two unordered stores of the same value leave the same memory in either order.
  if (std::memcmp(reinterpret_cast<void*>(g.pending_write_address), g.pending_write_bytes,
                  race.bytes) != 0)
    keep_fault(race);
}

void install_signal_handlers(unsigned timeout_ms) {
  static std::uint8_t alternate_stack[64 << 10];
  stack_t stack{};
  stack.ss_sp = alternate_stack;
  stack.ss_size = sizeof alternate_stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS}) sigaction(signal, &action, nullptr);
  struct sigaction alarm_action {};
  alarm_action.sa_sigaction = on_timeout;
  alarm_action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGALRM, &alarm_action, nullptr);
  itimerval timer{};
  timer.it_value.tv_sec = timeout_ms / 1000;
  timer.it_value.tv_usec = static_cast<suseconds_t>(timeout_ms % 1000) * 1000;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace kopt_sim
