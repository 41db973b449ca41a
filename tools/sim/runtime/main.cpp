// kopt-sim JOB: runs the launches of a job one after another, the blocks of each spread over
// forked processes, and prints a report. The candidate's code runs only in the forked processes,
// behind a filter that leaves them no system call of use.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "job.h"
#include "lockdown.h"
#include "report.h"
#include "state.h"

namespace kopt_sim {

namespace {

// Zeroed memory that all processes share.
void* map_shared(std::size_t bytes) {
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("kopt-sim: cannot map reports");
    std::exit(70);
  }
  return memory;
}

// Dynamic shared memory takes the size that the launch asks for.
void resize_dynamic_shared(std::uint64_t bytes) {
  for (SharedVariable& variable : g.shared) {
    if (std::strcmp(variable.name, "dynamic_smem") != 0) continue;
    variable.bytes = bytes;
    variable.shadow = {std::vector<Cell>((bytes >> 2) + 1), 2};
  }
}

[[noreturn]] void run_share(const Job& job, unsigned worker, unsigned workers,
                            std::uint64_t groups, std::uint64_t group_size) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  g.single_process = workers == 1;
  g.random.seed(g.schedule_seed * 977u + worker);
  g.accesses_until_switch = draw_turn();
  g.poison = static_cast<std::uint8_t>(job.poison);
  const std::uint64_t resident = blocks_together(*g.launch);
  allocate_stacks(static_cast<unsigned>(resident * g.threads_per_block));
  for (SharedVariable& variable : g.shared)
    std::memset(reinterpret_cast<void*>(variable.address), static_cast<int>(job.poison),
                variable.bytes);
  install_signal_handlers(job.timeout_ms);
  lock_down();
  const std::uint64_t first = groups * worker / workers, last = groups * (worker + 1) / workers;
  run_blocks(first * group_size, (last - first) * group_size);
  g.report->finished = true;
  _exit(0);
}

void run_launch(const Job& job, WorkerReport* reports, unsigned workers) {
  const LaunchJob& launch = *g.launch;
  const std::uint64_t blocks = volume(launch.grid);
  const std::uint64_t group_size = launch.cooperative ? blocks : volume(launch.cluster);
  const std::uint64_t groups = blocks / group_size;
  workers = static_cast<unsigned>(std::min<std::uint64_t>(workers, groups));
  g.threads_per_block = volume(launch.block);
  resize_dynamic_shared(launch.dynamic_smem_bytes);
  pid_t children[256] = {};
  for (unsigned worker = 0; worker < workers; ++worker) {
    g.report = &reports[worker];
    g.report->finished = false;
    children[worker] = fork();
    if (children[worker] == 0) run_share(job, worker, workers, groups, group_size);
    if (children[worker] < 0) {
      std::perror("kopt-sim: cannot fork");
      std::exit(70);
    }
  }
  for (unsigned worker = 0; worker < workers; ++worker) {
    int status = 0;
    waitpid(children[worker], &status, 0);
    g.report = &reports[worker];
    if (g.report->finished || g.report->fault.kind != Fault::none) continue;
    FaultRecord record{};
    record.kind = Fault::crash;
    record.launch = g.launch_number;
    std::snprintf(record.note, sizeof record.note, "the process ended with %s %d",
                  WIFSIGNALED(status) ? "signal" : "exit status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    g.report->fault = record;
  }
}

bool any_fault(const WorkerReport* reports, unsigned workers) {
  return std::any_of(reports, reports + workers,
                     [](const WorkerReport& r) { return r.fault.kind != Fault::none; });
}

}  // namespace
}  // namespace kopt_sim

int main(int argc, char** argv) {
  using namespace kopt_sim;
  if (argc != 2) {
    std::fprintf(stderr, "usage: kopt-sim JOB\n");
    return 64;
  }
  const Job job = read_job(argv[1]);
  const unsigned workers = std::clamp(job.workers, 1u, 256u);
  auto* reports = static_cast<WorkerReport*>(map_shared(workers * sizeof(WorkerReport)));
  g.has_run = static_cast<std::uint8_t*>(map_shared(g.code_last - g.code_begin + 1));
  for (const LaunchJob& launch : g.launches) {
    g.launch = &launch;
    run_launch(job, reports, workers);
    if (any_fault(reports, workers)) break;
    ++g.launch_number;
    g.stamp_block_base += volume(launch.grid);
    g.first_stamp_block = g.stamp_block_base;
  }
  write_report(reports, workers);
  std::fflush(stdout);
  return 0;
}
