// Ops whose output is their input's bytes: Identity, StopGradient, Reshape, ExpandDims, Squeeze, Flatten. The planner
// shares the memory; `run` serves those who keep the two apart.
#include "strided_copy.h"

namespace rillet {
namespace {

Status RunAlias(const Run& run) {
  if (run.out(0).data != run.in(0).data) CopyBytes(run, run.out(0).data, run.in(0).data, run.in(0).bytes());
  return Status::kOk;
}

Status PrepareIdentity(Prepare& p) { return p.SetOutputLike(0, p.in(0)); }

Status PrepareReshape(Prepare& p) {
  int64_t dims[kMaxRank];
  const int rank = ReadShape(p, 1, dims);
  if (rank < 0) return p.status();
  const int64_t size = p.in(0).size();
  int64_t known = 1;
  int open = -1;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] == -1 && open < 0) {
      open = i;
    } else if (dims[i] < 0) {
      return p.Fail("shape: got %lld in dimension %d, expected 0 or more, and at most one -1",
                    static_cast<long long>(dims[i]), i);
    } else if (__builtin_mul_overflow(known, dims[i], &known)) {
      return p.Fail("shape: too large");
    }
  }
  if (open >= 0) {
    if (known == 0) return p.Fail("shape: -1 beside a dimension of 0 could be any number");
    dims[open] = size / known;
    known *= dims[open];
  }
  if (known != size)
    return p.Fail("the number of elements changes: got %lld, expected %lld", static_cast<long long>(known),
                  static_cast<long long>(size));
  return p.SetOutput(0, p.in(0).dtype, rank, dims);
}

Status PrepareExpandDims(Prepare& p) {
  const Tensor& x = p.in(0);
  if (x.rank == kMaxRank) return p.Fail("too many dimensions: got %d, expected at most %d", kMaxRank + 1, kMaxRank);
  const int axis = NormalizeAxis(p, p.Int("axis"), x.rank + 1);
  if (p.status() != Status::kOk) return p.status();
  int64_t dims[kMaxRank];
  for (int i = 0; i <= x.rank; ++i) dims[i] = i < axis ? x.dims[i] : i == axis ? 1 : x.dims[i - 1];
  return p.SetOutput(0, x.dtype, x.rank + 1, dims);
}

Status PrepareSqueeze(Prepare& p) {
  const Tensor& x = p.in(0);
  const Span<int64_t> axes = p.Ints("axes");
  bool goes[kMaxRank] = {};
  for (int64_t a : axes) {
    const int axis = NormalizeAxis(p, a, x.rank);
    if (axis < 0) return p.status();
    if (goes[axis]) return p.Fail("axis %d is named twice", axis);
    if (x.dims[axis] != 1)
      return p.Fail("dimension %d: got %lld, expected 1", axis, static_cast<long long>(x.dims[axis]));
    goes[axis] = true;
  }
  int64_t dims[kMaxRank];
  int rank = 0;
  for (int i = 0; i < x.rank; ++i)
    if (!(axes.size ? goes[i] : x.dims[i] == 1)) dims[rank++] = x.dims[i];
  if (p.status() != Status::kOk) return p.status();
  return p.SetOutput(0, x.dtype, rank, dims);
}

Status PrepareFlatten(Prepare& p) {
  const Tensor& x = p.in(0);
  int64_t axis = p.Int("axis");
  if (p.status() != Status::kOk) return p.status();
  if (axis < -x.rank || axis > x.rank)
    return p.Fail("axis out of range: got %lld, expected %d to %d", static_cast<long long>(axis), -x.rank, x.rank);
  if (axis < 0) axis += x.rank;
  int64_t dims[2] = {1, 1};
  for (int i = 0; i < x.rank; ++i) dims[i >= axis] *= x.dims[i];
  return p.SetOutput(0, x.dtype, 2, dims);
}

}  // namespace

const Kernel identity_any = {PrepareIdentity, RunAlias};
const Kernel stop_gradient_any = {PrepareIdentity, RunAlias};
const Kernel reshape_any = {PrepareReshape, RunAlias};
const Kernel expand_dims_any = {PrepareExpandDims, RunAlias};
const Kernel squeeze_any = {PrepareSqueeze, RunAlias};
const Kernel flatten_any = {PrepareFlatten, RunAlias};

}  // namespace rillet
