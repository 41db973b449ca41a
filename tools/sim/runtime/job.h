// What a job says beside buffers, shared variables and launches, which go into the state.
#pragma once

namespace kopt_sim {

struct Job {
  unsigned workers;
  unsigned timeout_ms;
  unsigned poison;
};

Job read_job(const char* path);

}  // namespace kopt_sim
