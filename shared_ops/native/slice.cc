// Slice, Reverse, DynamicSlice, DynamicUpdateSlice: blocks of a tensor as strided copies.
#include "strided_copy.h"

namespace rillet {
namespace {

Status PrepareSlice(Prepare& p) {
  const Tensor& x = p.in(0);
  const Span<int64_t> begin = p.Ints("begin"), size = p.Ints("size");
  if (p.status() != Status::kOk) return p.status();
  if (begin.size != x.rank || size.size != x.rank) return p.Fail("begin and size: expected %d numbers each", x.rank);
  StridedCopy* copy = p.NewState<StridedCopy>();
  if (!copy) return p.status();
  int64_t dims[kMaxRank];
  for (int i = 0; i < x.rank; ++i) {
    const bool inside = begin[i] >= 0 && begin[i] <= x.dims[i];
    dims[i] = inside && size[i] == -1 ? x.dims[i] - begin[i] : size[i];
    if (!inside || dims[i] < 0 || dims[i] > x.dims[i] - begin[i])
      return p.Fail("axis %d: got begin %lld and size %lld, expected a block within %lld", i,
                    static_cast<long long>(begin[i]), static_cast<long long>(size[i]),
                    static_cast<long long>(x.dims[i]));
  }
  const Strides from(x), to(x.rank, dims, SizeOf(x.dtype));
  *copy = StridedCopy(SizeOf(x.dtype));
  int64_t offset = 0;
  for (int i = 0; i < x.rank; ++i) {
    copy->AddDim(dims[i], from[i], to[i]);
    offset += begin[i] * from[i];
  }
  copy->Finish(offset);
  return p.SetOutput(0, x.dtype, x.rank, dims);
}

Status PrepareReverse(Prepare& p) {
  const Tensor& x = p.in(0);
  const Span<int64_t> axes = p.Ints("axes");
  bool turned[kMaxRank] = {};
  for (int64_t a : axes) {
    const int axis = NormalizeAxis(p, a, x.rank);
    if (axis < 0) return p.status();
    if (turned[axis]) return p.Fail("axis %d is named twice", axis);
    turned[axis] = true;
  }
  StridedCopy* copy = p.NewState<StridedCopy>();
  if (!copy || p.status() != Status::kOk) return p.status();
  *copy = StridedCopy(SizeOf(x.dtype));
  const Strides strides(x);
  int64_t offset = 0;
  for (int i = 0; i < x.rank; ++i) {
    copy->AddDim(x.dims[i], turned[i] ? -strides[i] : strides[i], strides[i]);
    if (turned[i]) offset += (x.dims[i] - 1) * strides[i];
  }
  copy->Finish(offset);
  return p.SetOutputLike(0, x);
}

Status RunCopy(const Run& run) {
  run.state<StridedCopy>().Run(run, run.in(0).data, run.out(0).data);
  return Status::kOk;
}

struct Window {
  StridedCopy copy;
  int64_t most[kMaxRank];     // the last start at which the block fits
  int64_t strides[kMaxRank];  // of the tensor that the block is cut from, in bytes
};

// Plans the copy of a block of `dims` out of (or, with `into`, back into) a tensor like x.
Status PlanWindow(Prepare& p, const Tensor& x, int start_input, int rank, const int64_t* dims, bool into) {
  const Tensor& start = p.in(start_input);
  if ((start.dtype != DType::kI32 && start.dtype != DType::kI64) || start.rank != 1 || start.dims[0] != x.rank)
    return p.Fail("start: expected a vector of %d i32 or i64", x.rank);
  if (rank != x.rank) return p.Fail("rank of the block: got %d, expected %d", rank, x.rank);
  Window* w = p.NewState<Window>();
  if (!w) return p.status();
  const Strides outer(x), inner(rank, dims, SizeOf(x.dtype));
  w->copy = StridedCopy(SizeOf(x.dtype));
  for (int i = 0; i < rank; ++i) {
    w->most[i] = x.dims[i] - dims[i];
    w->strides[i] = outer[i];
    if (dims[i] < 0 || w->most[i] < 0)
      return p.Fail("the block is longer than axis %d: got %lld, expected 0 to %lld", i,
                    static_cast<long long>(dims[i]), static_cast<long long>(x.dims[i]));
    w->copy.AddDim(dims[i], into ? inner[i] : outer[i], into ? outer[i] : inner[i]);
  }
  w->copy.Finish();
  return Status::kOk;
}

// Where the block begins: the start, moved so that the block fits.
int64_t WindowOffset(const Window& w, const Tensor& start) {
  int64_t offset = 0;
  for (int64_t i = 0; i < start.dims[0]; ++i) {
    int64_t s = start.dtype == DType::kI32 ? start.as<int32_t>()[i] : start.as<int64_t>()[i];
    s = s < 0 ? 0 : s;
    offset += (s > w.most[i] ? w.most[i] : s) * w.strides[i];
  }
  return offset;
}

Status PrepareDynamicSlice(Prepare& p) {
  int64_t dims[kMaxRank];
  const int rank = ReadShape(p, 2, dims);
  if (rank < 0 || PlanWindow(p, p.in(0), 1, rank, dims, false) != Status::kOk) return p.status();
  return p.SetOutput(0, p.in(0).dtype, rank, dims);
}

Status RunDynamicSlice(const Run& run) {
  const Window& w = run.state<Window>();
  w.copy.Run(run, run.in(0).as<char>() + WindowOffset(w, run.in(1)), run.out(0).data);
  return Status::kOk;
}

Status PrepareDynamicUpdateSlice(Prepare& p) {
  const Tensor &x = p.in(0), &update = p.in(1);
  if (x.dtype != update.dtype) return p.Fail("update: got %s, expected %s", NameOf(update.dtype), NameOf(x.dtype));
  if (PlanWindow(p, x, 2, update.rank, update.dims, true) != Status::kOk) return p.status();
  return p.SetOutputLike(0, x);
}

Status RunDynamicUpdateSlice(const Run& run) {
  const Window& w = run.state<Window>();
  const Tensor &x = run.in(0), &y = run.out(0);
  if (x.data != y.data) CopyBytes(run, y.data, x.data, static_cast<int64_t>(x.bytes()));
  w.copy.Run(run, run.in(1).data, y.as<char>() + WindowOffset(w, run.in(2)));
  return Status::kOk;
}

}  // namespace

const Kernel slice_any = {PrepareSlice, RunCopy};
const Kernel reverse_any = {PrepareReverse, RunCopy};
const Kernel dynamic_slice_any = {PrepareDynamicSlice, RunDynamicSlice};
const Kernel dynamic_update_slice_any = {PrepareDynamicUpdateSlice, RunDynamicUpdateSlice};

}  // namespace rillet
