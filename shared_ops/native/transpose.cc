// Transpose: a strided copy whose source dimensions come in another order.
#include "strided_copy.h"

namespace rillet {
namespace {

Status PrepareTranspose(Prepare& p) {
  const Tensor& x = p.in(0);
  const Span<int64_t> perm = p.Ints("perm");
  if (p.status() != Status::kOk) return p.status();
  if (perm.size != 0 && perm.size != x.rank)
    return p.Fail("perm: got %lld axes, expected %d", static_cast<long long>(perm.size), x.rank);
  int64_t dims[kMaxRank];
  int order[kMaxRank];
  bool named[kMaxRank] = {};
  for (int i = 0; i < x.rank; ++i) {
    order[i] = perm.size ? NormalizeAxis(p, perm[i], x.rank) : x.rank - 1 - i;
    if (order[i] < 0) return p.status();
    if (named[order[i]]) return p.Fail("perm names axis %d twice", order[i]);
    named[order[i]] = true;
    dims[i] = x.dims[order[i]];
  }
  StridedCopy* copy = p.NewState<StridedCopy>();
  if (!copy) return p.status();
  *copy = StridedCopy(SizeOf(x.dtype));
  const Strides from(x), to(x.rank, dims, SizeOf(x.dtype));
  for (int i = 0; i < x.rank; ++i) copy->AddDim(dims[i], from[order[i]], to[i]);
  copy->Finish();
  return p.SetOutput(0, x.dtype, x.rank, dims);
}

Status RunTranspose(const Run& run) {
  run.state<StridedCopy>().Run(run, run.in(0).data, run.out(0).data);
  return Status::kOk;
}

}  // namespace

const Kernel transpose_any = {PrepareTranspose, RunTranspose};

}  // namespace rillet
