// StridedSlice: x[begin:end:stride, ...] with TensorFlow's masks, as one strided copy.
#include "slice_geometry.h"
#include "strided_copy.h"

namespace rillet {
namespace {

struct Masks {
  Span<int64_t> begin, end, strides;
  int64_t begin_mask, end_mask, ellipsis, new_axis, shrink;

  explicit Masks(Prepare& p)
      : begin(p.Ints("begin")),
        end(p.Ints("end")),
        strides(p.Ints("strides")),
        begin_mask(p.Int("begin_mask")),
        end_mask(p.Int("end_mask")),
        ellipsis(p.Int("ellipsis_mask")),
        new_axis(p.Int("new_axis_mask")),
        shrink(p.Int("shrink_axis_mask")) {}
  static bool Bit(int64_t mask, int64_t i) { return i < 63 && (mask >> i & 1); }
};

int64_t Clamp(int64_t v, int64_t low, int64_t high) { return v < low ? low : v > high ? high : v; }

// One entry on one dimension, as Python slices: negative bounds count from the end, all are clamped.
Status ResolveEntry(Prepare& p, const Masks& m, int64_t i, int axis, int64_t dim, SliceGeometry* g) {
  const int64_t stride = m.strides[i];
  if (Masks::Bit(m.shrink, i)) {
    const int64_t at = m.begin[i] < 0 ? m.begin[i] + dim : m.begin[i];
    if (stride != 1) return p.Fail("stride of a single index: got %lld, expected 1", static_cast<long long>(stride));
    if (at < 0 || at >= dim)
      return p.Fail("index of axis %d out of range: got %lld, expected %lld to %lld", axis,
                    static_cast<long long>(m.begin[i]), static_cast<long long>(-dim), static_cast<long long>(dim - 1));
    g->begin[axis] = at;
    g->stride[axis] = g->count[axis] = 1;
    return Status::kOk;
  }
  if (stride == 0 || stride == INT64_MIN)
    return p.Fail("stride %lld: expected another than 0", static_cast<long long>(i));
  const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? dim : dim - 1;
  const int64_t first = m.begin[i] < 0 ? m.begin[i] + dim : m.begin[i];
  const int64_t last = m.end[i] < 0 ? m.end[i] + dim : m.end[i];
  const int64_t b = Masks::Bit(m.begin_mask, i) ? (stride > 0 ? low : high) : Clamp(first, low, high);
  const int64_t e = Masks::Bit(m.end_mask, i) ? (stride > 0 ? high : low) : Clamp(last, low, high);
  const int64_t length = stride > 0 ? e - b : b - e, step = stride > 0 ? stride : -stride;
  g->begin[axis] = b;
  g->stride[axis] = stride;
  g->count[axis] = length > 0 ? (length - 1) / step + 1 : 0;
  if (g->count[axis] <= 1) g->stride[axis] = 1;  // no step is taken, and a huge one must not be multiplied
  g->dims[g->rank++] = g->count[axis];
  return Status::kOk;
}

Status AddDim(Prepare& p, SliceGeometry* g) {
  return g->rank < kMaxRank ? Status::kOk : p.Fail("too many dimensions: expected at most %d", kMaxRank);
}

void TakeAll(int64_t dim, int axis, SliceGeometry* g) {
  g->begin[axis] = 0;
  g->stride[axis] = 1;
  g->count[axis] = g->dims[g->rank++] = dim;
}

struct SliceState {
  StridedCopy copy;
};

Status PrepareStridedSlice(Prepare& p) {
  const Tensor& x = p.in(0);
  SliceGeometry g;
  if (ResolveSlice(p, x.rank, x.dims, &g) != Status::kOk) return p.status();
  SliceState* state = p.NewState<SliceState>();
  if (!state) return p.status();
  state->copy = StridedCopy(SizeOf(x.dtype));
  const Strides from(x), to(x.rank, g.count, SizeOf(x.dtype));
  int64_t offset = 0;
  for (int i = 0; i < x.rank; ++i) {
    state->copy.AddDim(g.count[i], g.stride[i] * from[i], to[i]);
    offset += g.begin[i] * from[i];
  }
  state->copy.Finish(offset);
  return p.SetOutput(0, x.dtype, g.rank, g.dims);
}

Status RunStridedSlice(const Run& run) {
  run.state<SliceState>().copy.Run(run, run.in(0).data, run.out(0).data);
  return Status::kOk;
}

}  // namespace

Status ResolveSlice(Prepare& p, int rank, const int64_t* dims, SliceGeometry* g) {
  const Masks m(p);
  if (p.status() != Status::kOk) return p.status();
  const int64_t n = m.begin.size;
  if (m.end.size != n || m.strides.size != n || n > 2 * kMaxRank)
    return p.Fail("begin, end and strides: expected one length, at most %d", 2 * kMaxRank);
  int64_t named = 0, ellipses = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (Masks::Bit(m.ellipsis, i)) ++ellipses;
    else if (!Masks::Bit(m.new_axis, i)) ++named;
  }
  if (ellipses > 1) return p.Fail("more than one ellipsis");
  if (named > rank)
    return p.Fail("more indices than dimensions: got %lld, expected at most %d", static_cast<long long>(named), rank);
  int axis = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (Masks::Bit(m.ellipsis, i)) {
      for (int64_t k = named; k < rank; ++k, ++axis) {
        if (AddDim(p, g) != Status::kOk) return p.status();
        TakeAll(dims[axis], axis, g);
      }
    } else {
      if (AddDim(p, g) != Status::kOk) return p.status();
      if (Masks::Bit(m.new_axis, i)) g->dims[g->rank++] = 1;
      else if (ResolveEntry(p, m, i, axis, dims[axis], g) != Status::kOk) return p.status();
      else ++axis;
    }
  }
  for (; axis < rank; ++axis) {
    if (AddDim(p, g) != Status::kOk) return p.status();
    TakeAll(dims[axis], axis, g);
  }
  return Status::kOk;
}

const Kernel strided_slice_any = {PrepareStridedSlice, RunStridedSlice};

}  // namespace rillet
