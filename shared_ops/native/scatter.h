// Indices into tables: checked, turned into rows, gathered and added back. Shared by Gather, GatherNd, ScatterNd,
// UnsortedSegmentSum and GatherGrad.
#pragma once
#include "kernel.h"

namespace rillet {

inline int64_t IndexAt(const Tensor& t, int64_t i) {
  return t.dtype == DType::kI32 ? t.as<int32_t>()[i] : t.as<int64_t>()[i];
}

inline bool IsIndexType(DType t) { return t == DType::kI32 || t == DType::kI64; }

// Fails with the index, its position in `indices` and the limit.
Status FailIndex(const Run& run, const Tensor& indices, int64_t position, int64_t limit);

// A table [batch, outer, limit, inner] from which `count` slices a batch are taken, giving [batch, outer, count,
// inner].
struct TableShape {
  int64_t batch = 1, outer = 1, limit = 0, count = 0;
  int64_t inner = 1;  // elements
};

// Reads the attributes of Gather. dims: of the table. Sets `shape`, and the dimensions of the result.
Status ReadGather(Prepare& p, int rank, const int64_t* dims, const Tensor& indices, TableShape* shape, int64_t* result,
                  int* result_rank);
// Refuses indices outside the table.
Status CheckIndices(const Run& run, const Tensor& indices, int64_t limit);

// Reads the attribute of GatherNd. `strides`: of each named dimension, in slices; the limit counts slices.
struct VectorShape {
  int64_t depth, batches, per_batch, slices;  // index vectors: batches * per_batch; the table has `slices` slices
  int64_t inner;                              // elements of a slice
  int64_t dims[kMaxRank];                     // of the named dimensions
};
Status ReadGatherNd(Prepare& p, int rank, const int64_t* dims, const Tensor& indices, VectorShape* shape,
                    int64_t* result, int* result_rank);
// The slice that every index vector names.
Status FindSlices(const Run& run, const VectorShape& shape, const Tensor& indices, int64_t* slices);

// table[.., row_of(i), ..] += updates[.., i, ..] in increasing i, over a table of zeros; row_of(batch, i) < 0: left
// out. Threads share the outer and inner elements out, never the rows: the order of sums is the same for any number of
// them.
template <class RowOf>
void AddSlices(const Run& run, const TableShape& s, const Tensor& updates, const Tensor& table, const RowOf& row_of);

}  // namespace rillet

#include "scatter_inl.h"
