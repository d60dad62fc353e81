// Which element of the input every element of a mirror-padded tensor shows: shared by MirrorPad and its gradient.
#pragma once
#include "kernel.h"

namespace rillet {

// Trailing dimensions without padding are part of the element; what is left of the last one is a row.
struct Mirror {
  struct Axis {
    int64_t size;           // padded
    int64_t source_size;    // as it was
    const int64_t* source;  // for every padded position, the position that it shows
  };
  Axis axes[kMaxRank];
  int32_t rank;  // at least 1
  int64_t element, row_bytes, source_row_bytes;
  int64_t rows;  // of the padded tensor

  // The row of the input that a padded row shows.
  int64_t SourceRow(int64_t row) const {
    int64_t found = 0, scale = 1;
    for (int i = rank - 2; i >= 0; --i) {
      found += axes[i].source[row % axes[i].size] * scale;
      row /= axes[i].size;
      scale *= axes[i].source_size;
    }
    return found;
  }
};

// Reads the attribute `mode` and makes the maps; the kernel's state is then a Mirror. `dims`: before padding.
Status PrepareMirror(Prepare& p, int rank, const int64_t* dims, Span<int64_t> paddings, size_t element);

}  // namespace rillet
