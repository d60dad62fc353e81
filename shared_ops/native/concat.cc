// Concat, Pack, Split, SplitV and Unpack: each piece is a block of columns of a matrix [before the axis, axis and
// behind].
#include "strided_copy.h"

namespace rillet {
namespace {

int64_t Product(const int64_t* dims, int begin, int end) {
  int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= dims[i];
  return n;
}

// One copy for each piece, in the order of the inputs (or outputs).
struct Pieces {
  StridedCopy* copies;
  int64_t count;
};

// Plans the pieces: `rows` rows; piece i has columns[i] bytes a row. `join`: from pieces to the whole, else back.
Status PlanPieces(Prepare& p, int64_t rows, int64_t count, const int64_t* columns, bool join) {
  Pieces* state = p.NewState<Pieces>();
  StridedCopy* copies = p.AllocateArray<StridedCopy>(count);
  if (!state || !copies) return p.status();
  *state = {copies, count};
  int64_t whole = 0, at = 0;
  for (int64_t i = 0; i < count; ++i) whole += columns[i];
  for (int64_t i = 0; i < count; ++i) {
    copies[i] = StridedCopy(1);
    copies[i].AddDim(rows, join ? columns[i] : whole, join ? whole : columns[i]);
    copies[i].AddDim(columns[i], 1, 1);
    copies[i].Finish(join ? 0 : at, join ? at : 0);
    at += columns[i];
  }
  return Status::kOk;
}

Status RunJoin(const Run& run) {
  const Pieces& pieces = run.state<Pieces>();
  for (int64_t i = 0; i < pieces.count; ++i)
    pieces.copies[i].Run(run, run.in(static_cast<int>(i)).data, run.out(0).data);
  return Status::kOk;
}

Status RunCut(const Run& run) {
  const Pieces& pieces = run.state<Pieces>();
  for (int64_t i = 0; i < pieces.count; ++i)
    pieces.copies[i].Run(run, run.in(0).data, run.out(static_cast<int>(i)).data);
  return Status::kOk;
}

bool SameParameters(const Quant& a, const Quant& b) {
  if (a.count == 0 || b.count == 0) return a.count == b.count;
  return a.scale[0] == b.scale[0] && a.zero_point == b.zero_point;
}

// The inputs of Concat and Pack: one dtype, one set of parameters, one shape but for `axis` (-1: no exception).
Status CheckAlike(Prepare& p, int axis) {
  const Tensor& first = p.in(0);
  for (int i = 0; i < p.inputs.size; ++i) {
    const Tensor& x = p.in(i);
    if (!x.present) return p.Fail("input %d is missing", i);
    if (x.dtype != first.dtype) return p.Fail("input %d: got %s, expected %s", i, NameOf(x.dtype), NameOf(first.dtype));
    if (x.dtype == DType::kI8 && !SameParameters(x.quant, p.out(0).quant))
      return p.Fail("input %d and the output have different quantization parameters: put a Requantize before it", i);
    if (x.rank != first.rank) return p.Fail("input %d: got rank %d, expected %d", i, x.rank, first.rank);
    for (int a = 0; a < x.rank; ++a)
      if (a != axis && x.dims[a] != first.dims[a])
        return p.Fail("dimension %d of input %d: got %lld, expected %lld", a, i, static_cast<long long>(x.dims[a]),
                      static_cast<long long>(first.dims[a]));
  }
  return Status::kOk;
}

Status PrepareConcat(Prepare& p) {
  if (p.inputs.size == 0) return p.Fail("nothing to join: got 0 inputs, expected one or more");
  const Tensor& first = p.in(0);
  const int axis = NormalizeAxis(p, p.Int("axis"), first.rank);
  if (p.status() != Status::kOk || CheckAlike(p, axis) != Status::kOk) return p.status();
  int64_t* columns = p.AllocateArray<int64_t>(p.inputs.size);
  if (!columns) return p.status();
  int64_t dims[kMaxRank], total = 0;
  for (int i = 0; i < p.inputs.size; ++i) {
    const Tensor& x = p.in(i);
    total += x.dims[axis];
    columns[i] = Product(x.dims, axis, x.rank) * static_cast<int64_t>(SizeOf(x.dtype));
  }
  for (int a = 0; a < first.rank; ++a) dims[a] = a == axis ? total : first.dims[a];
  if (PlanPieces(p, Product(dims, 0, axis), p.inputs.size, columns, true) != Status::kOk) return p.status();
  return p.SetOutput(0, first.dtype, first.rank, dims);
}

Status PreparePack(Prepare& p) {
  if (p.inputs.size == 0) return p.Fail("nothing to pack: got 0 inputs, expected one or more");
  const Tensor& first = p.in(0);
  if (first.rank == kMaxRank) return p.Fail("too many dimensions: expected at most %d", kMaxRank);
  const int axis = NormalizeAxis(p, p.Int("axis"), first.rank + 1);
  if (p.status() != Status::kOk || CheckAlike(p, -1) != Status::kOk) return p.status();
  int64_t* columns = p.AllocateArray<int64_t>(p.inputs.size);
  if (!columns) return p.status();
  for (int i = 0; i < p.inputs.size; ++i)
    columns[i] = Product(first.dims, axis, first.rank) * static_cast<int64_t>(SizeOf(first.dtype));
  int64_t dims[kMaxRank];
  for (int a = 0; a <= first.rank; ++a)
    dims[a] = a < axis ? first.dims[a] : a == axis ? p.inputs.size : first.dims[a - 1];
  if (PlanPieces(p, Product(dims, 0, axis), p.inputs.size, columns, true) != Status::kOk) return p.status();
  return p.SetOutput(0, first.dtype, first.rank + 1, dims);
}

// Cuts x into pieces of sizes[i] along the axis; `keep`: the pieces have that dimension.
Status PrepareCut(Prepare& p, int axis, int64_t count, const int64_t* sizes, bool keep) {
  const Tensor& x = p.in(0);
  if (count != p.output_count)
    return p.Fail("got %lld outputs, expected %lld", static_cast<long long>(p.output_count),
                  static_cast<long long>(count));
  int64_t* columns = p.AllocateArray<int64_t>(count);
  if (!columns) return p.status();
  const int64_t inner = Product(x.dims, axis + 1, x.rank) * static_cast<int64_t>(SizeOf(x.dtype));
  for (int64_t i = 0; i < count; ++i) {
    columns[i] = sizes[i] * inner;
    int64_t dims[kMaxRank];
    int rank = 0;
    for (int a = 0; a < x.rank; ++a)
      if (a != axis || keep) dims[rank++] = a == axis ? sizes[i] : x.dims[a];
    if (p.SetOutput(static_cast<int>(i), x.dtype, rank, dims) != Status::kOk) return p.status();
  }
  return PlanPieces(p, Product(x.dims, 0, axis), count, columns, false);
}

// Split and Unpack: `num` equal pieces.
Status PrepareEqual(Prepare& p, bool keep) {
  const Tensor& x = p.in(0);
  const int64_t num = p.Int("num");
  const int axis = NormalizeAxis(p, p.Int("axis"), x.rank);
  if (p.status() != Status::kOk) return p.status();
  const int64_t dim = x.dims[axis];
  if (num < 1 || num != p.output_count || (keep ? dim % num != 0 : dim != num))
    return p.Fail("num: got %lld for %lld outputs and a dimension of %lld", static_cast<long long>(num),
                  static_cast<long long>(p.output_count), static_cast<long long>(dim));
  int64_t* sizes = p.AllocateArray<int64_t>(num);
  if (!sizes) return p.status();
  for (int64_t i = 0; i < num; ++i) sizes[i] = dim / num;
  return PrepareCut(p, axis, num, sizes, keep);
}

Status PrepareSplit(Prepare& p) { return PrepareEqual(p, true); }
Status PrepareUnpack(Prepare& p) { return PrepareEqual(p, false); }

Status PrepareSplitV(Prepare& p) {
  const Tensor& x = p.in(0);
  const Span<int64_t> given = p.Ints("sizes");
  const int axis = NormalizeAxis(p, p.Int("axis"), x.rank);
  if (p.status() != Status::kOk) return p.status();
  int64_t* sizes = p.AllocateArray<int64_t>(given.size);
  if (!sizes) return p.status();
  int64_t known = 0, open = -1;
  const int64_t dim = x.dims[axis];
  for (int64_t i = 0; i < given.size; ++i) {
    sizes[i] = given[i];
    if (given[i] == -1 && open < 0) open = i;
    else if (given[i] < 0 || given[i] > dim)
      return p.Fail("size %lld: got %lld, expected 0 to %lld", static_cast<long long>(i),
                    static_cast<long long>(given[i]), static_cast<long long>(dim));
    else known += given[i];
  }
  if (open >= 0 && known <= dim) known += sizes[open] = dim - known;
  if (known != dim)
    return p.Fail("sizes sum to %lld, expected %lld", static_cast<long long>(known), static_cast<long long>(dim));
  return PrepareCut(p, axis, given.size, sizes, true);
}

}  // namespace

const Kernel concat_any = {PrepareConcat, RunJoin};
const Kernel pack_any = {PreparePack, RunJoin};
const Kernel split_any = {PrepareSplit, RunCut};
const Kernel split_v_any = {PrepareSplitV, RunCut};
const Kernel unpack_any = {PrepareUnpack, RunCut};

}  // namespace rillet
