// TileGrad: every row of dx is the sum, in order, of its copies in dy.
#include "../add_elements.h"
#include "../strided_copy.h"

namespace rillet {
namespace {

struct TileGradState {
  int64_t multiples[kMaxRank], dims[kMaxRank], strides[kMaxRank];  // strides: of dy, in bytes
  int64_t copies, rows, row_bytes;
  int32_t rank;
};

Status PrepareTileGrad(Prepare& p) {
  int64_t dims[kMaxRank];
  const int rank = ReadShape(p, 0, dims);
  if (rank < 0) return p.status();
  const Tensor& dy = p.in(1);
  const Span<int64_t> multiples = p.Ints("multiples");
  if (p.SetOutput(0, dy.dtype, rank, dims) != Status::kOk || p.status() != Status::kOk) return p.status();
  if (multiples.size != rank || dy.rank != rank) return p.Fail("multiples and dy: expected %d dimensions", rank);
  if (!AdderOf(dy.dtype)) return p.Fail("dy: got %s, expected numbers", NameOf(dy.dtype));
  TileGradState* s = p.NewState<TileGradState>();
  if (!s) return p.status();
  s->rank = rank;
  s->copies = s->rows = 1;
  const Strides strides(dy);
  for (int i = 0; i < rank; ++i) {
    int64_t full;
    if (multiples[i] < 0 || __builtin_mul_overflow(dims[i], multiples[i], &full) || full != dy.dims[i])
      return p.Fail("dimension %d of dy: got %lld, expected %lld times %lld", i, static_cast<long long>(dy.dims[i]),
                    static_cast<long long>(dims[i]), static_cast<long long>(multiples[i]));
    s->multiples[i] = multiples[i];
    s->dims[i] = dims[i];
    s->strides[i] = strides[i];
    s->copies *= dims[i] ? multiples[i] : 0;  // without elements there is nothing to add
    if (i < rank - 1) s->rows *= dims[i];
  }
  s->row_bytes = (rank ? dims[rank - 1] : 1) * static_cast<int64_t>(SizeOf(dy.dtype));
  return Status::kOk;
}

// Where in dy copy `copy` of row `row` of dx begins.
int64_t CopyOffset(const TileGradState& s, int64_t row, int64_t copy) {
  int64_t offset = 0;
  for (int i = s.rank - 1; i >= 0; --i) {
    int64_t position = copy % s.multiples[i] * s.dims[i];
    copy /= s.multiples[i];
    if (i < s.rank - 1) {
      position += row % s.dims[i];
      row /= s.dims[i];
    }
    offset += position * s.strides[i];
  }
  return offset;
}

Status RunTileGrad(const Run& run) {
  const TileGradState& s = run.state<TileGradState>();
  const Tensor &dy = run.in(1), &dx = run.out(0);
  const AddFunction add = AdderOf(dy.dtype);
  const int64_t values = s.row_bytes / static_cast<int64_t>(SizeOf(dy.dtype));
  memset(dx.data, 0, dx.bytes());
  if (s.copies == 0) return Status::kOk;
  run.ParallelFor(s.rows, 1 + 16384 / (s.copies * s.row_bytes + 1), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t copy = 0; copy < s.copies; ++copy)
        add(values, dy.as<char>() + CopyOffset(s, row, copy), dx.as<char>() + row * s.row_bytes);
  });
  return Status::kOk;
}

}  // namespace

const Kernel tile_grad_any = {PrepareTileGrad, RunTileGrad};

}  // namespace rillet
