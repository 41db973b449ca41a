// The report of one execution, from the reports of its processes.
#pragma once

#include "state.h"

namespace kopt_sim {

void write_report(const WorkerReport* reports, unsigned count);

}  // namespace kopt_sim
