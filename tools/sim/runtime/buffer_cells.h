// Who accessed the elements of a buffer last: stamps that all processes share, the three kinds apart.
// Most buffers are only stored to: a kind of which nobody has left a stamp takes no memory.
#pragma once

#include <cstddef>

#include "stamp.h"

namespace kopt_sim {

inline Stamp load_stamp(const Stamp& cell) { return __atomic_load_n(&cell, __ATOMIC_SEQ_CST); }

// The stamps of one kind, one for each element.
struct BufferStamps {
  Stamp* first;

  // Whether somebody may have left one; a line of its own before them, so that it is seldom waited for.
  Stamp& any() const { return *(first - kLead); }

  // Goes before the first stamp: who finds that there is none comes before it.
  void announce() const {
    if (load_stamp(any()) == 0) __atomic_store_n(&any(), Stamp{1}, __ATOMIC_SEQ_CST);
  }

  Stamp load(std::size_t cell) const { return load_stamp(any()) == 0 ? 0 : load_stamp(first[cell]); }

  static constexpr std::size_t kLead = 8;
};

struct BufferCells {
  BufferStamps write, read, met;  // as in Cell

  bool exist() const { return write.first != nullptr; }
};

// Room for `cells` of a buffer: zeros.
BufferCells map_cells(std::size_t cells);

}  // namespace kopt_sim
