// Tile and BroadcastTo: strided copies whose source stands still along the repeated dimensions.
#include "strided_copy.h"

namespace rillet {
namespace {

Status PrepareTile(Prepare& p) {
  const Tensor& x = p.in(0);
  const Span<int64_t> multiples = p.Ints("multiples");
  if (p.status() != Status::kOk) return p.status();
  if (multiples.size != x.rank)
    return p.Fail("multiples: got %lld numbers, expected %d", static_cast<long long>(multiples.size), x.rank);
  int64_t dims[kMaxRank];
  for (int i = 0; i < x.rank; ++i)
    if (multiples[i] < 0 || __builtin_mul_overflow(x.dims[i], multiples[i], &dims[i]))
      return p.Fail("multiple %d: got %lld, expected 0 or more", i, static_cast<long long>(multiples[i]));
  if (p.SetOutput(0, x.dtype, x.rank, dims) != Status::kOk) return p.status();
  StridedCopy* copy = p.NewState<StridedCopy>();
  if (!copy) return p.status();
  *copy = StridedCopy(SizeOf(x.dtype));
  const Strides from(x), to(x.rank, dims, SizeOf(x.dtype));
  for (int i = 0; i < x.rank; ++i) {
    copy->AddDim(multiples[i], 0, x.dims[i] * to[i]);
    copy->AddDim(x.dims[i], from[i], to[i]);
  }
  copy->Finish();
  return Status::kOk;
}

Status PrepareBroadcastTo(Prepare& p) {
  const Tensor& x = p.in(0);
  int64_t dims[kMaxRank];
  const int rank = ReadShape(p, 1, dims);
  if (rank < 0) return p.status();
  if (rank < x.rank) return p.Fail("shape: got %d dimensions, expected at least %d", rank, x.rank);
  if (p.SetOutput(0, x.dtype, rank, dims) != Status::kOk) return p.status();
  StridedCopy* copy = p.NewState<StridedCopy>();
  if (!copy) return p.status();
  *copy = StridedCopy(SizeOf(x.dtype));
  const Strides from(x), to(rank, dims, SizeOf(x.dtype));
  for (int i = 0; i < rank; ++i) {
    const int axis = i - (rank - x.rank);
    const int64_t have = axis < 0 ? 1 : x.dims[axis];
    if (have != 1 && have != dims[i])
      return p.Fail("dimension %d does not stretch: got %lld, expected 1 or %lld", axis, static_cast<long long>(have),
                    static_cast<long long>(dims[i]));
    copy->AddDim(dims[i], have == 1 ? 0 : from[axis], to[i]);
  }
  copy->Finish();
  return Status::kOk;
}

Status RunCopy(const Run& run) {
  run.state<StridedCopy>().Run(run, run.in(0).data, run.out(0).data);
  return Status::kOk;
}

}  // namespace

const Kernel tile_any = {PrepareTile, RunCopy};
const Kernel broadcast_to_any = {PrepareBroadcastTo, RunCopy};

}  // namespace rillet
