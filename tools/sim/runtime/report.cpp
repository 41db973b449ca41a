// Writes what happened as one JSON document on standard output.
#include "report.h"

#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace kopt_sim {

namespace {

const char* name_of(Fault kind) {
  switch (kind) {
    case Fault::none: return "none";
    case Fault::out_of_bounds: return "out_of_bounds";
    case Fault::misaligned: return "misaligned";
    case Fault::input_mutated: return "input_mutated";
    case Fault::crash: return "crash";
    case Fault::timeout: return "timeout";
    case Fault::barrier_divergence: return "barrier_divergence";
    case Fault::data_race: return "data_race";
    case Fault::uninitialized_read: return "uninitialized_read";
    case Fault::unsupported: return "unsupported";
  }
  return "crash";
}

// The candidate chooses names, so quotes and control characters are dropped; it can write to the
// report of its process, so the end of the text is not taken on trust.
template <std::size_t Size>
void print_quoted(const char (&text)[Size]) {
  std::putchar('"');
  for (std::size_t i = 0; i < Size && text[i] != 0; ++i)
    if (text[i] >= ' ' && text[i] != '"' && text[i] != '\\' && text[i] != 0x7f)
      std::putchar(text[i]);
  std::putchar('"');
}

template <std::size_t Size>
void print_text(const char* key, const char (&text)[Size]) {
  std::printf("\"%s\": ", key);
  print_quoted(text);
}

void print_place(const Index3& block, const Index3& thread) {
  std::printf("\"block\": [%u, %u, %u], \"thread\": [%u, %u, %u]", block.x, block.y, block.z,
              thread.x, thread.y, thread.z);
}

void print_fault(const FaultRecord& fault) {
  std::printf("\"fault\": {\"kind\": \"%s\", \"launch\": %d, \"pc\": %llu, \"last_pc\": %llu, ",
              name_of(fault.kind), fault.launch, static_cast<unsigned long long>(fault.pc),
              static_cast<unsigned long long>(fault.last_pc));
  print_place(fault.block, fault.thread);
  std::printf(", \"offset\": %lld, \"variable_bytes\": %llu, \"bytes\": %u, \"is_store\": %s, \"line\": %d, ",
              static_cast<long long>(fault.offset),
              static_cast<unsigned long long>(fault.variable_bytes), fault.bytes,
              fault.is_store ? "true" : "false", fault.line);
  print_text("variable", fault.variable);
  std::printf(", ");
  print_text("note", fault.note);
  std::printf(", \"other\": {\"pc\": %llu, \"bytes\": %u, \"is_store\": %s, ",
              static_cast<unsigned long long>(fault.other_pc), fault.other_bytes,
              fault.other_is_store ? "true" : "false");
  print_place(fault.other_block, fault.other_thread);
  std::printf("}}");
}

// The gravest fault; of equals the one of the lowest block, so that the answer does not depend
// on which process was quicker.
const FaultRecord& gravest(const WorkerReport* reports, unsigned count) {
  const FaultRecord* found = &reports[0].fault;
  for (unsigned i = 1; i < count; ++i) {
    const FaultRecord& fault = reports[i].fault;
    if (fault.kind == Fault::none) continue;
    const bool lower = fault.kind == found->kind && fault.block_index < found->block_index;
    if (found->kind == Fault::none || fault.kind < found->kind || lower) found = &fault;
  }
  return *found;
}

void add(WorkerReport& total, const WorkerReport& part) {
  for (unsigned i = 0; i < kMaxBuffers; ++i) {
    total.buffers[i].load_bytes += part.buffers[i].load_bytes;
    total.buffers[i].store_bytes += part.buffers[i].store_bytes;
    total.buffers[i].requests += part.buffers[i].requests;
    total.buffers[i].sectors += part.buffers[i].sectors;
    total.buffers[i].ideal_sectors += part.buffers[i].ideal_sectors;
  }
  total.shared_load_bytes += part.shared_load_bytes;
  total.shared_store_bytes += part.shared_store_bytes;
  total.barriers += part.barriers;
  total.blocks += part.blocks;
  total.sampled_threads += part.sampled_threads;
  total.sampled_accesses += part.sampled_accesses;
  total.sampled_load_phases += part.sampled_load_phases;
}

void print_number(const char* key, std::uint64_t value) {
  std::printf(", \"%s\": %llu", key, static_cast<unsigned long long>(value));
}

// The accesses that were made at least once, by return address.
void print_what_ran() {
  std::printf(", \"ran\": [");
  const char* separator = "";
  for (std::uintptr_t pc = g.code_begin; pc <= g.code_last && pc != 0; ++pc) {
    if (g.has_run[pc - g.code_begin] == 0) continue;
    std::printf("%s%llu", separator, static_cast<unsigned long long>(pc));
    separator = ", ";
  }
  std::printf("]");
}

}  // namespace

void write_report(const WorkerReport* reports, unsigned count) {
  WorkerReport total{};
  std::printf("{");
  print_fault(gravest(reports, count));
  std::printf(", \"cpu_bodies\": [");
  const char* separator = "";
  for (unsigned i = 0; i < count; ++i) {
    add(total, reports[i]);
    for (const auto& body : reports[i].cpu_bodies) {
      if (body[0] == 0) break;
      std::printf("%s", separator);
      print_quoted(body);
      separator = ", ";
    }
  }
  std::printf("], \"buffers\": {");
  for (unsigned i = 0; i < g.buffer_count; ++i) {
    const BufferCounters& c = total.buffers[i];
    std::printf("%s\"%s\": [%llu, %llu, %llu, %llu, %llu]", i == 0 ? "" : ", ", g.buffers[i].name,
                static_cast<unsigned long long>(c.load_bytes),
                static_cast<unsigned long long>(c.store_bytes),
                static_cast<unsigned long long>(c.requests),
                static_cast<unsigned long long>(c.sectors),
                static_cast<unsigned long long>(c.ideal_sectors));
  }
  std::printf("}");
  bool spins = false;
  for (unsigned i = 0; i < count; ++i) spins |= reports[i].spins;
  std::printf(", \"spins\": %s, \"rechecked\": [", spins ? "true" : "false");
  separator = "";
  for (const std::uint64_t pc : reports[0].rechecked) {  // learned by one process
    if (pc == 0) break;
    std::printf("%s%llu", separator, static_cast<unsigned long long>(pc));
    separator = ", ";
  }
  std::printf("]");
  print_number("shared_load_bytes", total.shared_load_bytes);
  print_number("shared_store_bytes", total.shared_store_bytes);
  print_number("barriers", total.barriers);
  print_number("blocks", total.blocks);
  print_number("sampled_threads", total.sampled_threads);
  print_number("sampled_accesses", total.sampled_accesses);
  print_number("sampled_load_phases", total.sampled_load_phases);
  print_what_ran();
  std::printf("}\n");
}

}  // namespace kopt_sim
