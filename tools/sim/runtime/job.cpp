// Reads the job that the Python side wrote: one record a line, fields separated by spaces. The
// writer is trusted (job_file.py); a line that does not parse is a bug and ends the process.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "job.h"
#include "state.h"

namespace kopt_sim {

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "kopt-sim: %s\n", what.c_str());
  std::exit(70);
}

Role role_named(const std::string& name) {
  if (name == "in") return Role::in;
  if (name == "out") return Role::out;
  if (name == "inout") return Role::inout;
  if (name == "scratch") return Role::scratch;
  fail("unknown role " + name);
}

void* map_at(std::uintptr_t address, std::uint64_t bytes, int protection, int flags, int file) {
  void* wanted = reinterpret_cast<void*>(address);
  void* memory = mmap(wanted, bytes, protection, flags | MAP_FIXED_NOREPLACE, file, 0);
  if (memory != wanted) fail(std::string("cannot map a buffer: ") + std::strerror(errno));
  return memory;
}

// Every buffer is a file that the parent made; in, inout and zeroed ones already hold their
// contents. Writable ones are shared, so that results need no copy.
void add_buffer(std::istringstream& line) {
  std::string name, role, path;
  std::uint64_t bytes = 0;
  unsigned shift = 0;
  bool initialized = false, is_static = false;
  line >> name >> role >> bytes >> shift >> initialized >> is_static >> path;
  if (!line || g.buffer_count == kMaxBuffers) fail("bad buffer line");
  Buffer& buffer = g.buffers[g.buffer_count];
  std::snprintf(buffer.name, sizeof buffer.name, "%s", name.c_str());
  buffer.bytes = bytes;
  buffer.granule_shift = shift;
  buffer.role = role_named(role);
  buffer.initialized = initialized;
  buffer.is_static = is_static;
  const bool read_only = buffer.role == Role::in;
  const int file = open(path.c_str(), read_only ? O_RDONLY : O_RDWR);
  if (file < 0) fail("cannot open " + path);
  const std::uintptr_t base = kArena + (std::uintptr_t{g.buffer_count} << kSlotBits) + kSlotLead;
  buffer.base = static_cast<std::uint8_t*>(
      map_at(base, bytes, read_only ? PROT_READ : PROT_READ | PROT_WRITE,
             read_only ? MAP_PRIVATE : MAP_SHARED, file));
  close(file);
  if (read_only) g.plain_bytes[g.buffer_count] = bytes;
  else buffer.cells = map_cells(((bytes - 1) >> shift) + 1);
  ++g.buffer_count;
}

void add_shared(std::istringstream& line) {
  SharedVariable variable{};
  std::string name;
  line >> name >> variable.address >> variable.bytes;
  if (!line) fail("bad shared line");
  std::snprintf(variable.name, sizeof variable.name, "%s", name.c_str());
  variable.shadow = {std::vector<Cell>((variable.bytes >> 2) + 1), 2};
  g.shared.push_back(std::move(variable));
}

void add_launch(std::istringstream& line) {
  LaunchJob launch{};
  std::uintptr_t entry = 0;
  std::size_t count = 0;
  line >> launch.kernel >> entry >> launch.grid.x >> launch.grid.y >> launch.grid.z >>
      launch.block.x >> launch.block.y >> launch.block.z >> launch.cluster.x >>
      launch.cluster.y >> launch.cluster.z >> launch.dynamic_smem_bytes >> launch.cooperative >>
      launch.dependent >> count;
  launch.entry = reinterpret_cast<void (*)(void**)>(entry);
  for (std::size_t i = 0; i < count; ++i) {
    std::string kind;
    std::uint64_t value = 0;
    line >> kind >> value;
    if (kind != "value") value = reinterpret_cast<std::uint64_t>(g.buffers[value].base);
    launch.values.push_back(value);
    launch.is_reference.push_back(kind == "map");
  }
  if (!line) fail("bad launch line");
  g.launches.push_back(std::move(launch));
}

void read_again(std::istringstream& line) {
  line >> g.filler >> g.together >> g.learns;
  std::uintptr_t pc = 0;
  while (line >> pc) g.rechecked.push_back(pc);
}

}  // namespace

BufferCells map_cells(std::size_t cells) {
  constexpr std::size_t kLead = BufferStamps::kLead;
  const std::size_t stamps = (cells + 2 * kLead - 1) / kLead * kLead;  // each kind has whole lines
  void* memory = mmap(nullptr, 3 * stamps * sizeof(Stamp), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail("cannot map shadow memory");
  Stamp* const first = static_cast<Stamp*>(memory) + kLead;
  return {{first}, {first + stamps}, {first + 2 * stamps}};
}

Job read_job(const char* path) {
  std::ifstream file(path);
  if (!file) fail(std::string("cannot read ") + path);
  Job job{};
  g.filler = -1;
  std::string text, keyword;
  while (std::getline(file, text)) {
    std::istringstream line(text);
    line >> keyword;
    if (keyword == "buffer") add_buffer(line);
    else if (keyword == "shared") add_shared(line);
    else if (keyword == "launch") add_launch(line);
    else if (keyword == "constants") line >> g.constant_begin >> g.constant_end;
    else if (keyword == "code") line >> g.code_begin >> g.code_last;
    else if (keyword == "seed") line >> g.schedule_seed;
    else if (keyword == "workers") line >> job.workers;
    else if (keyword == "timeout_ms") line >> job.timeout_ms;
    else if (keyword == "poison") line >> job.poison;
    else if (keyword == "stack") line >> g.poisoned_stack_bytes;
    else if (keyword == "again") read_again(line);
    else if (keyword == "watch") line >> g.watch.variable >> g.watch.offset >> g.watch.bytes;
    else fail("unknown keyword " + keyword);
  }
  // A second look sees every load.
  if (is_second_look()) std::fill_n(g.plain_bytes, kMaxBuffers, std::uint64_t{0});
  return job;
}

}  // namespace kopt_sim
