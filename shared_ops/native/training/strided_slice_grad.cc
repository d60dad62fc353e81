// StridedSliceGrad: zeros, with dy where StridedSlice took its elements.
#include "../slice_geometry.h"
#include "../strided_copy.h"

namespace rillet {
namespace {

Status PrepareStridedSliceGrad(Prepare& p) {
  int64_t dims[kMaxRank];
  const int rank = ReadShape(p, 0, dims);
  if (rank < 0) return p.status();
  for (int i = 0; i < rank; ++i)
    if (dims[i] < 0) return p.Fail("shape: got %lld in dimension %d", static_cast<long long>(dims[i]), i);
  SliceGeometry g;
  if (ResolveSlice(p, rank, dims, &g) != Status::kOk) return p.status();
  const Tensor& dy = p.in(1);
  bool same = dy.rank == g.rank;
  for (int i = 0; same && i < g.rank; ++i) same = dy.dims[i] == g.dims[i];
  if (!same) return p.Fail("dy is not of the shape of the slice");
  if (p.SetOutput(0, dy.dtype, rank, dims) != Status::kOk) return p.status();
  StridedCopy* copy = p.NewState<StridedCopy>();
  if (!copy) return p.status();
  *copy = StridedCopy(SizeOf(dy.dtype));
  const Strides from(rank, g.count, SizeOf(dy.dtype)), to(rank, dims, SizeOf(dy.dtype));
  int64_t offset = 0;
  for (int i = 0; i < rank; ++i) {
    copy->AddDim(g.count[i], from[i], g.stride[i] * to[i]);
    offset += g.begin[i] * to[i];
  }
  copy->Finish(0, offset);
  return Status::kOk;
}

Status RunStridedSliceGrad(const Run& run) {
  const Element zero;
  const Tensor& dx = run.out(0);
  FillElements(run, dx.data, dx.size(), SizeOf(dx.dtype), zero.bytes);
  run.state<StridedCopy>().Run(run, run.in(1).data, dx.data);
  return Status::kOk;
}

}  // namespace

const Kernel strided_slice_grad_any = {PrepareStridedSliceGrad, RunStridedSliceGrad};

}  // namespace rillet
