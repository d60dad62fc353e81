// MirrorPadGrad: every element of dy, in row-major order, is added to the element that it shows.
#include "../add_elements.h"
#include "../mirror.h"

namespace rillet {
namespace {

Status PrepareMirrorPadGrad(Prepare& p) {
  const Tensor& dy = p.in(0);
  const Span<int64_t> paddings = p.Ints("paddings");
  if (p.status() != Status::kOk) return p.status();
  if (paddings.size != 2 * dy.rank) return p.Fail("paddings: expected %d numbers", 2 * dy.rank);
  if (!AdderOf(dy.dtype)) return p.Fail("dy: got %s, expected numbers", NameOf(dy.dtype));
  int64_t dims[kMaxRank];
  for (int i = 0; i < dy.rank; ++i) {
    const int64_t before = paddings[2 * i], after = paddings[2 * i + 1];
    if (before < 0 || after < 0 || before > dy.dims[i] || after > dy.dims[i] - before)
      return p.Fail("padding of axis %d does not fit a dimension of %lld", i, static_cast<long long>(dy.dims[i]));
    dims[i] = dy.dims[i] - before - after;
  }
  if (p.SetOutput(0, dy.dtype, dy.rank, dims) != Status::kOk) return p.status();
  return PrepareMirror(p, dy.rank, dims, paddings, SizeOf(dy.dtype));
}

Status RunMirrorPadGrad(const Run& run) {
  const Mirror& m = run.state<Mirror>();
  const Tensor &dy = run.in(0), &dx = run.out(0);
  const AddFunction add = AdderOf(dy.dtype);
  const int64_t values = m.element / static_cast<int64_t>(SizeOf(dy.dtype));
  memset(dx.data, 0, dx.bytes());
  // Threads share the first axis out where nothing is added across it.
  const bool apart = m.rank > 1 && m.axes[0].size == m.axes[0].source_size;
  const int64_t pieces = apart ? m.axes[0].size : 1, rows = pieces ? m.rows / pieces : 0;
  run.ParallelFor(pieces, 1, [&](int64_t begin, int64_t end, int) {
    const Mirror::Axis& last = m.axes[m.rank - 1];
    for (int64_t row = begin * rows; row < end * rows; ++row) {
      const char* from = dy.as<char>() + row * m.row_bytes;
      char* to = dx.as<char>() + m.SourceRow(row) * m.source_row_bytes;
      for (int64_t i = 0; i < last.size; ++i) add(values, from + i * m.element, to + last.source[i] * m.element);
    }
  });
  return Status::kOk;
}

}  // namespace

const Kernel mirror_pad_grad_any = {PrepareMirrorPadGrad, RunMirrorPadGrad};

}  // namespace rillet
