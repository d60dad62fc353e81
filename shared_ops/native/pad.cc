// Pad: the value everywhere, then the input as a strided copy. MirrorPad: rows by a map of positions for each axis.
#include "mirror.h"
#include "strided_copy.h"

namespace rillet {
namespace {

struct PadState {
  StridedCopy copy;
  Element value;
};

// The paddings in pairs, and the padded dimensions.
Status ReadPaddings(Prepare& p, const Tensor& x, Span<int64_t>* paddings, int64_t* dims) {
  *paddings = p.Ints("paddings");
  if (p.status() != Status::kOk) return p.status();
  if (paddings->size != 2 * x.rank)
    return p.Fail("paddings: got %lld numbers, expected %d", static_cast<long long>(paddings->size), 2 * x.rank);
  constexpr int64_t kMost = int64_t{1} << 40;
  for (int i = 0; i < x.rank; ++i) {
    const int64_t before = (*paddings)[2 * i], after = (*paddings)[2 * i + 1];
    if (before < 0 || after < 0 || before > kMost || after > kMost)
      return p.Fail("padding of axis %d: got (%lld, %lld), expected 0 or more", i, static_cast<long long>(before),
                    static_cast<long long>(after));
    dims[i] = x.dims[i] + before + after;
  }
  return Status::kOk;
}

Status PreparePad(Prepare& p) {
  const Tensor& x = p.in(0);
  Span<int64_t> paddings;
  int64_t dims[kMaxRank];
  const double value = p.Float("value");
  if (ReadPaddings(p, x, &paddings, dims) != Status::kOk) return p.status();
  if (p.SetOutput(0, x.dtype, x.rank, dims) != Status::kOk) return p.status();
  PadState* state = p.NewState<PadState>();
  if (!state) return p.status();
  state->value = MakeElement(x.dtype, x.quant, value);
  state->copy = StridedCopy(SizeOf(x.dtype));
  const Strides from(x), to(x.rank, dims, SizeOf(x.dtype));
  int64_t offset = 0;
  for (int i = 0; i < x.rank; ++i) {
    state->copy.AddDim(x.dims[i], from[i], to[i]);
    offset += paddings[2 * i] * to[i];
  }
  state->copy.Finish(0, offset);
  return Status::kOk;
}

Status RunPad(const Run& run) {
  const PadState& s = run.state<PadState>();
  const Tensor& y = run.out(0);
  FillElements(run, y.data, y.size(), SizeOf(y.dtype), s.value.bytes);
  s.copy.Run(run, run.in(0).data, y.data);
  return Status::kOk;
}

Status PrepareMirrorPad(Prepare& p) {
  const Tensor& x = p.in(0);
  Span<int64_t> paddings;
  int64_t dims[kMaxRank];
  if (ReadPaddings(p, x, &paddings, dims) != Status::kOk) return p.status();
  if (p.SetOutput(0, x.dtype, x.rank, dims) != Status::kOk) return p.status();
  return PrepareMirror(p, x.rank, x.dims, paddings, SizeOf(x.dtype));
}

Status RunMirrorPad(const Run& run) {
  const Mirror& m = run.state<Mirror>();
  const char* x = run.in(0).as<char>();
  char* y = run.out(0).as<char>();
  run.ParallelFor(m.rows, 1 + 16384 / (m.row_bytes + 1), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      const char* from = x + m.SourceRow(row) * m.source_row_bytes;
      char* to = y + row * m.row_bytes;
      const Mirror::Axis& last = m.axes[m.rank - 1];
      for (int64_t i = 0; i < last.size; ++i)
        memcpy(to + i * m.element, from + last.source[i] * m.element, static_cast<size_t>(m.element));
    }
  });
  return Status::kOk;
}

}  // namespace

const Kernel pad_any = {PreparePad, RunPad};
const Kernel mirror_pad_any = {PrepareMirrorPad, RunMirrorPad};

}  // namespace rillet
