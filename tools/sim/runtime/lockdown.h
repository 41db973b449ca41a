// The last step before candidate code runs: this process keeps only the system calls that it
// needs to finish.
#pragma once

namespace kopt_sim {

// Allows memory for containers, signals and exit; everything else raises SIGSYS.
void lock_down();

}  // namespace kopt_sim
