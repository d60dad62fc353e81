// GatherGrad: every slice of dy is added, in the order of indices, where Gather took it.
#include "../scatter.h"
#include "../strided_copy.h"

namespace rillet {
namespace {

Status PrepareGatherGrad(Prepare& p) {
  int64_t dims[kMaxRank], expected[kMaxRank];
  const int rank = ReadShape(p, 0, dims);
  if (rank < 0) return p.status();
  const Tensor& dy = p.in(2);
  if (p.SetOutput(0, dy.dtype, rank, dims) != Status::kOk) return p.status();
  if (!AdderOf(dy.dtype)) return p.Fail("dy: got %s, expected numbers", NameOf(dy.dtype));
  TableShape* s = p.NewState<TableShape>();
  if (!s) return p.status();
  int dy_rank = 0;
  if (ReadGather(p, rank, dims, p.in(1), s, expected, &dy_rank) != Status::kOk) return p.status();
  bool same = dy.rank == dy_rank;
  for (int i = 0; same && i < dy_rank; ++i) same = dy.dims[i] == expected[i];
  return same ? Status::kOk : p.Fail("dy does not have the shape that Gather gives");
}

Status RunGatherGrad(const Run& run) {
  const TableShape& s = run.state<TableShape>();
  const Tensor& indices = run.in(1);
  if (CheckIndices(run, indices, s.limit) != Status::kOk) return Status::kInvalid;
  AddSlices(run, s, run.in(2), run.out(0),
            [&](int64_t batch, int64_t i) { return IndexAt(indices, batch * s.count + i); });
  return Status::kOk;
}

}  // namespace

const Kernel gather_grad_any = {PrepareGatherGrad, RunGatherGrad};

}  // namespace rillet
