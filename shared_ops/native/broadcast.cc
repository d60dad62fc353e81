#include "broadcast.h"

namespace rillet {
namespace {

// Dimension of t on the axis that lies `from_last` before the last one of the result; 1 where t has no such axis.
int64_t DimOf(const Tensor& t, int from_last) { return from_last < t.rank ? t.dims[t.rank - 1 - from_last] : 1; }

}  // namespace

Status BroadcastShape(Prepare& ctx, int first, int count, int* rank, int64_t* dims) {
  int r = 0;
  for (int k = first; k < first + count; ++k) {
    if (!ctx.Has(k)) return ctx.Fail("input %d is missing", k);
    if (ctx.in(k).rank > r) r = ctx.in(k).rank;
  }
  for (int from_last = 0; from_last < r; ++from_last) {
    int64_t dim = 1;
    for (int k = first; k < first + count; ++k) {
      const int64_t d = DimOf(ctx.in(k), from_last);
      if (d == 1 || d == dim) continue;
      if (dim != 1)
        return ctx.Fail("shapes do not broadcast: got %lld and %lld on axis %d, expected equal dimensions or 1",
                        static_cast<long long>(dim), static_cast<long long>(d), r - 1 - from_last);
      dim = d;
    }
    dims[r - 1 - from_last] = dim;
  }
  *rank = r;
  return Status::kOk;
}

int PlanBroadcast(const Prepare& ctx, int first, int count, int rank, const int64_t* dims, int64_t* plan_dims,
                  int64_t (*strides)[kMaxRank], int64_t* size) {
  // Axes from the last to the first, joined with the one before where every operand allows it.
  int64_t joined_dims[kMaxRank], joined[kMaxRank][kMaxRank], step[kMaxRank];
  for (int k = 0; k < count; ++k) step[k] = 1;
  int n = 0;
  *size = 1;
  for (int from_last = 0; from_last < rank; ++from_last) {
    const int64_t dim = dims[rank - 1 - from_last];
    *size *= dim;
    if (dim == 1) continue;
    int64_t stride[kMaxRank];
    bool joins = n > 0;
    for (int k = 0; k < count; ++k) {
      const int64_t own = DimOf(ctx.in(first + k), from_last);
      stride[k] = own == 1 ? 0 : step[k];
      step[k] *= own;
      if (n > 0) joins &= stride[k] == joined[n - 1][k] * joined_dims[n - 1];
    }
    if (joins) {
      joined_dims[n - 1] *= dim;
      continue;
    }
    for (int k = 0; k < count; ++k) joined[n][k] = stride[k];
    joined_dims[n++] = dim;
  }
  if (n == 0) {  // one element
    plan_dims[0] = 1;
    for (int k = 0; k < count; ++k) strides[k][0] = 0;
    return 1;
  }
  for (int d = 0; d < n; ++d) {
    plan_dims[d] = joined_dims[n - 1 - d];
    for (int k = 0; k < count; ++k) strides[k][d] = joined[n - 1 - d][k];
  }
  return n;
}

}  // namespace rillet
