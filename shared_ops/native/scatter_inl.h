// The loop of scatter.h over slices.
#pragma once
#include "add_elements.h"
#include "scatter.h"

namespace rillet {

template <class RowOf>
void AddSlices(const Run& run, const TableShape& s, const Tensor& updates, const Tensor& table, const RowOf& row_of) {
  const int64_t bytes = static_cast<int64_t>(SizeOf(table.dtype));
  const AddFunction add = AdderOf(table.dtype);
  memset(table.data, 0, table.bytes());
  // A column is one inner element of one outer slice; a thread takes columns [begin, end).
  run.ParallelFor(s.batch * s.outer * s.inner, 1 + 16384 / (s.count + 1), [&](int64_t begin, int64_t end, int) {
    while (begin < end) {
      const int64_t outer = begin / s.inner, first = begin % s.inner;
      const int64_t n = end - begin < s.inner - first ? end - begin : s.inner - first;
      const char* from = updates.as<char>() + (outer * s.count * s.inner + first) * bytes;
      char* to = table.as<char>() + (outer * s.limit * s.inner + first) * bytes;
      for (int64_t i = 0; i < s.count; ++i) {
        const int64_t row = row_of(outer / s.outer, i);
        if (row >= 0) add(n, from + i * s.inner * bytes, to + row * s.inner * bytes);
      }
      begin += n;
    }
  });
}

}  // namespace rillet
