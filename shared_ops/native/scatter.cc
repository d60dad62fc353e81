// Geometry and checks of indices into tables (scatter.h).
#include "scatter.h"

#include <cstdio>

namespace rillet {

Status FailIndex(const Run& run, const Tensor& indices, int64_t position, int64_t limit) {
  char place[128] = "";
  int64_t at[kMaxRank], rest = position;
  for (int i = indices.rank - 1; i >= 0; --i) {
    at[i] = rest % indices.dims[i];
    rest /= indices.dims[i];
  }
  size_t used = 0;
  for (int i = 0; i < indices.rank && used < sizeof(place); ++i) {
    const int n = snprintf(place + used, sizeof(place) - used, i ? ", %lld" : "%lld", static_cast<long long>(at[i]));
    used += static_cast<size_t>(n > 0 ? n : 0);
  }
  return run.Fail("index out of range at position (%s%s) of indices: got %lld, expected 0 to %lld", place,
                  indices.rank == 1 ? "," : "", static_cast<long long>(IndexAt(indices, position)),
                  static_cast<long long>(limit - 1));
}

Status CheckIndices(const Run& run, const Tensor& indices, int64_t limit) {
  for (int64_t i = 0, n = indices.size(); i < n; ++i) {
    const int64_t index = IndexAt(indices, i);
    if (index < 0 || index >= limit) return FailIndex(run, indices, i, limit);
  }
  return Status::kOk;
}

namespace {

Status Append(Prepare& p, const int64_t* dims, int begin, int end, int64_t* result, int* rank) {
  for (int i = begin; i < end; ++i) {
    if (*rank == kMaxRank) return p.Fail("too many dimensions: expected at most %d", kMaxRank);
    result[(*rank)++] = dims[i];
  }
  return Status::kOk;
}

Status CheckBatch(Prepare& p, int64_t batch, const int64_t* dims, const Tensor& indices) {
  for (int i = 0; i < batch; ++i)
    if (dims[i] != indices.dims[i])
      return p.Fail("batch dimension %d: got %lld, expected %lld", i, static_cast<long long>(indices.dims[i]),
                    static_cast<long long>(dims[i]));
  return Status::kOk;
}

int64_t Product(const int64_t* dims, int begin, int end) {
  int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= dims[i];
  return n;
}

}  // namespace

Status ReadGather(Prepare& p, int rank, const int64_t* dims, const Tensor& indices, TableShape* shape, int64_t* result,
                  int* result_rank) {
  const int64_t given = p.Int("axis"), batch = p.Int("batch_dims");
  if (p.status() != Status::kOk) return p.status();
  if (given < -rank || given >= rank)
    return p.Fail("axis out of range: got %lld, expected %d to %d", static_cast<long long>(given), -rank, rank - 1);
  const int axis = static_cast<int>(given < 0 ? given + rank : given);
  if (!IsIndexType(indices.dtype)) return p.Fail("indices: got %s, expected i32 or i64", NameOf(indices.dtype));
  if (batch < 0 || batch > axis || batch > indices.rank)
    return p.Fail("batch_dims: got %lld, expected at most the axis and the rank of indices",
                  static_cast<long long>(batch));
  const int b = static_cast<int>(batch);
  if (CheckBatch(p, b, dims, indices) != Status::kOk) return p.status();
  shape->batch = Product(dims, 0, b);
  shape->outer = Product(dims, b, axis);
  shape->limit = dims[axis];
  shape->count = Product(indices.dims, b, indices.rank);
  shape->inner = Product(dims, axis + 1, rank);
  *result_rank = 0;
  if (Append(p, dims, 0, axis, result, result_rank) != Status::kOk ||
      Append(p, indices.dims, b, indices.rank, result, result_rank) != Status::kOk)
    return p.status();
  return Append(p, dims, axis + 1, rank, result, result_rank);
}

Status ReadGatherNd(Prepare& p, int rank, const int64_t* dims, const Tensor& indices, VectorShape* s, int64_t* result,
                    int* result_rank) {
  const int64_t batch = p.Int("batch_dims");
  if (p.status() != Status::kOk) return p.status();
  if (!IsIndexType(indices.dtype)) return p.Fail("indices: got %s, expected i32 or i64", NameOf(indices.dtype));
  if (batch < 0 || batch >= indices.rank || batch > rank)
    return p.Fail("batch_dims %lld does not fit indices of rank %d", static_cast<long long>(batch), indices.rank);
  const int b = static_cast<int>(batch);
  s->depth = indices.dims[indices.rank - 1];
  if (s->depth > rank - b)
    return p.Fail("length of the index vectors: got %lld, expected at most %d", static_cast<long long>(s->depth),
                  rank - b);
  if (CheckBatch(p, b, dims, indices) != Status::kOk) return p.status();
  const int named = b + static_cast<int>(s->depth);
  for (int i = b; i < named; ++i) s->dims[i - b] = dims[i];
  s->batches = Product(dims, 0, b);
  s->per_batch = Product(indices.dims, b, indices.rank - 1);
  s->slices = Product(dims, 0, named);
  s->inner = Product(dims, named, rank);
  *result_rank = 0;
  if (Append(p, indices.dims, 0, indices.rank - 1, result, result_rank) != Status::kOk) return p.status();
  return Append(p, dims, named, rank, result, result_rank);
}

Status FindSlices(const Run& run, const VectorShape& s, const Tensor& indices, int64_t* slices) {
  for (int64_t v = 0, n = s.batches * s.per_batch; v < n; ++v) {
    int64_t slice = v / s.per_batch;
    for (int64_t k = 0; k < s.depth; ++k) {
      const int64_t index = IndexAt(indices, v * s.depth + k);
      if (index < 0 || index >= s.dims[k]) return FailIndex(run, indices, v * s.depth + k, s.dims[k]);
      slice = slice * s.dims[k] + index;
    }
    slices[v] = slice;
  }
  return Status::kOk;
}

}  // namespace rillet
